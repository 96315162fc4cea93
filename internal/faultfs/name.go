package faultfs

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// names is what a mount remembers of look-ups, with the faults that make it remember.
type names struct {
	mu sync.Mutex
	at map[entryName]int // the object's descriptor; -1 for none
	of map[uint64]listing
}

type entryName struct {
	parent uint64
	name   string
}

// A listing is what a directory held at a time.
type listing struct {
	entries []os.DirEntry
	at      time.Time
}

func newNames() *names { return &names{at: map[entryName]int{}, of: map[uint64]listing{}} }

// get returns a descriptor of its own.
func (n *names) get(at entryName) (fd int, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fd, known = n.at[at]
	if fd > 0 {
		fd, _ = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	return fd, known
}

// put remembers. The descriptor stays the caller's.
func (n *names) put(at entryName, fd int) {
	if fd >= 0 {
		fd, _ = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(at)
	n.at[at] = fd
}

// changed forgets what the mount itself has made or removed.
func (n *names) changed(parent uint64, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(entryName{parent, name})
	delete(n.of, parent)
}

// listing gives what was listed before, unless that was longer ago than the cache lasts; 0 is for ever.
func (n *names) listing(dir uint64, last time.Duration, list func() ([]os.DirEntry, error)) ([]os.DirEntry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l, known := n.of[dir]; known && (last == 0 || time.Since(l.at) < last) {
		return l.entries, nil
	}
	entries, err := list()
	if err == nil {
		n.of[dir] = listing{entries, time.Now()}
	}
	return entries, err
}

func (n *names) drop(at entryName) {
	if fd, known := n.at[at]; known && fd >= 0 {
		unix.Close(fd)
	}
	delete(n.at, at)
}

func (n *names) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for at := range n.at {
		n.drop(at)
	}
}
