package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Key names a piece of work by its parts, each any string of bytes. Two keys
// are the same if all their parts are: {"ab", "c"} is not {"a", "bc"}.
type Key []string

// Signature is a key as it appears in file names: 64 lower-case hex digits.
// No filesystem folds, normalises or cuts off any of them.
type Signature string

// Sign returns the signature of the key. The parts are hashed with their
// number and their lengths before them, so that no two keys have one encoding.
func (k Key) Sign() Signature {
	size := 8
	for _, part := range k {
		size += 8 + len(part)
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, size), uint64(len(k)))
	for _, part := range k {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return Signature(hex.EncodeToString(sum[:]))
}

// fan is the directory that holds everything about the key. There are 256 of
// them, as many as its first two digits can be: a directory has some 80 000
// names at ten million keys. More directories would be slower where a
// filesystem spreads them over the disk: with 4096 a claim on ext4 took four
// times as long, as each create went to another block group.
func (s Signature) fan() string { return string(s[:fanDigits]) }

const fanDigits = 2

// path is the name of something about the key.
func (s Signature) path(suffix string) string { return s.fan() + "/" + string(s) + suffix }

// claim is the name of one generation: <fan>/<sig>.gen<N>.claim.
func (s Signature) claim(generation uint64) string {
	return s.path(".gen" + strconv.FormatUint(generation, 10) + ".claim")
}

// parseClaim takes the name of a generation apart; a name that claim does not
// produce is refused.
func parseClaim(name string) (Signature, uint64, error) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	head, rest, ok := strings.Cut(base, ".gen")
	if !ok || !isSignature(head) {
		return "", 0, fmt.Errorf("parse claim name %q: no signature", name)
	}
	digits, ok := strings.CutSuffix(rest, ".claim")
	generation, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || generation == 0 || Signature(head).claim(generation) != name {
		return "", 0, fmt.Errorf("parse claim name %q: no generation", name)
	}
	return Signature(head), generation, nil
}

func isSignature(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}
