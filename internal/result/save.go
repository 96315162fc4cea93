package result

import (
	"bytes"
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

// Encode is the file as it is saved: indented JSON, an event a line, the same bytes for the same content. A file that
// breaks its own rules (no verdict, a NaN) is an error. Bytes that are not UTF-8, which a path may have, become U+FFFD.
func (f *File) Encode() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(f, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := layOut(&out, data, "\n"); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// layOut indents a value, but what nothing is nested in is one line: a file is events for the most part, and spaces
// would be half of it. newline is a line feed and the indentation.
func layOut(out *bytes.Buffer, v jsontext.Value, newline string) error {
	nests := v.Kind() == jsontext.KindBeginObject || v.Kind() == jsontext.KindBeginArray
	if !nests || !bytes.ContainsAny(v[1:], "{[") { // one in a string costs some lines, and no more
		if err := v.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true)); err != nil {
			return err
		}
		out.Write(v)
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	end := jsontext.KindEndArray
	if v.Kind() == jsontext.KindBeginObject {
		end = jsontext.KindEndObject
	}
	out.WriteByte(v[0])
	for i := 0; dec.PeekKind() != end; i++ {
		inner, err := dec.ReadValue()
		if err != nil {
			return err
		}
		switch {
		case end == jsontext.KindEndObject && i%2 == 1: // a value, behind its name
			out.WriteString(": ")
		case i > 0:
			out.WriteString("," + newline + "  ")
		default:
			out.WriteString(newline + "  ")
		}
		if err := layOut(out, inner.Clone(), newline+"  "); err != nil {
			return err
		}
	}
	out.WriteString(newline + string(rune(end)))
	return nil
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
