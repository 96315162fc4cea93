package probes

import (
	"strings"

	"github.com/claimbench/claimbench/engine"
)

// claimNames are the names that the engine makes in a claim directory, each component of a path by itself; see the
// documentation of package engine. Generations that begin alike, two keys, and the longest there is of each are among
// them.
var claimNames = makeClaimNames()

func makeClaimNames() []string {
	const nonce, stamp = "000102030405060708090a0b0c0d0e0f", "1700000000000"
	names := []string{"params.gen1", "clock", "00", "ff", "sentinel.flock", "owner", "record"}
	for _, key := range []engine.Key{{"report", "2024-06"}, {"report", "2024-07"}} {
		sig := string(key.Sign())
		names = append(names, sig[:3])
		for _, suffix := range []string{
			".gen1.claim", ".gen2.claim", ".gen10.claim", ".gen18446744073709551615.claim", ".new-" + nonce,
			".claim", ".done", ".flock", ".lock", ".lock.stale-" + stamp + "-" + nonce, ".lock.stale-" + stamp + "-" + nonce[:31] + "e",
		} {
			names = append(names, sig+suffix)
		}
	}
	return names
}

// longestClaimName is in bytes.
func longestClaimName() int {
	n := 0
	for _, name := range claimNames {
		n = max(n, len(name))
	}
	return n
}

// A spelling is a pair of names that some filesystems take for one, and the rule by which they do.
type spelling struct {
	rule string // the beginning of the note's sentence
	a, b string
}

const (
	foldsASCII   = "case is folded"
	foldsUnicode = "case is folded beyond ASCII"
	normalises   = "Unicode is normalised"
	compatible   = "compatible letters are folded"
	dropsEnd     = "trailing dots or spaces are dropped"
)

// spellings: case folding by Unicode's CaseFolding.txt, canonical and compatible forms by UAX #15, and the names that
// the Windows API shortens.
var spellings = []spelling{
	{foldsASCII, "k", "K"},
	{foldsUnicode, "\u00e4", "\u00c4"},  // a with diaeresis
	{foldsUnicode, "k", "\u212a"},       // Kelvin sign
	{foldsUnicode, "\u00df", "ss"},      // sharp s
	{foldsUnicode, "\u00df", "\u1e9e"},  // sharp s, capital
	{foldsUnicode, "\u03c3", "\u03c2"},  // final sigma
	{foldsUnicode, "\u03a3", "\u03c3"},  // sigma
	{foldsUnicode, "i", "\u0131"},       // dotless i
	{foldsUnicode, "i\u0307", "\u0130"}, // capital i with dot
	{normalises, "\u00e9", "e\u0301"},   // e with acute, composed and decomposed
	{normalises, "\uac00", "\u1100\u1161"},
	{normalises, "\u00c5", "\u212b"}, // Angstrom sign
	{compatible, "a", "\uff41"},      // full width
	{compatible, "fi", "\ufb01"},     // ligature
	{dropsEnd, "k", "k."},
	{dropsEnd, "k", "k "},
}

// An oddName is one that some filesystems refuse, or list otherwise than it was made.
type oddName struct {
	what, name string
}

const (
	reserved  = "device names of Windows"
	forbidden = "characters that Windows forbids"
	unprinted = "control characters"
	noUTF8    = "bytes that are no UTF-8"
	atTheEnd  = "a dot or space at the end"
	accented  = "accented letters, composed or decomposed"
	beyondBMP = "letters outside the basic multilingual plane"
	upperCase = "upper-case letters"
)

var oddNames = []oddName{
	{reserved, "CON"}, {reserved, "nul"}, {reserved, "aux.txt"}, {reserved, "COM1"},
	{forbidden, "a:b"}, {forbidden, `a\b`}, {forbidden, "a*b"}, {forbidden, "a?b"}, {forbidden, "a|b"}, {forbidden, "a<b>c"}, {forbidden, `a"b`},
	{unprinted, "a\nb"}, {unprinted, "a\x01b"},
	{noUTF8, "a\xffb"}, {noUTF8, "\xed\xa0\x80"},
	{atTheEnd, "k."}, {atTheEnd, "k "},
	{accented, "\u00e9"}, {accented, "e\u0301"}, {accented, "\uac00"},
	{beyondBMP, "\U0001f600"},
	{upperCase, "Key"},
}

// letters are what the longest names are made of.
var letters = []struct{ figure, letter string }{
	{"name_max_bytes", "x"},
	{"name_max_2_byte_letters_count", "\u00e9"},
	{"name_max_3_byte_letters_count", "\u6f22"},
	{"name_max_4_byte_letters_count", "\U0001f600"},
}

// corpus is every name that a step is given by its number.
var corpus = makeCorpus()

// The names of the control: one name spelt in two ways, and one that is longer than any path may be.
const (
	plainName  = "x"
	aliasName  = "./x"
	longerThan = 5000 // PATH_MAX is 4096
)

func makeCorpus() []string {
	all := []string{plainName, aliasName, strings.Repeat("x", longerThan)}
	all = append(all, claimNames...)
	for _, o := range oddNames {
		all = append(all, o.name)
	}
	for _, p := range spellings {
		all = append(all, p.a, p.b)
	}
	return all
}
