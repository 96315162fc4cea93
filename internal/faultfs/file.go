package faultfs

import (
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
	first              bool // of the share's mounts
	server             *fuse.Server
	nodes              *nodes
	names              *names

	mu      sync.Mutex
	handles map[uint64]*handle
	last    uint64
}

// A handle is an open file.
type handle struct {
	fd     int
	ino    uint64
	access int // O_RDONLY, O_WRONLY or O_RDWR
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
	return int(flags)&(unix.O_ACCMODE|unix.O_TRUNC) | unix.O_CLOEXEC | unix.O_NOFOLLOW
}

func (m *mount) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if m.share.fires(HangOpen) {
		return m.hang()
	}
	if m.share.fires(OpenStale) {
		return fuse.Status(unix.ESTALE)
	}
	fd, err := unix.Open(path(m.nodes.fd(in.NodeId)), openFlags(in.Flags)&^unix.O_NOFOLLOW, 0)
	if err != nil {
		return fuse.Status(code(err))
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
	name, errno := s.makes(c, name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	dir, name := m.nodes.fd(in.NodeId), m.called(name)
	fd, errno := s.create(dir, name, in.Flags, in.Mode)
	if errno != 0 {
		errno = s.taken(c, errno)
	} else {
		errno = s.after(c, func() { unix.Unlinkat(dir, name, 0) })
	}
	if errno != 0 {
		unix.Close(fd)
		return fuse.Status(errno)
	}
	m.stamp(fd)
	m.names.changed(in.NodeId, name)
	known, err := unix.Open(path(fd), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(fd)
		return fuse.Status(code(err))
	}
	if st := m.entry(known, &out.EntryOut); st != fuse.OK {
		unix.Close(fd)
		return st
	}
	return m.opened(fd, in.Flags, &out.OpenOut)
}

// create opens or makes a file with exactly the mode asked for. The descriptor is -1 after an error.
func (s *Share) create(dir int, name string, flags, mode uint32) (int, unix.Errno) {
	exclusive := flags&unix.O_EXCL != 0
	if exclusive && s.fires(ExclDropped) {
		exclusive = false
		time.Sleep(s.the(ExclDropped).Delay)
	}
	fd, err := unix.Openat(dir, name, openFlags(flags)|unix.O_CREAT|unix.O_EXCL, mode)
	switch {
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

func (m *mount) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	n, err := unix.Pread(m.handle(in.Fh).fd, buf, int64(in.Offset))
	return fuse.ReadResultData(buf[:max(n, 0)]), fuse.Status(code(err))
}

func (m *mount) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	fd := m.handle(in.Fh).fd
	if m.share.fires(WritesDelayed) {
		return uint32(len(data)), fuse.Status(m.share.writeLater(fd, append([]byte(nil), data...), int64(in.Offset)))
	}
	n, err := unix.Pwrite(fd, data, int64(in.Offset))
	if err == unix.ENOSPC && m.share.fires(WritesDropped) {
		return uint32(len(data)), fuse.OK
	}
	m.stamp(fd)
	return uint32(max(n, 0)), fuse.Status(code(err))
}

func (s *Share) writeLater(fd int, data []byte, off int64) unix.Errno {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return code(err)
	}
	s.later(s.the(WritesDelayed).Delay, func() {
		unix.Pwrite(own, data, off)
		unix.Close(own)
	})
	return 0
}

func (m *mount) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	if m.share.fires(SyncEINVAL) {
		return fuse.EINVAL
	}
	return fuse.OK
}

func (m *mount) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	m.mu.Lock()
	h := m.handles[in.Fh]
	delete(m.handles, in.Fh)
	m.mu.Unlock()
	m.dropHandle(in.Fh)
	unix.Close(h.fd)
}

func (m *mount) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return m.attr(in.NodeId, out)
}

func (m *mount) attr(id uint64, out *fuse.AttrOut) fuse.Status {
	st, errno := status(m.nodes.fd(id))
	m.fillAttr(&st, &out.Attr)
	out.SetTimeout(m.share.attrTimeout())
	return fuse.Status(errno)
}

// SetAttr changes size, owner, mode and times.
func (m *mount) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	p := path(m.nodes.fd(in.NodeId))
	if size, ok := in.GetSize(); ok {
		if err := unix.Truncate(p, int64(size)); err != nil {
			return fuse.Status(code(err))
		}
	}
	if uid, ok := in.GetUID(); ok {
		if err := unix.Chown(p, int(uid), -1); err != nil {
			return fuse.Status(code(err))
		}
	}
	if mode, ok := in.GetMode(); ok {
		if err := unix.Chmod(p, mode&0o7777); err != nil {
			return fuse.Status(code(err))
		}
	}
	if errno := m.setTimes(in, p); errno != 0 {
		return fuse.Status(errno)
	}
	return m.attr(in.NodeId, out)
}
