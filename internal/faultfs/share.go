// Package faultfs is a FUSE filesystem that breaks promises on purpose: a loopback over a directory, with faults
// planted one at a time. It exists to show, on a real mount, that a probe can say something else than "holds".
//
// One Share may be mounted several times. Each mount is a superblock of its own, so that the parent lock of the VFS
// does not serialise creates across them; the mounts have the directory and the table of locks in common, as the
// clients of a server have. Nothing is cached by the kernel unless a fault says so. Without faults it keeps every
// promise. What a killed process leaves mounted, Sweep takes away. Its caveat: it needs root and /dev/fuse, and what a
// process does in its mounts is served by this one.
package faultfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A Share is a directory served to one or more mounts.
type Share struct {
	root     int // descriptor of dir
	faults   [kindCount]planted
	seed     uint64
	locks    lockTable
	closed   chan struct{} // ends what hangs
	mounts   []*mount
	late     sync.WaitGroup // what is done a moment after the call
	replaced sync.Map       // of places where a rename found something
	serial   atomic.Uint64
	began    time.Time
}

// planted is a fault, or none, and how often there was occasion for it.
type planted struct {
	fault atomic.Pointer[Fault]
	seen  atomic.Uint64
}

// New serves a directory, which stays the caller's. The seed decides on which occasions a fault fires that does so
// by chance.
func New(dir string, seed uint64, faults ...Fault) (*Share, error) {
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	s := &Share{root: root, seed: seed, closed: make(chan struct{}), locks: newLockTable(), began: time.Now()}
	for _, f := range faults {
		s.Plant(f)
	}
	return s, nil
}

// Plant plants a fault, in place of one of the same kind. LocksLocal and ContentCached must be planted before the
// mount: the kernel is told of them once.
func (s *Share) Plant(f Fault) { s.faults[f.Kind].fault.Store(&f) }

// Remove removes the fault of that kind.
func (s *Share) Remove(k Kind) { s.faults[k].fault.Store(nil) }

// has reports whether a fault of that kind is planted.
func (s *Share) has(k Kind) bool { return s.faults[k].fault.Load() != nil }

// fires reports whether the fault is due on this occasion.
func (s *Share) fires(k Kind) bool {
	f := s.faults[k].fault.Load()
	if f == nil {
		return false
	}
	n := s.faults[k].seen.Add(1)
	if f.P > 0 {
		return rand.New(rand.NewPCG(s.seed+uint64(k), n)).Float64() < f.P
	}
	return n%uint64(max(1, f.Every)) == 0
}

// firesLate is fires, and waits if so.
func (s *Share) firesLate(k Kind) bool {
	fires := s.fires(k)
	if fires {
		time.Sleep(s.the(k).Delay)
	}
	return fires
}

// firesOn is fires for a fault that can befall several calls.
func (s *Share) firesOn(k Kind, c Call) bool {
	f := s.faults[k].fault.Load()
	return f != nil && f.befalls(c) && s.fires(k)
}

// the is the planted fault of that kind; without one it has no measures.
func (s *Share) the(k Kind) Fault {
	if f := s.faults[k].fault.Load(); f != nil {
		return *f
	}
	return Fault{}
}

// Mount mounts the share. The directory must exist.
func (s *Share) Mount(at string) error {
	m := newMount(s, at)
	fd, err := attach(at)
	if err != nil {
		return fmt.Errorf("mount faultfs on %s: %w", at, err)
	}
	m.server, err = fuse.NewServer(m, fmt.Sprintf("/dev/fd/%d", fd), &fuse.MountOptions{
		MaxWrite: maxRead, EnableLocks: !s.has(LocksLocal), ExplicitDataCacheControl: s.cachesForever(),
		DisableXAttrs: true, DisableReadDirPlus: true, ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("serve faultfs on %s: %w", at, err), unix.Unmount(at, unix.MNT_DETACH))
	}
	s.mounts = append(s.mounts, m)
	go m.server.Serve()
	var st unix.Stat_t
	if err := errors.Join(awaken(at), unix.Stat(at, &st)); err != nil {
		return fmt.Errorf("mount faultfs on %s: %w", at, err)
	}
	m.minor = unix.Minor(st.Dev)
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
	if err := errors.Join(errs...); err != nil {
		return err // what is detached is still served: the number of the root must not become another directory's
	}
	return unix.Close(s.root)
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
	if err := m.end(); err != nil {
		return fmt.Errorf("end the server of %s: %w", m.at, err)
	}
	m.nodes.close()
	m.names.close()
	return nil
}

// end waits for the server, which ends with the last copy of the mount. One in another mount namespace can last: the
// connection is aborted then.
func (m *mount) end() error {
	done := make(chan struct{})
	go func() {
		m.server.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(busyTries * busyPause):
	}
	if err := abort(m.minor); err != nil {
		return err
	}
	<-done
	return nil
}

// later does something after the call that it belongs to.
func (s *Share) later(d time.Duration, f func()) {
	s.late.Add(1)
	time.AfterFunc(d, func() {
		defer s.late.Done()
		f()
	})
}
