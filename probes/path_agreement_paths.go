package probes

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/race"
)

// keyParts are keys that a careless derivation merges, or that a filesystem would: by case, by Unicode normalisation,
// by a dot or a space at the end, by what stands between the parts, by length.
var keyParts = []engine.Key{
	{"a", "bc"}, {"ab", "c"}, {"abc"}, {"K"}, {"k"}, {"caf\u00e9"}, {"cafe\u0301"}, {"stra\u00dfe"}, {"strasse"},
	{"\u0436"}, {"\u9375"}, {"x"}, {"x."}, {"x "}, {"CON"}, {"../up"}, {"a/b"}, {"\xff\xfe"}, {""}, {"", ""},
	{strings.Repeat("long", 100)}, {strings.Repeat("long", 100) + "er"},
}

// keys are those of one round: its number makes their files fresh ones.
func keys(number int64) []engine.Key {
	all := make([]engine.Key, len(keyParts))
	for i, parts := range keyParts {
		all[i] = append(append(engine.Key{}, parts...), strconv.FormatInt(number, 10))
	}
	return all
}

// A derivation makes a path from a key.
type derivation uint64

// The derivations. The latter two are the controls.
const (
	bySignature derivation = iota // as the engine does
	byCleaning                    // of the letters and digits that are left in lower case, as programs do that have made two keys one
	byContender                   // of the key and of who asks, as programs do that let a working directory or a locale in
)

func (d derivation) path(k engine.Key, contender int) string {
	switch d {
	case byCleaning:
		k = engine.Key{cleaned(strings.Join(k, ""))}
	case byContender:
		k = append(k, strconv.Itoa(contender))
	}
	return string(k.Sign())
}

func cleaned(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(s))
}

// A reach is what a contender found of a key's file, in its words.
type reach struct {
	Digest [sha256.Size]byte // of the path that it derived
	Nonce  uint64            // that it read: 0 if it read none
	Look   glance            // or, of the one who writes, the writing
}

func reachesOf(words []uint64) []reach {
	return unsafe.Slice((*reach)(unsafe.Pointer(&words[0])), len(keyParts))
}

// nonceOf is what is written into a key's file in a round.
func nonceOf(number int64, key int) uint64 { return uint64(number)<<16 | uint64(key) + 1 }

// The operations on the files of all keys. Arg is the derivation and, for a reader, whether it reads anew.
var pathOps = []race.Op{
	{Name: "path-agreement:write", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		return eachPath(e, func(i int, file *byte, r *reach) unix.Errno {
			return r.write(e, file, nonceOf(e.Num, i))
		})
	}},
	{Name: "path-agreement:read", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		return eachPath(e, func(_ int, file *byte, r *reach) unix.Errno { return r.read(e, file) })
	}},
	{Name: "path-agreement:clean", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		return eachPath(e, func(_ int, file *byte, _ *reach) unix.Errno {
			race.Unlink(e.Dir, file, 0)
			return 0
		})
	}},
}

const again = 1 << 32 // in Arg: keep what was found, and look for the rest

// eachPath goes through the keys. EAGAIN says that something was not found for one of them.
func eachPath(e *race.Env, do func(i int, file *byte, r *reach) unix.Errno) (missing unix.Errno) {
	for i, k := range keys(e.Num) {
		path, r := derivation(e.Arg&^again).path(k, e.ID), &reachesOf(e.Words(e.ID))[i]
		if e.Arg&again == 0 {
			*r = reach{Digest: sha256.Sum256([]byte(path))}
		}
		if errno := do(i, nul(path), r); errno != 0 {
			missing = unix.EAGAIN
		}
		e.Progress()
	}
	return missing
}

func (r *reach) write(e *race.Env, file *byte, nonce uint64) unix.Errno {
	r.Look.Invoke = race.Now()
	errno := writeWhole(e.Dir, file, unix.O_CREAT|unix.O_TRUNC, string(binary.NativeEndian.AppendUint64(nil, nonce)))
	r.Look.Return, r.Look.Errno, r.Nonce = race.Now(), uint32(errno), nonce
	return errno
}

// read reads the nonce, unless it was read before.
func (r *reach) read(e *race.Env, file *byte) unix.Errno {
	if r.Nonce != 0 {
		return 0
	}
	r.Look.Invoke = race.Now()
	fd, errno := race.Open(e.Dir, file, unix.O_RDONLY, 0)
	n := 0
	if errno == 0 {
		n, errno = race.Pread(fd, e.Buf[:payload], 0)
		race.Close(fd)
	}
	r.Look.Return, r.Look.Errno = race.Now(), uint32(errno)
	if n == 8 {
		r.Nonce = binary.NativeEndian.Uint64(e.Buf[:n])
	}
	if r.Nonce == 0 {
		return unix.EAGAIN
	}
	return 0
}
