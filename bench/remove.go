package bench

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// remove takes the claim directory of a trial away. Of millions of files only a contender can do it: it shows progress,
// and should the filesystem hang, it can be left behind.
func (w *worker) remove() error {
	in, err := os.OpenRoot(w.route())
	if err != nil {
		return err
	}
	return errors.Join(w.removeAll(in, fmt.Sprintf("t%d", w.o.Trial)), in.Close())
}

// removeAll is one pass over a tree. It removes nothing outside the root, whatever takes a directory's place meanwhile.
func (w *worker) removeAll(in *os.Root, name string) error {
	w.env.Progress()
	err := in.Remove(name)
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return existing(err)
	}
	if err := w.empty(in, name); err != nil {
		return err
	}
	return existing(in.Remove(name))
}

func (w *worker) empty(in *os.Root, name string) error {
	dir, err := in.OpenRoot(name)
	if err != nil {
		return existing(err)
	}
	names, err := namesIn(dir)
	for _, name := range names {
		err = errors.Join(err, w.removeAll(dir, name))
	}
	return errors.Join(err, dir.Close())
}

func namesIn(dir *os.Root) ([]string, error) {
	d, err := dir.Open(".")
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
