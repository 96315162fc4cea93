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
	first              bool // of the share's mounts
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
	m.changed(fd)
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
	if exclusive && s.fires(ExclTruncates) {
		exclusive = false
		time.Sleep(s.the(ExclTruncates).Delay)
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

func (m *mount) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	fd := m.handle(in.Fh).fd
	if m.stale(fd) {
		return nil, fuse.Status(unix.ESTALE)
	}
	n, err := unix.Pread(fd, buf, int64(in.Offset))
	return fuse.ReadResultData(buf[:max(n, 0)]), fuse.Status(code(err))
}

func (m *mount) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	fd := m.handle(in.Fh).fd
	if m.stale(fd) {
		return 0, fuse.Status(unix.ESTALE)
	}
	if m.share.fires(WritesDelayed) {
		return uint32(len(data)), fuse.Status(m.share.writeLater(fd, append([]byte(nil), data...), int64(in.Offset)))
	}
	n, err := m.share.write(fd, data, int64(in.Offset))
	if err == unix.ENOSPC && m.share.fires(WritesDropped) {
		return uint32(len(data)), fuse.OK
	}
	m.stamp(fd)
	m.changed(fd)
	return uint32(max(n, 0)), fuse.Status(code(err))
}

func (s *Share) write(fd int, data []byte, off int64) (int, error) {
	if s.fires(WritesTorn) {
		return s.halves(WritesTorn, fd, data, off)
	}
	return unix.Pwrite(fd, data, off)
}

// halves writes one half, and later the other.
func (s *Share) halves(k Kind, fd int, data []byte, off int64) (int, error) {
	half := len(data) / 2
	n, err := unix.Pwrite(fd, data[:half], off)
	if err != nil || n < half {
		return n, err
	}
	time.Sleep(s.the(k).Delay)
	more, err := unix.Pwrite(fd, data[half:], off+int64(half))
	if err != nil && n > 0 {
		return n, nil
	}
	return n + more, err
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

func (m *mount) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if m.share.fires(SyncEINVAL) {
		return fuse.EINVAL
	}
	return fuse.Status(code(unix.Fsync(m.handle(in.Fh).fd)))
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
	if size, ok := in.GetSize(); ok {
		if err := unix.Truncate(p, int64(size)); err != nil {
			return fuse.Status(code(err))
		}
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
