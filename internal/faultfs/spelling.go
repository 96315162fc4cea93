package faultfs

import (
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
	"golang.org/x/text/unicode/norm"
)

const (
	shortName = 143 // bytes that eCryptfs leaves of 255
	tinyName  = 100
	cutName   = 68 // bytes after which a name is cut off
)

// spelt is the name as the share keeps it.
func (s *Share) spelt(name string) (string, unix.Errno) {
	switch {
	case s.has(NamesShort) && len(name) > shortName, s.has(NamesTiny) && len(name) > tinyName:
		return "", unix.ENAMETOOLONG
	case s.has(NamesReserved) && strings.ContainsAny(name, `:\*?"<>|`):
		return "", unix.EINVAL
	}
	if s.has(NamesFoldCase) {
		name = strings.Map(folded, name)
	}
	if s.has(NamesNormalised) {
		name = norm.NFC.String(name)
	}
	if s.has(NamesDropEnd) {
		name = strings.TrimRight(name, ". ")
	}
	if s.has(NamesCut) && len(name) > cutName {
		name = name[:cutName]
	}
	return name, 0
}

// folded is the least of the letters that differ in case alone.
func folded(r rune) rune {
	least := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		least = min(least, o)
	}
	return least
}
