package faultfs

import (
	"slices"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// few is how many holders a file may have.
const few = 100

// accessFor is the mode of opening in which fcntl(2) refuses a lock of that type.
var accessFor = map[uint32]int{unix.F_WRLCK: unix.O_RDONLY, unix.F_RDLCK: unix.O_WRONLY}

// refusedLocks are the faults by which a lock is refused.
var refusedLocks = []struct {
	kind  Kind
	errno unix.Errno
}{{LocksENOLCK, unix.ENOLCK}, {LocksENOSYS, unix.ENOSYS}, {LocksEOPNOTSUPP, unix.EOPNOTSUPP}, {LocksEIO, unix.EIO}}

func (m *mount) SetLk(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return m.setLock(cancel, in, false)
}

func (m *mount) SetLkw(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return m.setLock(cancel, in, true)
}

func (m *mount) setLock(cancel <-chan struct{}, in *fuse.LkIn, wait bool) fuse.Status {
	s, h := m.share, m.handle(in.Fh)
	c, file := Fcntl, lockedFile{h.ino, in.LkFlags&fuse.FUSE_LK_FLOCK != 0}
	if file.flock {
		c = Flock
	}
	if in.Lk.Typ == unix.F_UNLCK {
		return m.unlock(file, in)
	}
	if errno := s.refusesLock(c, file, h, in, wait); errno != 0 {
		return fuse.Status(errno)
	}
	owner := lockOwner{mount: m, owner: in.Owner}
	if s.has(LocksOfProcesses) && file.flock {
		owner = lockOwner{m, uint64(in.Lk.Pid), true}
	}
	if s.fires(HangLock) {
		return m.hang()
	}
	if s.firesOn(LocksGranted, c) {
		return fuse.OK
	}
	l, cold := lock{in.Lk.Typ == unix.F_RDLCK, in.Fh}, m.cold(h.ino) && s.firesOn(LocksGrantedCold, c)
	conflict := func(other lockOwner, held lock) bool {
		return !(cold && other.mount != m) && s.conflict(other == owner, held, l)
	}
	return s.acquire(cancel, wait, func() <-chan struct{} { return s.locks.take(file, owner, l, conflict) })
}

// unlock is never refused.
func (m *mount) unlock(file lockedFile, in *fuse.LkIn) fuse.Status {
	owner := lockOwner{mount: m, owner: in.Owner}
	m.share.locks.drop(func(f lockedFile, o lockOwner, l lock) bool {
		return f == file && (o == owner || o.pid && l.handle == in.Fh)
	})
	return fuse.OK
}

func (s *Share) refusesLock(c Call, file lockedFile, h *handle, in *fuse.LkIn, wait bool) unix.Errno {
	for _, r := range refusedLocks {
		if s.firesOn(r.kind, c) {
			return r.errno
		}
	}
	switch {
	case wait && s.firesOn(LocksEDEADLK, c):
		return unix.EDEADLK
	case s.has(FlockByFcntl) && file.flock && h.access == accessFor[in.Lk.Typ]:
		return unix.EBADF
	case s.has(LocksFew) && s.locks.holders(file) >= few:
		return unix.ENOLCK
	}
	return 0
}

// cold reports whether this mount has not locked the file before, or not for as long as the fault says.
func (m *mount) cold(ino uint64) bool {
	if !m.share.has(LocksGrantedCold) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.locked[ino]
	m.locked[ino] = time.Now()
	idle := m.share.the(LocksGrantedCold).For
	return !known || idle > 0 && time.Since(last) > idle
}

// acquire tries until the lock is taken, or once only.
func (s *Share) acquire(cancel <-chan struct{}, wait bool, take func() (retry <-chan struct{})) fuse.Status {
	for {
		retry := take()
		switch {
		case retry == nil:
			return fuse.OK
		case !wait:
			return fuse.EAGAIN
		case s.has(LockWaitersSleep):
			retry = nil
		}
		select {
		case <-retry:
		case <-cancel:
			return fuse.EINTR
		case <-s.closed:
			return fuse.EIO
		}
	}
}

func (s *Share) conflict(own bool, a, b lock) bool {
	if own {
		return s.has(LocksNotConverted) && a.shared && !b.shared
	}
	return !a.shared || !b.shared || s.has(LocksSharedAreExclusive)
}

// Flush is sent by every close: it drops the fcntl locks of the process.
func (m *mount) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	file, owner := lockedFile{ino: m.handle(in.Fh).ino}, lockOwner{mount: m, owner: in.LockOwner}
	if m.share.has(LocksDroppedByClose) {
		m.share.locks.drop(func(f lockedFile, o lockOwner, l lock) bool {
			return f.ino == file.ino && o.mount == m && l.handle != in.Fh
		})
	}
	m.share.letGo(func(f lockedFile, o lockOwner, _ lock) bool { return f == file && o == owner })
	return fuse.OK
}

// dropHandle drops what was locked through an open file description that is gone: flock and OFD locks.
func (m *mount) dropHandle(fh uint64) {
	m.share.letGo(func(_ lockedFile, o lockOwner, l lock) bool { return o.mount == m && l.handle == fh })
}

// letGo releases what a holder has left, at once unless a fault says otherwise.
func (s *Share) letGo(p pick) {
	late := s.has(LocksReleasedLate)
	if !late && !s.has(LocksOutliveHolder) {
		s.locks.drop(p)
		return
	}
	left := s.locks.orphan(p)
	if !late || len(left) == 0 {
		return
	}
	release := func() {
		s.locks.drop(func(_ lockedFile, o lockOwner, _ lock) bool { return slices.Contains(left, o) })
	}
	if s.fires(LocksReleasedLate) {
		s.later(s.the(LocksReleasedLate).For, release)
	} else {
		release()
	}
}
