package explore

import (
	"syscall"

	"github.com/claimbench/claimbench/engine"
)

// apply does one step of a contender. With a weakness a step can have several
// endings; choice says which, and 0 is what a filesystem without it does. more
// says that the step has come half-way and is still to be finished.
func (m *model) apply(who int, op Op, choice int) (r Result, more bool) {
	switch op.Verb {
	case Create:
		return m.create(who, op.Path, choice)
	case WriteAt, Touch, Fstat, Sync, Close, ReadAt, TryLock:
		return m.onHandle(who, op)
	case Now:
		m.w.touch(ClockSkew, CoarseTimes)
		return Result{Time: m.stamp(who)}, false
	case Link:
		return Result{Errno: m.link(who, op.Path, op.To, choice)}, false
	case Rename:
		return Result{Errno: m.rename(who, op.Path, op.To)}, false
	case Begin, Finish, Poll, End:
		return Result{}, false
	case ReadClock:
		return Result{Time: m.now + int64(who)*int64(offset)}, false
	default:
		return m.onName(who, op, choice), false
	}
}

// endings counts the choices that apply has.
func (m *model) endings(who int, op Op) int {
	switch {
	case m.weak == LostReply && !m.lost[who] && (op.Verb == Create || op.Verb == Mkdir || op.Verb == Link):
		return 2
	case m.weak == StaleNegative && (op.Verb == Open || op.Verb == Lstat) && m.knownAbsent(who, op.Path):
		return 2
	case m.weak == StaleReaddir && op.Verb == List:
		return 2
	default:
		return 1
	}
}

func (m *model) onName(who int, op Op, choice int) Result {
	if choice == 1 && (op.Verb == Open || op.Verb == Lstat) {
		return Result{Errno: syscall.ENOENT}
	}
	s, errno := m.find(op.Path)
	if m.weak == StaleNegative {
		m.remember(who, op.Path, errno == 0 && s.there() || op.Verb != Open && op.Verb != Lstat)
	}
	if errno != 0 {
		return Result{Errno: errno}
	}
	switch op.Verb {
	case Open:
		return m.openFor(who, s, false)
	case Lstat:
		if !s.there() {
			m.w.touch(StaleNegative)
			return Result{Errno: syscall.ENOENT}
		}
		return m.stat(who, m.node(s.id))
	case Mkdir:
		return Result{Errno: m.mkdir(who, s, choice)}
	case Unlink:
		return Result{Errno: m.unlink(who, s)}
	case Rmdir:
		return Result{Errno: m.rmdir(who, s)}
	case List:
		return m.list(who, s, choice)
	case Overwrite:
		return m.overwrite(who, s)
	case OpenLock:
		return m.openFor(who, s, true)
	default:
		panic("explore: no such step: " + op.Verb.String())
	}
}

// create is exclusive. Where that is not atomic the look-up comes first, and
// what another made in between is opened.
func (m *model) create(who int, name uint16, choice int) (r Result, more bool) {
	s, errno := m.find(name)
	if errno != 0 {
		return Result{Errno: errno}, false
	}
	m.remember(who, name, true)
	m.w.touch(ExclNotAtomic)
	switch {
	case m.half[who]:
		m.half[who] = false
	case s.there():
		return Result{Errno: syscall.EEXIST}, false
	case m.weak == ExclNotAtomic:
		m.half[who] = true
		return Result{}, true
	}
	if !s.there() {
		s.id = m.add(who, s, engine.Regular)
	} else if m.node(s.id).kind != engine.Regular {
		return Result{Errno: syscall.EEXIST}, false
	}
	if m.loses(who, choice) {
		return Result{Errno: syscall.EEXIST}, false
	}
	return Result{Handle: m.open(who, s.id)}, false
}

func (m *model) loses(who, choice int) bool {
	m.w.touch(LostReply)
	if m.weak != LostReply || choice == 0 {
		return false
	}
	m.lost[who] = true
	return true
}

func (m *model) mkdir(who int, s spot, choice int) syscall.Errno {
	if s.there() {
		return syscall.EEXIST
	}
	m.add(who, s, engine.Directory)
	if m.loses(who, choice) {
		return syscall.EEXIST
	}
	return 0
}

func (m *model) openFor(who int, s spot, lock bool) Result {
	switch {
	case !s.there() && !lock:
		m.w.touch(StaleNegative)
		return Result{Errno: syscall.ENOENT}
	case !s.there():
		s.id = m.add(who, s, engine.Regular)
	case lock && m.node(s.id).kind == engine.Directory:
		return Result{Errno: syscall.EISDIR}
	}
	return Result{Handle: m.open(who, s.id)}
}

func (m *model) overwrite(who int, s spot) Result {
	switch {
	case !s.there():
		s.id = m.add(who, s, engine.Regular)
	case m.node(s.id).kind == engine.Directory:
		return Result{Errno: syscall.EISDIR}
	default:
		m.node(s.id).data = 0
		m.changed(s.id, who)
	}
	return Result{Handle: m.open(who, s.id)}
}

func (m *model) unlink(who int, s spot) syscall.Errno {
	switch {
	case !s.there():
		return syscall.ENOENT
	case m.node(s.id).kind == engine.Directory:
		return syscall.EISDIR
	case m.weak == NoUnlink:
		return syscall.EPERM
	}
	m.w.touch(NoUnlink)
	m.leave(who, s)
	return 0
}

func (m *model) rmdir(who int, s spot) syscall.Errno {
	switch {
	case s.root:
		return syscall.EINVAL
	case !s.there():
		return syscall.ENOENT
	case m.node(s.id).kind != engine.Directory:
		return syscall.ENOTDIR
	case !m.empty(s.id):
		return syscall.ENOTEMPTY
	}
	m.leave(who, s)
	return 0
}

func (m *model) link(who int, from, to uint16, choice int) syscall.Errno {
	s, errno := m.find(from)
	if errno != 0 {
		return errno
	}
	if !s.there() {
		return syscall.ENOENT
	}
	d, errno := m.find(to)
	m.remember(who, to, true)
	m.w.touch(NoLinks)
	switch {
	case errno != 0:
		return errno
	case d.there():
		return syscall.EEXIST
	case m.node(s.id).kind == engine.Directory, m.weak == NoLinks:
		return syscall.EPERM
	}
	m.enter(who, d, s.id)
	m.node(s.id).ctime = m.stamp(who)
	if m.loses(who, choice) {
		return syscall.EEXIST
	}
	return 0
}
