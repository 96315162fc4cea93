package faultfs

import (
	"fmt"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A node is an object that the kernel knows of. Its descriptor keeps the backing inode number from being reused.
type node struct {
	id      uint64
	ino     uint64
	fd      int // O_PATH
	lookups uint64
}

// nodes is the table of a mount. An object has one node, whatever its names: the kernel's own locks and caches go
// by it.
type nodes struct {
	mu    sync.Mutex
	byID  map[uint64]*node
	byIno map[uint64]*node
	last  uint64
}

func newNodes(root int) *nodes {
	r := &node{id: fuse.FUSE_ROOT_ID, fd: root, lookups: 1}
	return &nodes{byID: map[uint64]*node{r.id: r}, byIno: map[uint64]*node{}, last: r.id}
}

// fd returns the descriptor of a node. The kernel does not forget what it is asking about.
func (t *nodes) fd(id uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id].fd
}

// know takes the descriptor over and returns the object's node, with one more look-up.
func (t *nodes) know(fd int, ino uint64) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byIno[ino]
	if n == nil {
		t.last++
		n = &node{id: t.last, ino: ino, fd: fd}
		t.byID[n.id], t.byIno[ino] = n, n
	} else {
		unix.Close(fd)
	}
	n.lookups++
	return n
}

func (t *nodes) forget(id, lookups uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[id]
	if n == nil || id == fuse.FUSE_ROOT_ID {
		return
	}
	if n.lookups -= lookups; n.lookups == 0 {
		delete(t.byID, id)
		delete(t.byIno, n.ino)
		unix.Close(n.fd)
	}
}

// close closes all but the root, which is the share's.
func (t *nodes) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, n := range t.byID {
		if id != fuse.FUSE_ROOT_ID {
			unix.Close(n.fd)
		}
	}
	clear(t.byID)
}

// path names the object of a descriptor, whatever became of its name.
func path(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// entry fills the answer to a look-up from a descriptor, which it takes over.
func (m *mount) entry(fd int, out *fuse.EntryOut) fuse.Status {
	st, errno := m.status(fd)
	if errno != 0 {
		unix.Close(fd)
		return fuse.Status(errno)
	}
	n := m.nodes.know(fd, st.Ino)
	out.NodeId, out.Generation = n.id, 1
	m.fillAttr(&st, &out.Attr)
	out.SetAttrTimeout(m.share.attrTimeout())
	return fuse.OK
}

// attrTimeout is the kernel's. Where it ends, the mount's own attributes are those that are cached: each look-up
// would bring the kernel new ones.
func (s *Share) attrTimeout() time.Duration {
	if s.cachesForever() {
		return forever
	}
	return 0
}

// cachesForever is told to the kernel.
func (s *Share) cachesForever() bool { return s.has(ContentCached) && s.the(ContentCached).For == 0 }

// forever is a cache's timeout.
const forever = time.Hour

func status(fd int) (st unix.Stat_t, errno unix.Errno) {
	errno = code(unix.Fstat(fd, &st))
	return st, errno
}

func (m *mount) fillAttr(st *unix.Stat_t, a *fuse.Attr) {
	*a = fuse.Attr{
		Ino: st.Ino, Size: uint64(st.Size), Blocks: uint64(st.Blocks), Mode: st.Mode, Nlink: uint32(st.Nlink), Blksize: uint32(st.Blksize),
		Atime: uint64(st.Atim.Sec), Atimensec: uint32(st.Atim.Nsec), Mtime: uint64(st.Mtim.Sec), Mtimensec: uint32(st.Mtim.Nsec),
		Ctime: uint64(st.Ctim.Sec), Ctimensec: uint32(st.Ctim.Nsec), Owner: fuse.Owner{Uid: st.Uid, Gid: st.Gid},
	}
	m.spoilTimes(a)
	switch {
	case m.share.has(InodesUnstable):
		a.Ino = m.share.serial.Add(1)
	case m.share.has(InodesReused) && a.Mode&unix.S_IFMT == unix.S_IFREG:
		a.Ino = 1 // all have it, which is the same where there is one file at a time
	}
	if m.share.has(ModesFixed) {
		switch a.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			a.Mode = unix.S_IFREG | 0o644
		case unix.S_IFDIR:
			a.Mode = unix.S_IFDIR | 0o755
		}
	}
}

// code is the errno of a system call's error.
func code(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := err.(unix.Errno); ok {
		return errno
	}
	return unix.EIO
}
