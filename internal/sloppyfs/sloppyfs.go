// Package sloppyfs is a FUSE filesystem that breaks promises on purpose: a loopback over a directory, with faults
// planted one at a time. It exists to show, on a real mount, that a probe can say something else than "holds".
//
// One Share may be mounted several times. Each mount is a superblock of its own, so that the parent lock of the VFS
// does not serialise creates across them; the mounts have the directory and the table of locks in common, as the
// clients of a server have. Nothing is cached by the kernel unless a fault says so. Without faults it keeps every
// promise. Its caveat: it needs root and /dev/fuse, and what a process does in its mounts is served by this one.
package sloppyfs

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A Share is a directory served to one or more mounts.
type Share struct {
	dir      string
	root     int // descriptor of dir
	faults   [faultCount]planted
	locks    lockTable
	closed   chan struct{} // ends what hangs
	mounts   []*mount
	late     sync.WaitGroup // what is done a moment after the call
	replaced sync.Map       // of places where a rename found something
	serial   atomic.Uint64
	began    time.Time
}

// planted is a fault and its occasions.
type planted struct {
	every, seen atomic.Int64
	on          atomic.Int64 // bit set of Calls; 0 is all
}

// New serves a directory, which stays the caller's.
func New(dir string, faults ...Fault) (*Share, error) {
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	s := &Share{dir: dir, root: root, closed: make(chan struct{}), locks: newLockTable(), began: time.Now()}
	for _, f := range faults {
		s.Plant(f, 1)
	}
	return s, nil
}

// Plant makes a fault fire on each every-th occasion; 0 removes it. A fault that can befall several calls is
// limited to those named. LocksLocal and ContentCached must be planted before the mount: the kernel is told of
// them once.
func (s *Share) Plant(f Fault, every int, on ...Call) {
	bits := int64(0)
	for _, c := range on {
		bits |= 1 << c
	}
	s.faults[f].on.Store(bits)
	s.faults[f].every.Store(int64(every))
}

// has reports whether the fault is planted at all.
func (s *Share) has(f Fault) bool { return s.faults[f].every.Load() != 0 }

// fires reports whether the fault is due on this occasion.
func (s *Share) fires(f Fault) bool {
	every := s.faults[f].every.Load()
	return every != 0 && s.faults[f].seen.Add(1)%every == 0
}

// firesOn is fires for a fault that can befall several calls.
func (s *Share) firesOn(f Fault, c Call) bool {
	on := s.faults[f].on.Load()
	return (on == 0 || on>>c&1 != 0) && s.fires(f)
}

// Mount mounts the share. The directory must exist.
func (s *Share) Mount(at string) error {
	m := &mount{RawFileSystem: fuse.NewDefaultRawFileSystem(), share: s, at: at, first: len(s.mounts) == 0, nodes: newNodes(s.root), handles: map[uint64]*handle{}, names: newNames()}
	server, err := fuse.NewServer(m, at, &fuse.MountOptions{
		FsName: s.dir, Name: "sloppyfs", DirectMountStrict: true,
		EnableLocks: !s.has(LocksLocal), ExplicitDataCacheControl: s.has(ContentCached),
		DisableXAttrs: true, DisableReadDirPlus: true,
	})
	if err != nil {
		return fmt.Errorf("mount sloppyfs on %s: %w", at, err)
	}
	m.server = server
	s.mounts = append(s.mounts, m)
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return fmt.Errorf("mount sloppyfs on %s: %w", at, err)
	}
	return nil
}

// Close ends what hangs, unmounts, and returns when the servers are done. A mount that is still in use is detached.
func (s *Share) Close() error {
	close(s.closed)
	s.locks.wakeAll()
	var errs []error
	for _, m := range s.mounts {
		errs = append(errs, m.unmount())
	}
	s.late.Wait()
	return errors.Join(append(errs, unix.Close(s.root))...)
}

const (
	busyTries = 100
	busyPause = 20 * time.Millisecond
)

// unmount waits a moment for processes that are just ending; a detached mount is gone with the last of them.
func (m *mount) unmount() error {
	err := unix.Unmount(m.at, 0)
	for range busyTries {
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(busyPause)
		err = unix.Unmount(m.at, 0)
	}
	if errors.Is(err, unix.EBUSY) {
		return errors.Join(fmt.Errorf("unmount %s: %w; detached", m.at, err), unix.Unmount(m.at, unix.MNT_DETACH))
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", m.at, err)
	}
	m.server.Wait()
	m.nodes.close()
	m.names.close()
	return nil
}

// later does something a moment after the call that it belongs to.
func (s *Share) later(f func()) { s.laterBy(delay, f) }

func (s *Share) laterBy(d time.Duration, f func()) {
	s.late.Add(1)
	time.AfterFunc(d, func() {
		defer s.late.Done()
		f()
	})
}

// delay is how long that takes.
const delay = 2 * time.Millisecond

// brief is how long a mount says that a name is absent which it found absent.
const brief = 200 * time.Millisecond

// gap is how long a step that ought to be part of another takes: long enough for another contender to come between.
const gap = 300 * time.Microsecond

// forever is a cache's timeout.
const forever = time.Hour
