package probes

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// The names inside the directory of a cell.
const (
	theName    = "t"
	inDir      = "t/in"    // in a directory that is not empty
	linkedTo   = "target"  // by a symlink that does not dangle
	sourceFile = "own"     // to be linked and renamed
	sourceDir  = "own-dir" // to be renamed
	elsewhere  = "away"    // where a thing is moved to
)

const claimText = "claimed." // the content of a file

// What a look at the name finds, in Saw.
const (
	thingIntact uint64 = iota
	thingAbsent
	thingEmptied // a file without its content
	thingOther   // another kind of thing, or one that was changed
)

// strangerUID and strangerGID are nobody's: neither root's nor the one to which file servers map root (65534).
const strangerUID, strangerGID = 64321, 64321

// asStranger is a bit of a step's Arg.
const asStranger = 1 << 32

// A call's step is named after it; the others are these.
const (
	stepDir  = "errno-dir" // Arg is its mode
	stepSet  = "errno-set" // Arg is a thing's number
	stepLook = "errno-look"
	stepDrop = "errno-drop" // removes the thing
	stepTidy = "errno-tidy"
	stepLast = "errno-look-and-tidy"
)

var errnoCalls = []struct {
	call string
	do   func(dir int) unix.Errno
}{
	{callCreate, func(dir int) unix.Errno { return createAt(dir, theName, unix.O_EXCL) }},
	{callMkdir, func(dir int) unix.Errno { return race.Mkdir(dir, cString(theName), 0o700) }},
	{callSymlink, func(dir int) unix.Errno { return race.Symlink(cString(linkedTo), dir, cString(theName)) }},
	{callLink, func(dir int) unix.Errno { return race.Link(dir, cString(sourceFile), cString(theName)) }},
	{callRenameFile, func(dir int) unix.Errno { return race.Rename(dir, cString(sourceFile), cString(theName), 0) }},
	{callRenameDir, func(dir int) unix.Errno { return race.Rename(dir, cString(sourceDir), cString(theName), 0) }},
	{callUnlink, func(dir int) unix.Errno { return race.Unlink(dir, cString(theName), 0) }},
	{callRmdir, func(dir int) unix.Errno { return race.Unlink(dir, cString(theName), unix.AT_REMOVEDIR) }},
	{callMoveAway, func(dir int) unix.Errno { return race.Rename(dir, cString(theName), cString(elsewhere), 0) }},
	{callTruncate, func(dir int) unix.Errno { return createAt(dir, theName, unix.O_TRUNC) }},
	{callUnlinkAnyway, func(dir int) unix.Errno {
		if errno := race.Unlink(dir, cString(theName), 0); errno != unix.ENOENT {
			return errno
		}
		return 0
	}},
}

// The calls of the control.
const (
	callTruncate     = "create-truncating"
	callUnlinkAnyway = "unlink-anyway"
)

func errnoOps() []race.Op {
	ops := []race.Op{
		{Name: stepDir, Attempt: makeCellDir},
		inCell(stepSet, func(e *race.Env, _ *race.Event) unix.Errno { return makeThing(e.FD[cellFd], things[e.Arg]) }),
		inCell(stepLook, lookAtThing),
		inCell(stepDrop, func(e *race.Env, _ *race.Event) unix.Errno { return race.Unlink(e.FD[cellFd], cString(theName), 0) }),
		inCell(stepTidy, func(e *race.Env, _ *race.Event) unix.Errno { return tidyCell(e) }),
		inCell(stepLast, func(e *race.Env, ev *race.Event) unix.Errno {
			errno := lookAtThing(e, ev)
			tidyCell(e)
			return errno
		}),
	}
	for _, c := range errnoCalls {
		ops = append(ops, inCell("errno-"+c.call, func(e *race.Env, _ *race.Event) unix.Errno {
			if e.Arg&asStranger == 0 {
				return c.do(e.FD[cellFd])
			}
			return asAnother(func() unix.Errno { return c.do(e.FD[cellFd]) })
		}))
	}
	return ops
}

// cellFd is the descriptor of the cell's directory during a step. A second user could not walk there: the directories
// above belong to the survey alone.
const cellFd = 5

// inCell is a step in the directory of a cell.
func inCell(name string, attempt func(*race.Env, *race.Event) unix.Errno) race.Op {
	return race.Op{
		Name: name, Attempt: attempt,
		Prepare: func(e *race.Env) (errno unix.Errno) {
			e.FD[cellFd], errno = race.Open(e.Dir, e.Name(), unix.O_RDONLY|unix.O_DIRECTORY, 0)
			return errno
		},
		Observe: func(e *race.Env, _ *race.Event) {
			race.Close(e.FD[cellFd])
			e.FD[cellFd] = -1
		},
	}
}

// asAnother runs a call as another user. The ids are of the calling thread alone, setfsuid(2): the process keeps its
// own, and the thread loses what lets root pass permission checks until it has them back.
func asAnother(do func() unix.Errno) unix.Errno {
	uid, gid := os.Geteuid(), os.Getegid()
	setfs(strangerUID, strangerGID)
	defer setfs(uid, gid)
	return do()
}

func setfs(uid, gid int) {
	if uid != 0 { // the group first: it takes root to change it
		unix.RawSyscall(unix.SYS_SETFSGID, uintptr(gid), 0, 0)
		unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
		return
	}
	unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
	unix.RawSyscall(unix.SYS_SETFSGID, uintptr(gid), 0, 0)
}

// makeCellDir makes the directory of a cell with what is to be linked and renamed there. The file is given to the
// stranger where the process may do that. Saw is the mode that the directory got, Inode the uid of the file.
func makeCellDir(e *race.Env, ev *race.Event) unix.Errno {
	if errno := race.Mkdir(e.Dir, e.Name(), uint32(e.Arg&0o7777)); errno != 0 {
		return errno
	}
	dir, errno := race.Open(e.Dir, e.Name(), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errno != 0 {
		return errno
	}
	defer race.Close(dir)
	if errno := makeFile(dir, sourceFile); errno != 0 {
		return errno
	}
	if errno := race.Mkdir(dir, cString(sourceDir), 0o700); errno != 0 {
		return errno
	}
	if e.Arg&asStranger != 0 {
		_ = unix.Fchownat(dir, sourceFile, strangerUID, strangerGID, unix.AT_SYMLINK_NOFOLLOW) // Inode tells
	}
	if race.Lstat(dir, cString(sourceFile), &e.Stat) == 0 {
		ev.Inode = uint64(e.Stat.Uid)
	}
	errno = race.Fstat(dir, &e.Stat)
	ev.Saw = uint64(e.Stat.Mode & 0o7777)
	return errno
}

func makeThing(dir int, thing string) (errno unix.Errno) {
	name := cString(theName)
	switch thing {
	case aFile, aGone:
		errno = makeFile(dir, theName)
	case aDir:
		errno = race.Mkdir(dir, name, 0o700)
	case aFullDir:
		if errno = race.Mkdir(dir, name, 0o700); errno == 0 {
			errno = makeFile(dir, inDir)
		}
	case aSymlink:
		if errno = makeFile(dir, linkedTo); errno == 0 {
			errno = race.Symlink(cString(linkedTo), dir, name)
		}
	case aDangling:
		errno = race.Symlink(cString(linkedTo), dir, name)
	case aFifo:
		errno, _ = unix.Mknodat(dir, theName, unix.S_IFIFO|0o600, 0).(unix.Errno)
	}
	return errno
}

// lookAtThing says in Saw what became of the thing whose number is Arg.
func lookAtThing(e *race.Env, ev *race.Event) unix.Errno {
	thing, dir := things[e.Arg], e.FD[cellFd]
	errno := race.Lstat(dir, cString(theName), &e.Stat)
	switch {
	case errno == unix.ENOENT:
		ev.Saw = thingAbsent
		return 0
	case errno != 0:
		return errno
	}
	ev.Inode, ev.Links = e.Stat.Ino, uint32(e.Stat.Nlink)
	switch {
	case e.Stat.Mode&unix.S_IFMT != typesOf[thing], thing == aFullDir && !hasText(dir, inDir):
		ev.Saw = thingOther
	case thing == aFile && !hasText(dir, theName), thing == aSymlink && !hasText(dir, linkedTo):
		ev.Saw = thingEmptied
	}
	return 0
}

var typesOf = map[string]uint32{
	aFile: unix.S_IFREG, aDir: unix.S_IFDIR, aFullDir: unix.S_IFDIR, aSymlink: unix.S_IFLNK, aDangling: unix.S_IFLNK, aFifo: unix.S_IFIFO,
}

// createAt does not wait for the reader of a fifo, should O_EXCL mean nothing.
func createAt(dir int, name string, flags int) unix.Errno {
	fd, errno := race.Open(dir, cString(name), unix.O_CREAT|unix.O_WRONLY|unix.O_NONBLOCK|flags, 0o600)
	if errno != 0 {
		return errno
	}
	race.Close(fd)
	return 0
}

// makeFile makes a file with its text. A call that is tested writes nothing: it would put back what it has emptied.
func makeFile(dir int, name string) unix.Errno {
	fd, errno := race.Open(dir, cString(name), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
	if errno != 0 {
		return errno
	}
	defer race.Close(fd)
	_, errno = race.Pwrite(fd, []byte(claimText), 0)
	return errno
}

// hasText reports whether a file is as it was made; one that cannot be read is not called changed.
func hasText(dir int, name string) bool {
	fd, errno := race.Open(dir, cString(name), unix.O_RDONLY, 0)
	if errno != 0 {
		return errno != unix.ENOENT
	}
	defer race.Close(fd)
	var got [len(claimText)]byte
	n, errno := race.Pread(fd, got[:], 0)
	return errno != 0 || string(got[:n]) == claimText
}

// cString is a text for a system call.
func cString(s string) *byte { return &append([]byte(s), 0)[0] }

func tidyCell(e *race.Env) unix.Errno {
	dir := e.FD[cellFd]
	for _, name := range []string{inDir, theName, linkedTo, sourceFile, elsewhere} {
		race.Unlink(dir, cString(name), 0)
	}
	for _, name := range []string{theName, sourceDir, elsewhere} {
		race.Unlink(dir, cString(name), unix.AT_REMOVEDIR)
	}
	return race.Unlink(e.Dir, e.Name(), unix.AT_REMOVEDIR)
}
