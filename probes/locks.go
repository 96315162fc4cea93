package probes

import (
	"context"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// A lockKind is one of the three kinds of file lock that Linux has.
type lockKind struct {
	name  string
	apply func(e *race.Env, fd int, how lockHow) unix.Errno
	try   func(e *race.Env, _ *race.Event) unix.Errno // exclusively, without waiting, at the line
}

// A lockHow is what is asked of a lock.
type lockHow struct {
	shared, unlock, wait bool
}

var lockKinds = []lockKind{
	{"flock", flockLock, tryFlock},
	{"posix-lock", posixSetlk, tryPosix},
	{"ofd-lock", ofdSetlk, tryOfd},
}

// lockRefusals is what a filesystem without the lock says: ENOLCK is NFS without a lock daemon, ENOSYS Lustre
// mounted without flock, EBADF and EINVAL file servers without the operation.
var lockRefusals = []unix.Errno{unix.ENOLCK, unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL, unix.EBADF, unix.EPERM, unix.ENOTTY}

// lockBusy is what a lock says that another holds: fcntl(2) allows EACCES as well as EAGAIN.
var lockBusy = []unix.Errno{unix.EAGAIN, unix.EACCES}

//go:nosplit
func flockLock(_ *race.Env, fd int, how lockHow) unix.Errno {
	op := unix.LOCK_EX
	switch {
	case how.unlock:
		op = unix.LOCK_UN
	case how.shared:
		op = unix.LOCK_SH
	}
	if !how.wait {
		op |= unix.LOCK_NB
	}
	return race.Flock(fd, op)
}

//go:nosplit
func posixSetlk(e *race.Env, fd int, how lockHow) unix.Errno {
	return setlk(e, fd, how, unix.F_SETLK, unix.F_SETLKW)
}

//go:nosplit
func ofdSetlk(e *race.Env, fd int, how lockHow) unix.Errno {
	return setlk(e, fd, how, unix.F_OFD_SETLK, unix.F_OFD_SETLKW)
}

//go:nosplit
func tryFlock(e *race.Env, _ *race.Event) unix.Errno {
	fd, errno := lockFd(e)
	if errno != 0 {
		return errno
	}
	return race.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
}

//go:nosplit
func tryPosix(e *race.Env, _ *race.Event) unix.Errno {
	fd, errno := lockFd(e)
	if errno != 0 {
		return errno
	}
	return posixSetlk(e, fd, lockHow{})
}

//go:nosplit
func tryOfd(e *race.Env, _ *race.Event) unix.Errno {
	fd, errno := lockFd(e)
	if errno != 0 {
		return errno
	}
	return ofdSetlk(e, fd, lockHow{})
}

//go:nosplit
func setlk(e *race.Env, fd int, how lockHow, try, wait int) unix.Errno {
	e.Lock = unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET} // Len 0: the whole file; Pid 0, as OFD locks demand
	switch {
	case how.unlock:
		e.Lock.Type = unix.F_UNLCK
	case how.shared:
		e.Lock.Type = unix.F_RDLCK
	}
	if how.wait {
		try = wait
	}
	return race.Fcntl(fd, try, &e.Lock)
}

// The descriptors of an Env that lock operations use: two lock files take turns, so that a winner can hold on for
// a whole round while the next round has a free one.
const heldFd = 2 // the script's

// lockOps makes the operations of one kind of lock: taking it without blocking in a race, and the steps of scripts.
func lockOps(k lockKind) []race.Op {
	return []race.Op{
		{
			Name: k.name, Meets: meets(lockBusy...), Open: openLocks, Prepare: prepareColdLock, Clean: removeColdLock, Close: closeLocks,
			Attempt: k.try,
			Settle: func(e *race.Env, ev *race.Event) {
				if ev.Errno == 0 && !ev.Unready {
					ev.Released = race.Now()
					k.apply(e, e.FD[e.Num&1], lockHow{unlock: true})
				}
			},
		},
		{Name: k.name + ":try", Prepare: openHeld, Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
			return k.apply(e, e.FD[heldFd], lockHow{shared: e.Arg == askShared})
		}},
		{Name: k.name + ":wait", Prepare: openHeld, Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
			return k.apply(e, e.FD[heldFd], lockHow{shared: e.Arg == askShared, wait: true})
		}},
	}
}

// askShared is the argument of a lock step that asks for a shared lock.
const askShared = 1

// makeLocks is a script's step: one contender makes the lock files before any other has looked them up.
var makeLocks = race.Op{Name: "make-locks", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
	for i := range 2 {
		fd, errno := race.Open(e.Dir, lockName(e, i), unix.O_CREAT|unix.O_RDWR, 0o600)
		if errno != 0 {
			return errno
		}
		race.Close(fd)
	}
	return 0
}}

func lockName(e *race.Env, i int) *byte {
	copy(e.Buf[:], "lock0\x00")
	e.Buf[4] += byte(i)
	return &e.Buf[0]
}

// withLocks makes the lock files, and reports whether there are any. Where there are none it has judged.
func (b *Bench) withLocks(ctx context.Context, f *result.Finding) bool {
	s, e := b.script(ctx), newEvidence(makeLocks.Name)
	ev := s.do(0, makeLocks.Name, 0)
	if s.err == nil && ev.Errno == 0 {
		return true
	}
	e.add(&s.round, false, ruling{failed: true}, nil)
	decide(f, e, nil, b.MinProof, s.err)
	return false
}

func openLocks(e *race.Env) (errno unix.Errno) {
	for i := range 2 {
		if e.FD[i], errno = race.Open(e.Dir, lockName(e, i), unix.O_RDWR, 0); errno != 0 {
			return errno
		}
	}
	return 0
}

// prepareColdLock lets one contender make a lock file of the cold round's own, which nobody else touches before the
// start.
func prepareColdLock(e *race.Env) unix.Errno {
	if !e.Cold {
		return 0
	}
	race.Close(e.FD[e.Num&1])
	e.FD[e.Num&1] = -1
	if !e.First {
		return 0
	}
	if errno := e.MakeParent(); errno != 0 {
		return errno
	}
	fd, errno := race.Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
	race.Close(fd)
	return errno
}

// lockFd is the round's lock file: open already in a hot round, opened by the attempt in a cold one.
//
//go:nosplit
func lockFd(e *race.Env) (fd int, errno unix.Errno) {
	if e.Cold {
		e.FD[e.Num&1], errno = race.Open(e.Dir, e.Name(), unix.O_RDWR, 0)
	}
	return e.FD[e.Num&1], errno
}

func removeColdLock(e *race.Env) {
	if e.Cold {
		removeName(e)
	}
}

func closeLocks(e *race.Env) {
	for i := range 2 {
		race.Close(e.FD[i])
		e.FD[i] = -1
	}
}

// openHeld opens the round's file for a script, once.
func openHeld(e *race.Env) (errno unix.Errno) {
	if e.FD[heldFd] < 0 {
		e.FD[heldFd], errno = race.Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_RDWR, 0o600)
	}
	return errno
}

// notLocked is the control of all lock probes: a lock that is not taken. It asks for the file's status instead.
var notLocked = race.Op{
	Name: "no-lock", Meets: meets(), Open: openLocks, Prepare: prepareColdLock, Clean: removeColdLock, Close: closeLocks,
	Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		fd, errno := lockFd(e)
		if errno != 0 {
			return errno
		}
		return race.Fstat(fd, &e.Stat)
	},
	Settle: func(_ *race.Env, ev *race.Event) { ev.Released = race.Now() },
}

// The classes of a lock, at the scope that was tested.
const (
	enforced  = "enforced"
	localOnly = "local-only" // conflicts over one route, not across routes
	noOp      = "no-op"      // several holders, and no error
)

func runLock(kind string) func(context.Context, *Bench, *result.Finding) {
	return func(ctx context.Context, b *Bench, f *result.Finding) {
		if !b.withLocks(ctx, f) {
			return
		}
		c := contest{op: kind, control: "no-lock", lost: lockBusy, refusals: lockRefusals}
		c.run(ctx, b, f)
		f.Class = lockClass(f)
	}
}

// lockClass tells, from the violated rounds, over what distance the lock does not conflict. That it conflicts within a
// route is known only from rounds in which a route had several contenders. A lock that fails now and then is of no class.
func lockClass(f *result.Finding) string {
	switch {
	case f.Verdict == result.Holds:
		return enforced
	case f.Verdict != result.Broken || 2*f.Kinds[severalWinners] < f.Rounds || f.Rounds == 0:
		return ""
	}
	class := ""
	for i := range f.Violated {
		switch within, tested := sameRoute(&f.Violated[i]); {
		case within:
			return noOp
		case tested:
			class = localOnly
		}
	}
	return class
}

// sameRoute reports whether two contenders of one route held the lock, and whether that was tried on each route.
func sameRoute(r *result.Round) (within, tested bool) {
	holders, tried := map[int]int{}, map[int]int{}
	for _, ev := range r.Events {
		tried[ev.Route]++
		if ev.Errno == "" {
			holders[ev.Route]++
		}
	}
	tested = true
	for route, n := range tried {
		within = within || holders[route] > 1
		tested = tested && n > 1
	}
	return within, tested
}

const lockIsTested = "Contenders try to take the lock at the same instant, without waiting; the one that gets it holds on until all have " +
	"tried. Exactly one may get it. The files are fresh in a part of the rounds."

var flock = Probe{
	Name:    "flock",
	Promise: "flock(LOCK_EX) has one holder at a time.",
	Why: "Many programs rest on it, and it is the lock that filesystems most often pretend to have: it may succeed for " +
		"everybody, or conflict within one mount or host only.",
	How:     lockIsTested,
	Control: "a lock that is not taken",
	Broken:  "flock does not exclude here. On NFS look at local_lock and nolock, on Lustre at localflock, on SMB at nobrl; or use a protocol without locks, such as generations.",
	Refused: "flock does not exist here: on Lustre mount with flock; or use a protocol without locks, such as generations.",
	Ops:     append(lockOps(lockKinds[0]), notLocked, makeLocks),
	Run:     runLock("flock"),
}

var posixLock = Probe{
	Name:    "posix-lock",
	Promise: "fcntl(F_SETLK) write locks have one holder at a time.",
	Why: "Databases rest on it. On NFS it is the lock that the server sees; elsewhere it may be local, or need a daemon " +
		"that is not running.",
	How:     lockIsTested,
	Control: "a lock that is not taken",
	Broken:  "fcntl locks do not exclude here. On NFS look at local_lock and nolock, on SMB at nobrl; do not run databases on it; or use a protocol without locks, such as generations.",
	Refused: "fcntl locks do not exist here: on NFSv3 start the lock daemon; or use a protocol without locks, such as generations.",
	Ops:     lockOps(lockKinds[1]),
	Run:     runLock("posix-lock"),
}

var ofdLock = Probe{
	Name:    "ofd-lock",
	Promise: "fcntl(F_OFD_SETLK) write locks have one holder at a time.",
	Why: "Open-file-description locks are the fcntl locks that a close of another descriptor does not drop; to the server " +
		"they are the same as posix-lock.",
	How:     lockIsTested,
	Control: "a lock that is not taken",
	Broken:  "OFD locks do not exclude here. Use a protocol without locks, such as generations.",
	Refused: "OFD locks do not exist here: use flock or posix-lock if those hold, or a protocol without locks, such as generations.",
	Ops:     lockOps(lockKinds[2]),
	Run:     runLock("ofd-lock"),
}

// refusedLock tells a lock that is not to be had.
func refusedLock(errno uint32) bool { return slices.Contains(lockRefusals, unix.Errno(errno)) }
