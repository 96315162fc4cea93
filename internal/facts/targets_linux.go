package facts

import (
	"os"

	"golang.org/x/sys/unix"
)

// DefaultTargets are the filesystems of this machine that can be written: those of the working directory, /tmp,
// /dev/shm and $HOME, each once. Pseudo-filesystems are never among them. skipped says, one line each, what was
// left out and why.
func DefaultTargets() (targets, skipped []string) {
	wd, err := os.Getwd()
	candidates := []candidate{
		examine("working directory", wd, err),
		examine("/tmp", "/tmp", nil),
		examine("/dev/shm", "/dev/shm", nil),
	}
	home, err := os.UserHomeDir()
	return chooseTargets(append(candidates, examine("$HOME", home, err)))
}

func examine(name, path string, err error) candidate {
	c := candidate{name: name, path: path}
	if err == nil {
		err = writableDirectory(path)
	}
	if err != nil {
		c.problem = err.Error()
		return c
	}
	route, err := ReadRoute(path)
	if err != nil {
		c.problem = err.Error()
		return c
	}
	c.fstype, c.superblock = route.FSType, route.Superblock
	return c
}

// writableDirectory asks the kernel rather than the mode bits, which know nothing of a read-only mount, an ACL or
// a server that maps root to nobody.
func writableDirectory(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &os.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	}
	err = retry(func() error { return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK|unix.X_OK, unix.AT_EACCESS) })
	if err != nil {
		return &os.PathError{Op: "write to", Path: path, Err: err}
	}
	return nil
}
