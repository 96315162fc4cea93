package faultfs

import (
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
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

func (m *mount) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return m.attr(in.NodeId, out)
}

func (m *mount) attr(id uint64, out *fuse.AttrOut) fuse.Status {
	fd := m.nodes.fd(id)
	if m.stale(fd) {
		return fuse.Status(unix.ESTALE)
	}
	st, errno := m.status(fd)
	m.fillAttr(&st, &out.Attr)
	out.SetTimeout(m.share.attrTimeout())
	return fuse.Status(errno)
}

// SetAttr changes size, owner, mode and times.
func (m *mount) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	p := path(m.nodes.fd(in.NodeId))
	if err := m.truncate(p, in); err != nil {
		return fuse.Status(code(err))
	}
	if err := chown(p, in); err != nil {
		return fuse.Status(code(err))
	}
	if mode, ok := in.GetMode(); ok {
		if err := unix.Chmod(p, mode&0o7777); err != nil {
			return fuse.Status(code(err))
		}
	}
	if errno := m.setTimes(in, p); errno != 0 {
		return fuse.Status(errno)
	}
	m.changed(m.nodes.fd(in.NodeId))
	return m.attr(in.NodeId, out)
}

// truncate changes the size, where that is asked for. Other than truncate(2), ftruncate(2) stamps the file even if it
// has that size.
func (m *mount) truncate(file string, in *fuse.SetAttrIn) error {
	size, asked := in.GetSize()
	if !asked {
		return nil
	}
	if fh, ok := in.GetFh(); ok {
		return unix.Ftruncate(m.handle(fh).fd, int64(size))
	}
	return unix.Truncate(file, int64(size))
}

// chown changes owner and group, where that is asked for.
func chown(file string, in *fuse.SetAttrIn) error {
	uid, user := in.GetUID()
	gid, group := in.GetGID()
	if !user && !group {
		return nil
	}
	owner := [2]int{-1, -1}
	if user {
		owner[0] = int(uid)
	}
	if group {
		owner[1] = int(gid)
	}
	return unix.Chown(file, owner[0], owner[1])
}
