package fleet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/survey"
)

const dirPrefix = survey.DirPrefix

// A site is one way to the directory that a host was given. Whatever is made or removed in it, by a name that another
// host sent, is made or removed below it: os.Root lets no name and no symlink lead out.
type site struct {
	path string
	root *os.Root
}

func openSite(dir string) (*site, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &site{path, root}, nil
}

// make makes a work directory, and its manifest.
func (s *site) make(nonce string) error {
	dir, err := where(nonce, "")
	if err != nil {
		return err
	}
	if err := s.root.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := s.sign(dir, nonce); err != nil {
		return errors.Join(err, survey.RemoveTree(filepath.Join(s.path, dir))) // who asked for it knows of nothing to remove
	}
	return nil
}

// sign writes the manifest.
func (s *site) sign(dir, nonce string) error {
	data, err := survey.Manifest(nonce)
	if err != nil {
		return err
	}
	f, err := s.root.OpenFile(filepath.Join(dir, survey.ManifestName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// signAgain makes the work directory this host's, so that nobody takes it for left behind.
func (s *site) signAgain(nonce string) error {
	dir, err := where(nonce, "")
	if err != nil {
		return err
	}
	data, err := survey.Manifest(nonce)
	if err != nil {
		return err
	}
	fresh := filepath.Join(dir, survey.ManifestName+".new")
	if err := s.root.WriteFile(fresh, data, 0o600); err != nil {
		return err
	}
	return s.root.Rename(fresh, filepath.Join(dir, survey.ManifestName))
}

// see reports whether the work directory of that nonce is reached this way, and may be written.
func (s *site) see(nonce string) (bool, error) {
	dir, err := where(nonce, "")
	if err != nil {
		return false, err
	}
	f, err := s.root.Open(filepath.Join(dir, survey.ManifestName))
	if err != nil {
		return false, nil // not yet, perhaps
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil || !survey.IsManifest(data, nonce) {
		return false, nil
	}
	return true, unix.Faccessat(unix.AT_FDCWD, filepath.Join(s.path, dir), unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}

// sub makes a directory in the work directory.
func (s *site) sub(nonce, name string) error {
	dir, err := where(nonce, name)
	if err != nil || name == "" {
		return errors.Join(err, named(name))
	}
	return s.root.Mkdir(dir, 0o700)
}

func named(name string) error {
	if name == "" {
		return errors.New("a directory without a name: refused")
	}
	return nil
}

// clear removes it with all that is in it.
func (s *site) clear(nonce, name string) error {
	dir, err := where(nonce, name)
	if err != nil || name == "" {
		return errors.Join(err, named(name))
	}
	return survey.RemoveSub(filepath.Join(s.path, dir))
}

// remove removes the work directory.
func (s *site) remove(nonce string) error {
	dir, err := where(nonce, "")
	if err != nil {
		return err
	}
	if dir == "" {
		return fmt.Errorf("the directory itself: refused")
	}
	return survey.RemoveTree(filepath.Join(s.path, dir))
}
