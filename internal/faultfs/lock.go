package faultfs

import (
	"maps"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A lockTable holds the locks of a share, on whole files: flock and fcntl locks do not see each other.
type lockTable struct {
	mu    sync.Mutex
	files map[lockedFile]map[lockOwner]lock
	freed chan struct{} // closed, and made anew, at each release
	gone  uint64
}

type lockedFile struct {
	ino   uint64
	flock bool
}

// A lockOwner is what the kernel calls an owner; the kernels of two mounts do not agree on names. An owner that is
// gone has no mount: its name may come back.
type lockOwner struct {
	mount *mount
	owner uint64
	pid   bool // the owner is a process
}

// few is how many holders a file may have.
const few = 100

// accessFor is the mode of opening in which fcntl(2) refuses a lock of that type.
var accessFor = map[uint32]int{unix.F_WRLCK: unix.O_RDONLY, unix.F_RDLCK: unix.O_WRONLY}

type lock struct {
	shared bool
	handle uint64 // through which it was taken
}

func newLockTable() lockTable {
	return lockTable{files: map[lockedFile]map[lockOwner]lock{}, freed: make(chan struct{})}
}

// take takes the lock, or returns the channel that is closed when it is worth trying again.
func (t *lockTable) take(f lockedFile, o lockOwner, l lock, conflict func(own bool, a, b lock) bool) (retry <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, held := range t.files[f] {
		if conflict(other == o, held, l) {
			return t.freed
		}
	}
	if t.files[f] == nil {
		t.files[f] = map[lockOwner]lock{}
	}
	t.files[f][o] = l
	return nil
}

// drop releases what the predicate picks. With orphans, it leaves that to owners who are gone.
func (t *lockTable) drop(orphans bool, pick func(lockedFile, lockOwner, lock) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f, holders := range t.files {
		for o, l := range maps.Clone(holders) {
			if !pick(f, o, l) {
				continue
			}
			delete(holders, o)
			if orphans {
				t.gone++
				holders[lockOwner{owner: t.gone}] = l
			}
		}
		if len(holders) == 0 {
			delete(t.files, f)
		}
	}
	t.wake()
}

func (t *lockTable) holders(f lockedFile) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.files[f])
}

func (t *lockTable) wake() {
	close(t.freed)
	t.freed = make(chan struct{})
}

func (t *lockTable) wakeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake()
}

func (m *mount) SetLk(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return m.setLock(cancel, in, false)
}

func (m *mount) SetLkw(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return m.setLock(cancel, in, true)
}

func (m *mount) setLock(cancel <-chan struct{}, in *fuse.LkIn, wait bool) fuse.Status {
	s := m.share
	for f, errno := range refusedLocks {
		if s.has(f) {
			return fuse.Status(errno)
		}
	}
	h := m.handle(in.Fh)
	file := lockedFile{h.ino, in.LkFlags&fuse.FUSE_LK_FLOCK != 0}
	owner := lockOwner{mount: m, owner: in.Owner}
	if in.Lk.Typ == unix.F_UNLCK {
		s.locks.drop(false, func(f lockedFile, o lockOwner, l lock) bool {
			return f == file && (o == owner || o.pid && l.handle == in.Fh)
		})
		return fuse.OK
	}
	switch {
	case s.has(FlockByFcntl) && file.flock && h.access == accessFor[in.Lk.Typ]:
		return fuse.EBADF
	case s.has(LocksFew) && s.locks.holders(file) >= few:
		return fuse.Status(unix.ENOLCK)
	case s.has(LocksOfProcesses) && file.flock:
		owner = lockOwner{m, uint64(in.Lk.Pid), true}
	}
	if s.fires(HangLock) {
		return m.hang()
	}
	if s.fires(LocksGranted) {
		return fuse.OK
	}
	l := lock{in.Lk.Typ == unix.F_RDLCK, in.Fh}
	for {
		retry := s.locks.take(file, owner, l, s.conflict)
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
		m.share.locks.drop(false, func(f lockedFile, o lockOwner, l lock) bool {
			return f.ino == file.ino && o.mount == m && l.handle != in.Fh
		})
	}
	m.share.locks.drop(m.share.has(LocksOutliveHolder), func(f lockedFile, o lockOwner, _ lock) bool { return f == file && o == owner })
	return fuse.OK
}

// dropHandle drops what was locked through an open file description that is gone: flock and OFD locks.
func (m *mount) dropHandle(fh uint64) {
	m.share.locks.drop(m.share.has(LocksOutliveHolder), func(_ lockedFile, o lockOwner, l lock) bool { return o.mount == m && l.handle == fh })
}
