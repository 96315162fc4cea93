package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DirFS is the filesystem seam on a real directory. It holds the directory
// open and resolves all names from it, even if the directory is moved.
type DirFS struct {
	root *os.File
	conn syscall.RawConn // of root

	mu    sync.Mutex
	clock *osFile // nil until the clock is read for the first time
}

// OpenDir opens a claim directory. A symlink in the last element of the path
// is refused with ELOOP or ENOTDIR.
func OpenDir(dir string) (*DirFS, error) {
	// With a slash after it the kernel would follow a symlink all the same.
	last := dir
	for len(last) > 1 && last[len(last)-1] == '/' {
		last = last[:len(last)-1]
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(last, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	root := os.NewFile(uintptr(fd), dir)
	conn, err := root.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &DirFS{root: root, conn: conn}, nil
}

// Close closes the directory. Claims that are held stay open. Afterwards every
// step that needs the directory fails with os.ErrClosed.
func (d *DirFS) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.root.Close()
	if d.clock != nil {
		err = errors.Join(err, d.clock.Close())
		d.clock = nil
	}
	return err
}

// at makes one system call with the descriptor of the directory. Close waits
// with the descriptor until the call has returned: the number would be given
// to the next file that this process opens, and an attempt that its caller no
// longer waits for would go on in that one.
func (d *DirFS) at(op, name string, call func(root int) (int, error)) (n int, err error) {
	closed := d.conn.Control(func(root uintptr) {
		n, err = retry(func() (int, error) { return call(int(root)) })
	})
	if closed != nil {
		err = os.ErrClosed
	}
	if err != nil {
		return 0, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

func (d *DirFS) open(op, name string, flags int) (*osFile, error) {
	fd, err := d.at(op, name, func(root int) (int, error) {
		return unix.Openat(root, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	})
	if err != nil {
		return nil, err
	}
	return &osFile{fd: fd, name: name, dir: d}, nil
}

// Create is part of FS.
func (d *DirFS) Create(name string) (File, error) {
	f, err := d.open("create", name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Overwrite is part of FullFS.
func (d *DirFS) Overwrite(name string) (File, error) {
	f, err := d.open("create", name, unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Open is part of FS. O_NONBLOCK keeps a FIFO from holding a claim up.
func (d *DirFS) Open(name string) (Reader, error) {
	f, err := d.open("open", name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Lstat is part of FS.
func (d *DirFS) Lstat(name string) (Info, error) {
	var info Info
	_, err := d.at("lstat", name, func(root int) (_ int, err error) {
		info, err = stat(root, name, unix.AT_SYMLINK_NOFOLLOW)
		return 0, err
	})
	return info, err
}

// Mkdir is part of FS.
func (d *DirFS) Mkdir(name string) error {
	return d.name("mkdir", name, func(root int) error { return unix.Mkdirat(root, name, 0o777) })
}

// Link is part of LinkFS.
func (d *DirFS) Link(name, another string) error {
	return d.name("link", another, func(root int) error { return unix.Linkat(root, name, root, another, 0) })
}

// Unlink is part of LinkFS.
func (d *DirFS) Unlink(name string) error {
	return d.name("unlink", name, func(root int) error { return unix.Unlinkat(root, name, 0) })
}

// Rename is part of FullFS.
func (d *DirFS) Rename(from, to string) error {
	return d.name("rename", to, func(root int) error { return unix.Renameat(root, from, root, to) })
}

// Rmdir is part of FullFS.
func (d *DirFS) Rmdir(name string) error {
	return d.name("rmdir", name, func(root int) error { return unix.Unlinkat(root, name, unix.AT_REMOVEDIR) })
}

// List is part of FullFS.
func (d *DirFS) List(name string) ([]string, error) {
	f, err := d.open("list", name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(f.fd), name)
	names, err := dir.Readdirnames(-1)
	return names, errors.Join(err, dir.Close())
}

// OpenLock is part of FullFS.
func (d *DirFS) OpenLock(name string) (LockFile, error) {
	// Read and write: where flock is emulated by record locks, an exclusive
	// lock needs a descriptor that can write.
	f, err := d.open("open", name, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d *DirFS) name(op, name string, call func(root int) error) error {
	_, err := d.at(op, name, func(root int) (int, error) { return 0, call(root) })
	return err
}

// syncDir makes the names in a directory durable, unless the filesystem says that
// it has no fsync for directories, as SMB does with EINVAL.
func (d *DirFS) syncDir(name string) error {
	dir, err := d.open("sync", name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	err = dir.fsync()
	return errors.Join(ignore(err, unix.EINVAL, unix.ENOTSUP), dir.Close())
}

// clockDir holds the files that are touched to read the clock. They are never
// removed. Each DirFS takes one of 256, so that few share one and their number
// does not grow. Sharing is harmless: if another touches the file between this
// touch and the reading, what is read is the time of the other touch, and that
// is within the call as well.
const clockDir = "clock"

// Now is part of FS.
func (d *DirFS) Now() (time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clock == nil {
		if err := d.openClock(); err != nil {
			return time.Time{}, err
		}
	}
	now, err := d.clock.touchAndRead()
	if err != nil {
		// The file was removed on the server, or the connection is lost: the
		// next call opens a file anew.
		err = errors.Join(err, d.clock.Close())
		d.clock = nil
	}
	return now, err
}

func (d *DirFS) openClock() error {
	if err := d.Mkdir(clockDir); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	// One that another user made may not be writable to this one.
	var err error
	for range 16 {
		var n byte
		if n, err = randomByte(); err != nil {
			return err
		}
		name := path.Join(clockDir, fmt.Sprintf("%02x", n))
		if d.clock, err = d.open("open", name, unix.O_WRONLY|unix.O_CREAT); !errors.Is(err, unix.EACCES) {
			return err
		}
	}
	return err
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
