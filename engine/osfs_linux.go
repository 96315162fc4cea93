package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// DirFS is the filesystem seam on a real directory, which it holds open:
// names are resolved from the directory it was opened on, wherever that is
// moved.
type DirFS struct {
	root int

	mu    sync.Mutex
	clock *osFile // nil until an age has to be judged
}

// OpenDir opens a claim directory. A symlink in the last element of the path
// is refused with ELOOP or ENOTDIR.
func OpenDir(dir string) (*DirFS, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &DirFS{root: fd}, nil
}

// Close closes the directory. Claims that are held stay open.
func (d *DirFS) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := unix.Close(d.root)
	d.root = -1
	if d.clock != nil {
		err = errors.Join(err, d.clock.Close())
		d.clock = nil
	}
	return err
}

func (d *DirFS) open(op, name string, flags int) (*osFile, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.root, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	})
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return &osFile{fd: fd, name: name}, nil
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
	var st unix.Stat_t
	_, err := retry(func() (int, error) {
		return 0, unix.Fstatat(d.root, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		return Info{}, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return infoOf(&st), nil
}

// Mkdir is part of FS.
func (d *DirFS) Mkdir(name string) error {
	return d.name("mkdir", name, func() error { return unix.Mkdirat(d.root, name, 0o777) })
}

// Link is part of LinkFS.
func (d *DirFS) Link(name, another string) error {
	return d.name("link", another, func() error { return unix.Linkat(d.root, name, d.root, another, 0) })
}

// Unlink is part of LinkFS.
func (d *DirFS) Unlink(name string) error {
	return d.name("unlink", name, func() error { return unix.Unlinkat(d.root, name, 0) })
}

// Rename is part of FullFS.
func (d *DirFS) Rename(from, to string) error {
	return d.name("rename", to, func() error { return unix.Renameat(d.root, from, d.root, to) })
}

// Rmdir is part of FullFS.
func (d *DirFS) Rmdir(name string) error {
	return d.name("rmdir", name, func() error { return unix.Unlinkat(d.root, name, unix.AT_REMOVEDIR) })
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

func (d *DirFS) name(op, name string, call func() error) error {
	if _, err := retry(func() (int, error) { return 0, call() }); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// clockDir holds the files that are touched to read the clock. They are never
// removed; a process takes one of 256, so that few share one and their number
// does not grow. Sharing is harmless: a touch by another reads as a moment
// between this touch and the reading.
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
		// Removed on the server, or a lost connection: the next call opens
		// it again.
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
