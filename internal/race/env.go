package race

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An Env is what a contender has at hand in a round: its number, its directory, the round's name, and buffers
// that exist beforehand because nothing may allocate at the line.
type Env struct {
	ID    int // this contender
	N     int // contenders in the batch; 1 in a step
	Dir   int // descriptor of the target's directory, over this contender's route
	Arg   uint64
	FD    [8]int // open descriptors that outlive a round; -1 when closed
	Fd    int    // of the running attempt: what Attempt opened and Observe closes
	Num   int64  // the round's number
	Cold  bool
	First bool // true for exactly one contender of a round, one that starts at the line and not behind it
	Made  bool // for the operation's own use; false when a batch begins
	Stat  unix.Stat_t
	Lock  unix.Flock_t
	Buf   [32 << 10]byte

	// Words are contender i's words of the shared memory, which outlive it. Every contender and the parent can read
	// and write them; nobody clears them.
	Words func(i int) []uint64

	// Progress tells the parent that this contender gets on: for an attempt that may take longer than Config.HangAfter.
	Progress func()

	child *atomic.Int32 // see Linger

	name [64]byte // the round's name, NUL-terminated
	own  [64]byte // this contender's private name in the round
	dir  int      // length of the parent's part of name; 0 when the name lies directly in Dir
}

func newEnv(id int) *Env {
	e := &Env{ID: id, Dir: -1, Fd: -1, child: new(atomic.Int32)}
	for i := range e.FD {
		e.FD[i] = -1
	}
	return e
}

// Name is the round's name: the same for all contenders, and fresh. Relative to Dir.
func (e *Env) Name() *byte { return &e.name[0] }

// Own is a name that this contender alone uses, the same in every round of a hot batch. Relative to Dir.
func (e *Env) Own() *byte { return &e.own[0] }

// at renders the names of a round: "r<hex>" and "own<id>" in a hot one, "d<hex>/r" and "own<id>" in a cold one,
// whose parent directory nobody but its maker has touched.
func (e *Env) at(number int64, cold bool) {
	e.Num, e.Cold, e.dir = number, cold, 0
	b := e.name[:0]
	if cold {
		b = appendHex(append(b, 'd'), uint64(number))
		e.dir = len(b)
		b = append(b, "/r"...)
	} else {
		b = appendHex(append(b, 'r'), uint64(number))
	}
	e.name[len(b)] = 0
	b = appendHex(append(e.own[:0], "own"...), uint64(e.ID))
	e.own[len(b)] = 0
}

func appendHex(b []byte, v uint64) []byte {
	const digits = "0123456789abcdef"
	shift := 60
	for shift > 0 && v>>shift == 0 {
		shift -= 4
	}
	for ; shift >= 0; shift -= 4 {
		b = append(b, digits[v>>shift&15])
	}
	return b
}

// MakeParent makes the round's parent directory, in a cold round. An operation whose contenders must not have
// touched the parent lets only one of them call it.
func (e *Env) MakeParent() unix.Errno {
	if e.dir == 0 {
		return 0
	}
	e.name[e.dir] = 0
	errno := Mkdir(e.Dir, e.Name(), 0o700)
	e.name[e.dir] = '/'
	if errno == unix.EEXIST {
		return 0
	}
	return errno
}

func (e *Env) removeParent() {
	e.name[e.dir] = 0
	Unlink(e.Dir, e.Name(), unix.AT_REMOVEDIR)
	e.name[e.dir] = '/'
}

// Mark is this contender's mark in the permission bits of what it makes: the object of a file that has no
// content yet, or of a directory, still tells whose it is. The owner's bits stay rwx.
func (e *Env) Mark() uint32 { return 0o700 | uint32(e.ID) }

// OwnerByMark reads the mark back. Filesystems that do not keep permission bits give no owner.
func OwnerByMark(mode uint32) int16 {
	if mode&0o700 != 0o700 {
		return NoOwner
	}
	return int16(mode & 0o77)
}

// The system calls below are made without the scheduler's knowledge: a contender has one thread that matters and
// nothing else to run.
//
// EINTR is not retried, here and nowhere else: a contender gets no signal that interrupts a call, and a filesystem may
// have carried out what it calls interrupted, so that a second try would be told EEXIST by its own first. It is
// recorded like every errno, and is neither a win nor a loss.

//go:nosplit
func sys(trap, a, b, c, d, e uintptr) (uintptr, unix.Errno) {
	r, _, errno := unix.RawSyscall6(trap, a, b, c, d, e, 0)
	return r, errno
}

func ptr(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) }

// Open is openat(2), always with O_CLOEXEC. The descriptor is -1 after an error.
//
//go:nosplit
func Open(dir int, name *byte, flags int, mode uint32) (int, unix.Errno) {
	fd, errno := sys(unix.SYS_OPENAT, uintptr(dir), ptr(name), uintptr(flags|unix.O_CLOEXEC), uintptr(mode), 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), 0
}

// Close is close(2). The descriptor is gone after an error, too.
//
//go:nosplit
func Close(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	return errno
}

// Mkdir is mkdirat(2).
//
//go:nosplit
func Mkdir(dir int, name *byte, mode uint32) unix.Errno {
	_, errno := sys(unix.SYS_MKDIRAT, uintptr(dir), ptr(name), uintptr(mode), 0, 0)
	return errno
}

// Symlink is symlinkat(2).
//
//go:nosplit
func Symlink(target *byte, dir int, name *byte) unix.Errno {
	_, errno := sys(unix.SYS_SYMLINKAT, ptr(target), uintptr(dir), ptr(name), 0, 0)
	return errno
}

// Link is linkat(2) within one directory.
//
//go:nosplit
func Link(dir int, from, to *byte) unix.Errno {
	_, errno := sys(unix.SYS_LINKAT, uintptr(dir), ptr(from), uintptr(dir), ptr(to), 0)
	return errno
}

// Rename is renameat2(2) within one directory. With no flags it is renameat(2), which old kernels and strict
// seccomp filters know.
//
//go:nosplit
func Rename(dir int, from, to *byte, flags uint) unix.Errno {
	trap := uintptr(unix.SYS_RENAMEAT2)
	if flags == 0 {
		trap = unix.SYS_RENAMEAT
	}
	_, errno := sys(trap, uintptr(dir), ptr(from), uintptr(dir), ptr(to), uintptr(flags))
	return errno
}

// Unlink is unlinkat(2).
//
//go:nosplit
func Unlink(dir int, name *byte, flags int) unix.Errno {
	_, errno := sys(unix.SYS_UNLINKAT, uintptr(dir), ptr(name), uintptr(flags), 0, 0)
	return errno
}

// Lstat is fstatat(2) without following a symlink.
//
//go:nosplit
func Lstat(dir int, name *byte, st *unix.Stat_t) unix.Errno {
	_, errno := sys(unix.SYS_NEWFSTATAT, uintptr(dir), ptr(name), uintptr(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW, 0)
	return errno
}

// Fstat is fstat(2).
//
//go:nosplit
func Fstat(fd int, st *unix.Stat_t) unix.Errno {
	_, errno := sys(unix.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(st)), 0, 0, 0)
	return errno
}

// Pread is pread(2).
//
//go:nosplit
func Pread(fd int, b []byte, off int64) (int, unix.Errno) {
	n, errno := sys(unix.SYS_PREAD64, uintptr(fd), ptr(unsafe.SliceData(b)), uintptr(len(b)), uintptr(off), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// Pwrite is pwrite(2).
//
//go:nosplit
func Pwrite(fd int, b []byte, off int64) (int, unix.Errno) {
	n, errno := sys(unix.SYS_PWRITE64, uintptr(fd), ptr(unsafe.SliceData(b)), uintptr(len(b)), uintptr(off), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// Readlink is readlinkat(2).
//
//go:nosplit
func Readlink(dir int, name *byte, b []byte) (int, unix.Errno) {
	n, errno := sys(unix.SYS_READLINKAT, uintptr(dir), ptr(name), ptr(unsafe.SliceData(b)), uintptr(len(b)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// Flock is flock(2).
//
//go:nosplit
func Flock(fd int, how int) unix.Errno {
	_, errno := sys(unix.SYS_FLOCK, uintptr(fd), uintptr(how), 0, 0, 0)
	return errno
}

// Fcntl is fcntl(2) with a struct flock: F_SETLK, F_OFD_SETLK and their kin.
//
//go:nosplit
func Fcntl(fd int, cmd int, lk *unix.Flock_t) unix.Errno {
	_, errno := sys(unix.SYS_FCNTL, uintptr(fd), uintptr(cmd), uintptr(unsafe.Pointer(lk)), 0, 0)
	return errno
}

// Sleep is nanosleep(2), for a contender off the critical path.
func Sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}
