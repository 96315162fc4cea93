package bench

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// remove takes the claim directory of a trial away. Of millions of files only a contender can do it: it shows progress,
// and should the filesystem hang, it can be left behind.
func (w *worker) remove() error {
	path, err := w.path()
	if err != nil {
		return err
	}
	return w.removeAll(path)
}

// removeAll is one pass over a tree. It never follows a symlink: only what rmdir calls not empty is read as a directory.
func (w *worker) removeAll(path string) error {
	w.env.Progress()
	err := os.Remove(path)
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return existing(err)
	}
	names, err := namesIn(path)
	for _, name := range names {
		err = errors.Join(err, w.removeAll(filepath.Join(path, name)))
	}
	if err != nil {
		return err
	}
	return existing(os.Remove(path))
}

func namesIn(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, existing(err)
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}

// existing leaves out that something was gone already.
func existing(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) {
		return nil
	}
	return err
}
