package faultfs

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// attrs is what a mount remembers of attributes, by inode number, with the faults that make it remember.
type attrs struct {
	mu sync.Mutex
	of map[uint64]seenAttr
}

type seenAttr struct {
	st unix.Stat_t
	at time.Time
}

// status is that of an object, or what the mount remembers of it.
func (m *mount) status(fd int) (unix.Stat_t, unix.Errno) {
	st, errno := status(fd)
	if last, cached := m.share.attrsLast(); errno == 0 && cached {
		st = m.attrs.remembered(st, last)
	}
	return st, errno
}

// attrsLast says how long a mount remembers attributes, if it does; 0 is for ever.
func (s *Share) attrsLast() (last time.Duration, cached bool) {
	switch {
	case s.has(AttrCached):
		return s.the(AttrCached).For, true
	case s.has(ContentCached) && !s.cachesForever():
		return s.the(ContentCached).For, true
	}
	return 0, false
}

// remembered is what was seen before, unless that was longer ago than the cache lasts.
func (a *attrs) remembered(now unix.Stat_t, last time.Duration) unix.Stat_t {
	a.mu.Lock()
	defer a.mu.Unlock()
	if seen, known := a.of[now.Ino]; known && (last == 0 || time.Since(seen.at) < last) {
		return seen.st
	}
	a.of[now.Ino] = seenAttr{now, time.Now()}
	return now
}

func (a *attrs) forget(ino uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, ino)
}

// changed is told of what this mount itself has changed: as with NFS, the answer to that brings new attributes.
func (m *mount) changed(fd int) {
	if _, cached := m.share.attrsLast(); !cached {
		return
	}
	if st, errno := status(fd); errno == 0 {
		m.attrs.forget(st.Ino)
		m.attrs.remembered(st, 0)
	}
}

// removes is told of a name that this mount itself removes or replaces.
func (m *mount) removes(dir int, name string) {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return
	}
	m.attrs.forget(st.Ino)
	if m.share.has(RemovedStale) {
		m.removed.Store(st.Ino, true)
	}
}

// stale says of an object that another mount has removed it, with that fault.
func (m *mount) stale(fd int) bool {
	if !m.share.has(RemovedStale) {
		return false
	}
	st, errno := status(fd)
	if errno != 0 || st.Nlink > 0 {
		return false
	}
	_, own := m.removed.Load(st.Ino)
	return !own && m.share.fires(RemovedStale)
}
