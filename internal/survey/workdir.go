package survey

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/facts"
)

// The name of a work directory is DirPrefix and its nonce; ManifestName is in it as long as it is.
const (
	DirPrefix    = ".claimbench-"
	ManifestName = "manifest.json"
	ownerless    = time.Minute // an empty directory without a manifest is left over when it is older than this
)

var dirName = regexp.MustCompile(`^\.claimbench-[0-9a-f]{32}$`)

// A manifest says whose a work directory is, so that a later start can tell whether it is left over.
type manifest struct {
	Tool  string      `json:"tool"`
	Owner facts.Owner `json:"owner"`
	Nonce string      `json:"nonce"` // proves that two routes reach the same directory
}

// NewNonce is 16 random bytes, in hex: what makes the name of a work directory one that nobody can have planted.
func NewNonce() string {
	var random [16]byte
	rand.Read(random[:]) // never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(random[:])
}

// Manifest is the content of the file that says whose the work directory is.
func Manifest(nonce string) ([]byte, error) {
	owner, err := facts.Self()
	if err != nil {
		return nil, err
	}
	return json.Marshal(manifest{Tool: "claimbench", Owner: owner, Nonce: nonce})
}

// IsManifest says that the data is the manifest of the work directory with that nonce.
func IsManifest(data []byte, nonce string) bool {
	var m manifest
	return json.Unmarshal(data, &m) == nil && m.Nonce == nonce
}

// A workdir is the one directory of claimbench's own inside a target, seen over each of its routes.
type workdir struct {
	paths []string
	nonce string
}

// makeWorkdir makes the directory over the first route. Its name carries 16 random bytes, so that nobody can have
// put a symlink there.
func makeWorkdir(routes []string) (*workdir, error) {
	w := &workdir{nonce: NewNonce()}
	for _, r := range routes {
		w.paths = append(w.paths, filepath.Join(r, DirPrefix+w.nonce))
	}
	if err := os.Mkdir(w.paths[0], 0o700); err != nil {
		return nil, err
	}
	if err := w.writeManifest(); err != nil {
		return nil, errors.Join(err, w.Remove(context.Background()))
	}
	return w, nil
}

func (w *workdir) writeManifest() error {
	data, err := Manifest(w.nonce)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(w.paths[0], ManifestName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// SameEverywhere proves that each route reaches the directory, and can write there: what was made over the first is seen
// over the others, which may take a moment.
func (w *workdir) SameEverywhere(ctx context.Context, patience time.Duration) error {
	for _, p := range w.paths[1:] {
		for began := time.Now(); !w.seen(p); time.Sleep(50 * time.Millisecond) {
			if ctx.Err() != nil {
				return nil
			}
			if time.Since(began) > patience {
				return fmt.Errorf("%s does not reach this directory: what is made here is not seen there within %v; name another way to the same directory with --route", filepath.Dir(p), patience)
			}
		}
		if err := unix.Faccessat(unix.AT_FDCWD, p, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
			return &TargetError{filepath.Dir(p), true, err}
		}
	}
	return nil
}

// seen looks for the directory alone: its name has the nonce. What was written in it may never be seen over another
// route (9p with cache=loose shows an empty file for ever), which is for the survey to find.
func (w *workdir) seen(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func readManifest(dir string) (m manifest, err error) {
	data, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if err != nil {
		return m, err
	}
	err = json.Unmarshal(data, &m)
	return m, err
}

// Workdir makes a directory of claimbench's own in dir, for those who do not survey it, and removes what others have left
// there that were killed. notes say what that was.
func Workdir(dir string) (path string, remove func() error, notes []string, err error) {
	notes = RemoveLeftOvers(dir)
	w, err := makeWorkdir(absolute([]string{dir}))
	if err != nil {
		return "", nil, notes, err
	}
	return w.paths[0], func() error { return w.Remove(context.Background()) }, notes, nil
}

// Paths are its names over the routes.
func (w *workdir) Paths() []string { return w.paths }

// Sub makes a fresh directory for one probe, and returns its path over each route.
func (w *workdir) Sub(_ context.Context, name string) ([]string, error) {
	over := w.under(name)
	return over, os.Mkdir(over[0], 0o700)
}

func (w *workdir) under(name string) []string {
	var over []string
	for _, p := range w.paths {
		over = append(over, filepath.Join(p, name))
	}
	return over
}

// Clear removes such a directory.
func (w *workdir) Clear(_ context.Context, name string) error {
	return overAnyRoute(w.under(name), RemoveSub)
}

// Remove removes the work directory.
func (w *workdir) Remove(context.Context) error { return overAnyRoute(w.paths, RemoveTree) }

// overAnyRoute removes over each route in turn: what was made over one may be hidden from another by its caches.
func overAnyRoute(paths []string, remove func(string) error) error {
	var err error
	for range 5 {
		err = nil
		for _, p := range paths {
			err = errors.Join(err, existing(remove(p)))
		}
		if err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// existing leaves out that something was gone already; ESTALE is how a network filesystem says so.
func existing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESTALE) {
		return nil
	}
	return err
}

// removeAll is one pass over a tree. os.RemoveAll never ends on a filesystem that lists a name and says ENOENT to its
// removal, as two overlays with one upper directory do (Go 1.26).
//
// It removes nothing outside the root: whoever may write to the target can swap a directory for a symlink to somewhere
// else at any moment.
func removeAll(root *os.Root, name string) error {
	err := root.Remove(name)
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return err
	}
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	d.Close()
	for _, e := range entries {
		err = errors.Join(err, existing(removeAll(root, filepath.Join(name, e.Name()))))
	}
	if err != nil {
		return err
	}
	return root.Remove(name)
}

// RemoveSub removes a directory in a work directory.
func RemoveSub(dir string) error {
	in, err := openWorkdir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer in.Close()
	return removeAll(in, filepath.Base(dir))
}

// openWorkdir does not follow a symlink that has taken the directory's place.
func openWorkdir(dir string) (*os.Root, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", d.Fd()))
}

// RemoveTree removes a work directory, its manifest last, so that a removal cut short is still recognised.
func RemoveTree(dir string) error {
	in, err := openWorkdir(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	d, err := in.Open(".")
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	d.Close()
	for _, e := range entries {
		if e.Name() != ManifestName {
			err = errors.Join(err, existing(removeAll(in, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	if err := existing(in.Remove(ManifestName)); err != nil {
		return err
	}
	return os.Remove(dir)
}

// RemoveLeftOvers removes what surveys that were killed have left in the target, if their process is provably
// gone, and says what it did and what it left alone.
func RemoveLeftOvers(target string) (notes []string) {
	entries, err := os.ReadDir(target)
	if err != nil {
		return nil // the survey itself is about to say so
	}
	for _, e := range entries {
		if !dirName.MatchString(e.Name()) || !e.IsDir() {
			continue
		}
		dir := filepath.Join(target, e.Name())
		if gone, why := leftOver(dir); !gone {
			notes = append(notes, fmt.Sprintf("left alone: %s: %s", dir, why))
		} else if err := RemoveTree(dir); err != nil {
			notes = append(notes, fmt.Sprintf("left over, and could not be removed: %v", err))
		} else {
			notes = append(notes, fmt.Sprintf("removed a left-over directory: %s (%s)", dir, why))
		}
	}
	return notes
}

// leftOver reports whether a work directory belongs to nobody any more. Only a directory of this user's, with the
// mode it was made with, is ever called left over.
func leftOver(dir string) (bool, string) {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return false, err.Error()
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return false, "it is another user's"
	}
	m, err := readManifest(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return abandoned(dir, &st)
	case err != nil:
		return false, "its manifest cannot be read: " + err.Error()
	case m.Tool != "claimbench" || filepath.Base(dir) != DirPrefix+m.Nonce:
		return false, "its manifest is not claimbench's"
	}
	return facts.OwnerGone(m.Owner)
}

// abandoned judges a directory without a manifest: its maker died between the two steps, or is just between them.
// Both ages are the filesystem's own.
func abandoned(dir string, st *unix.Stat_t) (bool, string) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		return false, "it has no manifest and is not empty"
	}
	probe, err := os.MkdirTemp(filepath.Dir(dir), DirPrefix+"clock-")
	if err != nil {
		return false, err.Error()
	}
	defer os.Remove(probe)
	var now unix.Stat_t
	if err := unix.Lstat(probe, &now); err != nil {
		return false, err.Error()
	}
	if age := time.Duration(now.Mtim.Nano() - st.Mtim.Nano()); age < ownerless {
		return false, "it has no manifest yet"
	}
	return true, "empty, and older than a minute"
}
