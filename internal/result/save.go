package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/renameio/v2"
)

// Encode is the file as it is saved: indented JSON, the same bytes for the same content. A file that breaks
// its own rules (no verdict, a NaN) is an error. Bytes that are not UTF-8, which a path may have, become U+FFFD.
func (f *File) Encode() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(f, json.Deterministic(true), jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// Save replaces the file at path, or the file that path links to, whole or not at all, and makes it durable.
func (f *File) Save(path string) error {
	data, err := f.Encode()
	if err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	if err := replace(path, data); err != nil {
		return fmt.Errorf("save %s: %w", path, cause(err))
	}
	return nil
}

func replace(path string, data []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	// A rename would put a regular file where /dev/null was.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return errNotRegular
	}
	if err := write(path, data); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

var errNotRegular = errors.New("not a regular file; choose another name")

func write(path string, data []byte) (err error) {
	// Without WithTempDir, renameio tries $TMPDIR, and creates a file there to find out.
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}

// syncDir makes the rename durable. A filesystem that has no sync of directories (EINVAL from several FUSE and
// SMB mounts) is no reason to report the file as lost.
func syncDir(dir string) (err error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a directory may be written without being read
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
