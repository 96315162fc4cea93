package engine

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// osFile is a descriptor. It is not an os.File because the poller's
// bookkeeping costs as much as a system call on a local filesystem.
type osFile struct {
	fd   int
	name string
	dir  *DirFS
}

// WriteAt is part of File. A network client may keep written data to itself
// until a descriptor of the file is closed (nfs(5), close-to-open consistency),
// and this descriptor stays open for as long as the claim. So a duplicate of it
// is closed: that sends the data to the server, and returns the error if the
// server refuses them. On a local filesystem it does nothing.
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

// Touch is part of File. With a null times argument the filesystem sets the
// times to its own "now"; NFS leaves the value to the server. An explicit time
// would come from this host's clock.
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
	var info Info
	_, err := retry(func() (_ int, err error) {
		info, err = stat(f.fd, "", unix.AT_EMPTY_PATH)
		return 0, err
	})
	return info, f.err("stat", err)
}

// Sync is part of File. A name is durable once its directory is, and a fan-out
// directory that was made for it once the claim directory is.
func (f *osFile) Sync() error {
	return errors.Join(f.fsync(), f.dir.syncDir(path.Dir(f.name)), f.dir.syncDir("."))
}

func (f *osFile) fsync() error {
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

// stat asks the server, whatever the client has cached. A client may rely on
// cached times for a minute where it was told to (nocto, actimeo, the
// attr_timeout of FUSE), and would find a claim expired that was renewed over
// another mount in the meantime.
func stat(fd int, name string, flags int) (Info, error) {
	var st unix.Statx_t
	err := unix.Statx(fd, name, flags|unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, &st)
	if err == unix.ENOSYS || err == unix.EPERM {
		// Before Linux 4.11, or in a sandbox that does not know the call.
		return oldStat(fd, name, flags)
	}
	return Info{
		Kind:  kindOf(uint32(st.Mode)),
		Size:  int64(st.Size),
		Ino:   st.Ino,
		Nlink: uint64(st.Nlink),
		Mtime: time.Unix(st.Mtime.Sec, int64(st.Mtime.Nsec)),
		Ctime: time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec)),
	}, err
}

func oldStat(fd int, name string, flags int) (Info, error) {
	var st unix.Stat_t
	err := unix.Fstatat(fd, name, &st, flags)
	return Info{
		Kind:  kindOf(st.Mode),
		Size:  st.Size,
		Ino:   st.Ino,
		Nlink: uint64(st.Nlink),
		Mtime: time.Unix(st.Mtim.Unix()),
		Ctime: time.Unix(st.Ctim.Unix()),
	}, err
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
