package probes

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// The steps of names. Arg is the number of a name in the corpus; all of them work in a directory that has the round's
// name.
var nameOps = []race.Op{
	{Name: "name-dir", Attempt: func(e *race.Env, _ *race.Event) unix.Errno { return race.Mkdir(e.Dir, e.Name(), 0o700) }},
	{Name: "name-make", Attempt: func(e *race.Env, ev *race.Event) unix.Errno { return makeNamed(e, ev, corpus[e.Arg], e.Arg) }},
	{Name: "name-read", Attempt: func(e *race.Env, ev *race.Event) unix.Errno { return readNamed(e, ev, corpus[e.Arg]) }},
	{Name: "name-list", Attempt: func(e *race.Env, ev *race.Event) unix.Errno { return listNamed(e, ev, corpus[e.Arg]) }},
	{Name: "name-longest", Attempt: longestNamed},
	{Name: "name-clean", Attempt: func(e *race.Env, _ *race.Event) unix.Errno { return emptyNamed(e) }},
}

// inRound is the path of a name in the round's directory.
func inRound(e *race.Env, name string) *byte {
	b := append(e.Buf[:0], unix.BytePtrToString(e.Name())...)
	b = append(append(append(b, '/'), name...), 0)
	return &b[0]
}

// makeNamed makes a file that must not be there, with its number as content.
func makeNamed(e *race.Env, ev *race.Event, name string, number uint64) unix.Errno {
	fd, errno := race.Open(e.Dir, inRound(e, name), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
	if errno != 0 {
		return errno
	}
	defer race.Close(fd)
	if race.Fstat(fd, &e.Stat) == 0 {
		ev.Inode = e.Stat.Ino
	}
	var content [8]byte
	binary.LittleEndian.PutUint64(content[:], number)
	_, errno = race.Pwrite(fd, content[:], 0)
	return errno
}

// readNamed reads the number in the file of that name: whose it is.
func readNamed(e *race.Env, ev *race.Event, name string) unix.Errno {
	fd, errno := race.Open(e.Dir, inRound(e, name), unix.O_RDONLY, 0)
	if errno != 0 {
		return errno
	}
	defer race.Close(fd)
	var content [8]byte
	n, errno := race.Pread(fd, content[:], 0)
	ev.Saw = noNumber
	if errno == 0 && n == len(content) {
		ev.Saw = binary.LittleEndian.Uint64(content[:])
	}
	return errno
}

// noNumber is the content of a file that is not the probe's.
const noNumber = 1<<64 - 1

// listNamed looks for the name, byte by byte, in the listing. Saw is 1 if it is there; else the contender's words are
// the first name that is.
func listNamed(e *race.Env, ev *race.Event, name string) unix.Errno {
	other := ""
	errno := eachNamed(e, func(listed string) {
		if listed == name {
			ev.Saw = 1
		} else if other == "" {
			other = listed
		}
	})
	say(e, other)
	return errno
}

// say leaves a text in the contender's words, and said reads it there.
func say(e *race.Env, text string) {
	w := e.Words(e.ID)
	w[0] = uint64(len(text))
	for i := range len(text) {
		w[1+i] = uint64(text[i])
	}
}

func said(words []uint64) string {
	b := make([]byte, words[0])
	for i := range b {
		b[i] = byte(words[1+i])
	}
	return string(b)
}

// eachNamed calls see for each name in the round's directory.
func eachNamed(e *race.Env, see func(name string)) unix.Errno {
	fd, errno := race.Open(e.Dir, e.Name(), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errno != 0 {
		return errno
	}
	defer race.Close(fd)
	for {
		n, err := unix.Getdents(fd, e.Buf[:])
		if n <= 0 || err != nil {
			errno, _ = err.(unix.Errno)
			return errno
		}
		_, _, names := unix.ParseDirent(e.Buf[:n], -1, nil)
		for _, name := range names {
			see(name)
		}
	}
}

// emptyNamed removes the round's directory and what is in it.
func emptyNamed(e *race.Env) unix.Errno {
	var names []string
	eachNamed(e, func(name string) { names = append(names, name) })
	for _, name := range names {
		e.Progress()
		if errno := race.Unlink(e.Dir, inRound(e, name), 0); errno == unix.EISDIR || errno == unix.EPERM {
			race.Unlink(e.Dir, inRound(e, name), unix.AT_REMOVEDIR)
		}
	}
	return race.Unlink(e.Dir, e.Name(), unix.AT_REMOVEDIR)
}

// mostBytes is above every NAME_MAX: the longest name that is tried, in bytes.
const mostBytes = 1024

// longestNamed finds by bisection how many times the letter can be repeated; Arg is the letter's number.
func longestNamed(e *race.Env, ev *race.Event) unix.Errno {
	letter := letters[e.Arg].letter
	fits, not := 0, mostBytes/len(letter)
	for fits+1 < not {
		e.Progress()
		n := (fits + not) / 2
		switch errno := tryRepeated(e, letter, n); errno {
		case 0:
			fits = n
		case unix.ENAMETOOLONG, unix.EINVAL, unix.ENOENT, unix.EILSEQ, unix.EPERM:
			not = n
		default:
			return errno
		}
	}
	ev.Saw = uint64(fits)
	return 0
}

func tryRepeated(e *race.Env, letter string, n int) unix.Errno {
	name := make([]byte, 0, n*len(letter))
	for range n {
		name = append(name, letter...)
	}
	fd, errno := race.Open(e.Dir, inRound(e, string(name)), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
	if errno != 0 {
		return errno
	}
	race.Close(fd)
	return race.Unlink(e.Dir, inRound(e, string(name)), 0)
}
