package faultfs

import (
	"os"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A mount is one superblock of a share.
type mount struct {
	fuse.RawFileSystem // ENOSYS for what is not here
	share              *Share
	at                 string
	minor              uint32 // of its device number, by which its connection is known
	first              bool   // of the share's mounts
	server             *fuse.Server
	nodes              *nodes
	names              *names
	attrs              attrs
	removed            sync.Map // numbers of objects that this mount has removed, with RemovedStale

	mu      sync.Mutex
	locked  map[uint64]time.Time // when this mount last locked a file, with LocksGrantedCold
	handles map[uint64]*handle
	listed  map[uint64][]os.DirEntry // by open directories
	last    uint64
}

// A handle is an open file.
type handle struct {
	fd     int
	ino    uint64
	access int // O_RDONLY, O_WRONLY or O_RDWR
}

func newMount(s *Share, at string) *mount {
	return &mount{
		RawFileSystem: fuse.NewDefaultRawFileSystem(), share: s, at: at, first: len(s.mounts) == 0,
		nodes: newNodes(s.root), names: newNames(), attrs: attrs{of: map[uint64]seenAttr{}},
		locked: map[uint64]time.Time{}, handles: map[uint64]*handle{}, listed: map[uint64][]os.DirEntry{},
	}
}

func (m *mount) handle(fh uint64) *handle {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.handles[fh]
}

// opened makes a handle of a descriptor.
func (m *mount) opened(fd int, flags uint32, out *fuse.OpenOut) fuse.Status {
	st, errno := status(fd)
	if errno != 0 {
		unix.Close(fd)
		return fuse.Status(errno)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.handles[m.last] = &handle{fd, st.Ino, int(flags) & unix.O_ACCMODE}
	out.Fh, out.OpenFlags = m.last, fuse.FOPEN_DIRECT_IO
	if m.share.has(ContentCached) {
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	}
	return fuse.OK
}

// hang waits for the end of the share, whatever the caller does meanwhile.
func (m *mount) hang() fuse.Status {
	<-m.share.closed
	return fuse.EIO
}

// openFlags are those of an open(2) that concern the backing file.
func openFlags(flags uint32) int {
	return int(flags)&(unix.O_ACCMODE|unix.O_TRUNC|unix.O_APPEND) | unix.O_CLOEXEC | unix.O_NOFOLLOW
}

func (m *mount) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if m.share.fires(HangOpen) {
		return m.hang()
	}
	if m.share.fires(OpenStale) {
		return fuse.Status(unix.ESTALE)
	}
	known := m.nodes.fd(in.NodeId)
	if m.stale(known) {
		return fuse.Status(unix.ESTALE)
	}
	fd, err := unix.Open(path(known), openFlags(in.Flags)&^unix.O_NOFOLLOW, 0)
	if err != nil {
		return fuse.Status(code(err))
	}
	if in.Flags&unix.O_TRUNC != 0 {
		m.stamp(fd)
		m.changed(fd)
	}
	return m.opened(fd, in.Flags, out)
}

func (m *mount) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	s := m.share
	if s.fires(HangOpen) {
		return m.hang()
	}
	c := Create
	if in.Flags&unix.O_EXCL != 0 {
		c = CreateNew
	}
	name, errno := m.makes(c, name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	dir := m.nodes.fd(in.NodeId)
	fd, errno := s.create(dir, name, in.Flags, in.Mode)
	if errno != 0 {
		errno = s.taken(c, errno)
	} else {
		errno = s.after(c, dir, func(dir int) { unix.Unlinkat(dir, name, 0) })
	}
	if errno != 0 {
		unix.Close(fd)
		return fuse.Status(errno)
	}
	m.stamp(fd)
	m.changed(fd)
	m.names.changed(in.NodeId, name)
	known, err := unix.Open(path(fd), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(fd)
		return fuse.Status(code(err))
	}
	if st := m.entry(known, entryName{in.NodeId, name}, &out.EntryOut); st != fuse.OK {
		unix.Close(fd)
		return st
	}
	return m.opened(fd, in.Flags, &out.OpenOut)
}

// create opens or makes a file with exactly the mode asked for. The descriptor is -1 after an error.
func (s *Share) create(dir int, name string, flags, mode uint32) (int, unix.Errno) {
	exclusive := flags&unix.O_EXCL != 0
	switch {
	case exclusive && s.firesLate(ExclDropped):
		exclusive = false
	case exclusive && s.firesLate(ExclTruncates):
		exclusive = false
		flags |= unix.O_TRUNC
	}
	fd, err := unix.Openat(dir, name, openFlags(flags)|unix.O_CREAT|unix.O_EXCL, mode)
	switch {
	case err == unix.EEXIST && flags&unix.O_EXCL == 0 && s.fires(CreateTaken):
	case err == nil:
		return fd, code(unix.Fchmod(fd, mode&0o7777))
	case err == unix.EEXIST && !exclusive:
		fd, err = unix.Openat(dir, name, openFlags(flags)|unix.O_NONBLOCK, 0) // a fifo would wait for a reader
	case err == unix.EEXIST && s.fires(LoserTruncates):
		if fd, e := unix.Openat(dir, name, unix.O_WRONLY|unix.O_TRUNC|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); e == nil {
			unix.Close(fd)
		}
	}
	return fd, code(err)
}

func absent(dir int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT
}
