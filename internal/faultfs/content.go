package faultfs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

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
