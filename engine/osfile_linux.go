package engine

import (
	"io"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// osFile is a descriptor. It is not an os.File because the poller's
// bookkeeping costs as much as a system call on a local filesystem.
type osFile struct {
	fd   int
	name string
}

// WriteAt is part of File. A network client keeps what was written to itself
// until a descriptor is closed (nfs(5), close-to-open), and this one stays
// open as long as the claim. Closing a duplicate of it sends the data off, and
// brings the error if the server refuses them; on a local filesystem that does
// nothing.
func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.write(p, off)
	if err != nil {
		return n, err
	}
	dup, err := retry(func() (int, error) { return unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil {
		return n, f.err("dup", err)
	}
	return n, f.err("close", unix.Close(dup))
}

func (f *osFile) write(p []byte, off int64) (int, error) {
	written := 0
	for written < len(p) {
		n, err := retry(func() (int, error) { return unix.Pwrite(f.fd, p[written:], off+int64(written)) })
		if err == nil && n == 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return written, f.err("write", err)
		}
		written += n
	}
	return written, nil
}

// ReadAt is part of Reader.
func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	read := 0
	for read < len(p) {
		n, err := retry(func() (int, error) { return unix.Pread(f.fd, p[read:], off+int64(read)) })
		if err != nil {
			return read, f.err("read", err)
		}
		if n == 0 {
			return read, io.EOF
		}
		read += n
	}
	return read, nil
}

// Touch is part of File. A null times argument means "now" to every kernel
// filesystem, which leaves the value to the server where there is one. A time
// that is spelt out would be this host's.
func (f *osFile) Touch() error {
	_, err := retry(func() (int, error) {
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(f.fd), 0, 0, 0, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		return 0, nil
	})
	return f.err("touch", err)
}

func (f *osFile) touchAndRead() (time.Time, error) {
	if err := f.Touch(); err != nil {
		return time.Time{}, err
	}
	info, err := f.Stat()
	return info.Mtime, err
}

// Stat is part of File, Reader and LockFile.
func (f *osFile) Stat() (Info, error) {
	var st unix.Stat_t
	if _, err := retry(func() (int, error) { return 0, unix.Fstat(f.fd, &st) }); err != nil {
		return Info{}, f.err("stat", err)
	}
	return infoOf(&st), nil
}

// Sync is part of File.
func (f *osFile) Sync() error {
	_, err := retry(func() (int, error) { return 0, unix.Fsync(f.fd) })
	return f.err("sync", err)
}

// TryLock is part of LockFile.
func (f *osFile) TryLock() error {
	_, err := retry(func() (int, error) { return 0, unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB) })
	return f.err("flock", err)
}

// Close is part of File, Reader and LockFile. It is not repeated on EINTR:
// Linux has freed the descriptor by then (close(2)).
func (f *osFile) Close() error {
	err := unix.Close(f.fd)
	f.fd = -1
	return f.err("close", err)
}

func (f *osFile) err(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Kind:  kindOf(st.Mode),
		Size:  st.Size,
		Ino:   st.Ino,
		Nlink: uint64(st.Nlink),
		Mtime: time.Unix(st.Mtim.Unix()),
		Ctime: time.Unix(st.Ctim.Unix()),
	}
}

func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return Regular
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return Symlink
	default:
		return Other
	}
}
