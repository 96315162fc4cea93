package probes

import (
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// The descriptors of lock-rules: the holder's, and another of the same file.
const (
	firstFd  = 2
	secondFd = 3
)

// A ruleArg is what a step is told, packed into its Arg.
type ruleArg struct {
	kind   int // of lock, in lockKinds
	second bool
	shared bool
	access int // of open(2): O_RDWR, O_RDONLY, O_WRONLY
}

func (a ruleArg) pack() uint64 {
	arg := uint64(a.kind) | uint64(a.access)<<8
	if a.second {
		arg |= 1 << 16
	}
	if a.shared {
		arg |= 1 << 17
	}
	return arg
}

func unpackRule(arg uint64) ruleArg {
	return ruleArg{kind: int(arg & 0xff), access: int(arg >> 8 & 0xff), second: arg>>16&1 != 0, shared: arg>>17&1 != 0}
}

func (a ruleArg) fd() int {
	if a.second {
		return secondFd
	}
	return firstFd
}

const manyLocks = 300

// The steps. The file is the round's own.
var ruleOps = []race.Op{
	ruleStep("rule-make", func(e *race.Env, _ ruleArg, _ *race.Event) unix.Errno {
		fd, errno := race.Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
		race.Close(fd)
		return errno
	}),
	ruleStep("rule-open", func(e *race.Env, a ruleArg, _ *race.Event) (errno unix.Errno) {
		e.FD[a.fd()], errno = race.Open(e.Dir, e.Name(), a.access, 0)
		return errno
	}),
	ruleStep("rule-dup", func(e *race.Env, _ ruleArg, _ *race.Event) unix.Errno {
		fd, err := unix.FcntlInt(uintptr(e.FD[firstFd]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err.(unix.Errno)
		}
		e.FD[secondFd] = fd
		return 0
	}),
	ruleStep("rule-lock", func(e *race.Env, a ruleArg, _ *race.Event) unix.Errno {
		return lockKinds[a.kind].apply(e, e.FD[a.fd()], lockHow{shared: a.shared})
	}),
	ruleStep("rule-unlock", func(e *race.Env, a ruleArg, _ *race.Event) unix.Errno {
		return lockKinds[a.kind].apply(e, e.FD[a.fd()], lockHow{unlock: true})
	}),
	ruleStep("rule-close", func(e *race.Env, a ruleArg, _ *race.Event) unix.Errno {
		errno := race.Close(e.FD[a.fd()])
		e.FD[a.fd()] = -1
		return errno
	}),
	ruleStep("rule-many", lockMany),
	ruleStep("rule-unlink", func(e *race.Env, _ ruleArg, ev *race.Event) unix.Errno {
		errno := race.Unlink(e.Dir, e.Name(), 0)
		if race.Fstat(e.FD[firstFd], &e.Stat) == 0 {
			ev.Links = uint32(e.Stat.Nlink)
		}
		return errno
	}),
	ruleStep("rule-churn", lockAndUnlink),
	ruleStep("rule-child", func(e *race.Env, _ ruleArg, _ *race.Event) unix.Errno { return e.Linger(e.FD[firstFd]) }),
	ruleStep("rule-exec", func(e *race.Env, _ ruleArg, _ *race.Event) unix.Errno {
		_, _ = unix.FcntlInt(uintptr(e.FD[firstFd]), unix.F_SETFD, 0) // not close-on-exec
		return race.ExecPause()
	}),
	ruleStep("rule-tidy", func(e *race.Env, _ ruleArg, _ *race.Event) unix.Errno {
		for _, i := range []int{firstFd, secondFd} {
			race.Close(e.FD[i])
			e.FD[i] = -1
		}
		race.Unlink(e.Dir, e.Name(), 0)
		return 0
	}),
}

func ruleStep(name string, do func(*race.Env, ruleArg, *race.Event) unix.Errno) race.Op {
	return race.Op{Name: name, Attempt: func(e *race.Env, ev *race.Event) unix.Errno { return do(e, unpackRule(e.Arg), ev) }}
}

// lockMany takes as many locks at once as it can, up to manyLocks, and lets them go: shared flocks through a descriptor
// each, fcntl locks on every other byte. Saw is how many it had.
func lockMany(e *race.Env, a ruleArg, ev *race.Event) (errno unix.Errno) {
	var fds []int
	for ev.Saw < manyLocks && errno == 0 {
		e.Progress()
		if lockKinds[a.kind].name == "flock" {
			var fd int
			if fd, errno = race.Open(e.Dir, e.Name(), unix.O_RDWR, 0); errno != 0 {
				break
			}
			fds = append(fds, fd)
			errno = race.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		} else {
			errno = lockByte(e, a.kind, int64(2*ev.Saw))
		}
		if errno == 0 {
			ev.Saw++
		}
	}
	for _, fd := range fds {
		e.Progress()
		race.Close(fd)
	}
	lockKinds[a.kind].apply(e, e.FD[firstFd], lockHow{unlock: true})
	return errno
}

// lockByte takes a write lock on one byte, posix or ofd.
func lockByte(e *race.Env, kind int, at int64) unix.Errno {
	cmd := unix.F_SETLK
	if lockKinds[kind].name == "ofd-lock" {
		cmd = unix.F_OFD_SETLK
	}
	e.Lock = unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET, Start: at, Len: 1}
	return race.Fcntl(e.FD[firstFd], cmd, &e.Lock)
}

const churns = 20

// lockAndUnlink makes, locks, removes and closes a file again and again, under one name.
func lockAndUnlink(e *race.Env, a ruleArg, ev *race.Event) unix.Errno {
	for range churns {
		e.Progress()
		fd, errno := race.Open(e.Dir, e.Own(), unix.O_CREAT|unix.O_RDWR, 0o600)
		if errno != 0 {
			return errno
		}
		errno = lockKinds[a.kind].apply(e, fd, lockHow{})
		if errno == 0 {
			errno = race.Unlink(e.Dir, e.Own(), 0)
		}
		race.Close(fd)
		if errno != 0 {
			return errno
		}
		ev.Saw++
	}
	return 0
}
