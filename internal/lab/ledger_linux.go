package lab

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// LedgerDir is where ledgers are: on a filesystem that a reboot empties, as it undoes what stands in them.
const LedgerDir = "/run/claimbench-lab"

// A Ledger is the file in which a made target says what it makes, each thing before it is made. What stands there is
// undone by Undo, in reverse, whether it was made or not, and nothing else is ever touched. The file is locked while
// its writer lives, and gone when everything is undone.
type Ledger struct {
	Mark string // in the environment of every process that the target starts, as MarkVariable
	file *os.File
	path string
}

const ledgerSuffix = ".ledger"

// MarkVariable is the environment variable that says to which ledger a process belongs.
const MarkVariable = "CLAIMBENCH_LAB"

// An Entry is one thing to undo.
type Entry struct {
	Kind string `json:"kind"` // one of the kinds below
	Path string `json:"path,omitempty"`
	Mark string `json:"mark,omitempty"`
	PGID int    `json:"pgid,omitempty"`
}

// The kinds of entries.
const (
	kindDir       = "dir"       // Path is a directory to remove with all in it
	kindMount     = "mount"     // Path is a mount point
	kindLoop      = "loop"      // Path is the image behind a loop device
	kindProcesses = "processes" // those whose environment has Mark
	kindGroup     = "group"     // those of process group PGID that run the program Path; its leader has Mark, or is one of them
)

// NewLedger makes an empty ledger in dir for a target. It has its lock before it has its name, so that nobody takes
// it for the ledger of a dead process.
func NewLedger(dir, target string) (*Ledger, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("ledgers: %w; the lab needs root", err)
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_APPEND|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ledger in %s: %w", dir, err)
	}
	var random [8]byte
	rand.Read(random[:]) // never fails (crypto/rand, Go 1.24)
	l := &Ledger{Mark: target + "-" + hex.EncodeToString(random[:])}
	l.path = filepath.Join(dir, l.Mark+ledgerSuffix)
	l.file = os.NewFile(uintptr(fd), l.path)
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, l.path, unix.AT_SYMLINK_FOLLOW)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ledger %s: %w", l.path, err), l.file.Close())
	}
	return l, nil
}

// Note writes an entry down. Only after it has returned may the thing be made.
func (l *Ledger) Note(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// Undo undoes every entry, the last one first, and then removes the ledger. If something cannot be undone, the rest
// is all the same, and the ledger stays for the next attempt.
func (l *Ledger) Undo() error {
	defer l.file.Close()
	entries, err := readEntries(l.file)
	if err != nil {
		return fmt.Errorf("ledger %s: %w", l.path, err)
	}
	if l.undo(entries) != nil {
		err = l.undo(entries) // a program may have mounted something when it was about to be ended
	}
	if err != nil {
		return err
	}
	if err := os.Remove(l.path); !errors.Is(err, os.ErrNotExist) { // another one has undone it a moment ago
		return err
	}
	return nil
}

func (l *Ledger) undo(entries []Entry) error {
	var failed []error
	for _, e := range slices.Backward(entries) {
		if err := e.undo(entries); err != nil {
			failed = append(failed, fmt.Errorf("%s: left behind: %w", l.Mark, err))
		}
	}
	return errors.Join(failed...)
}

// readEntries leaves out a last line that its writer was killed in: what stands in it was not made yet.
func readEntries(f io.ReaderAt) ([]Entry, error) {
	var entries []Entry
	lines := bufio.NewReader(io.NewSectionReader(f, 0, 1<<24))
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		var e Entry
		strict := json.NewDecoder(bytes.NewReader(line))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&e); err != nil {
			return nil, fmt.Errorf("%q is no entry: %w", bytes.TrimSpace(line), err)
		}
		entries = append(entries, e)
	}
}

// Clean undoes the ledgers in dir whose writers are dead, and says which it has undone and which it left alone.
func Clean(dir string) (notes []string, err error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ledgers: %w", err)
	}
	var failed []error
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ledgerSuffix) {
			continue
		}
		l, err := openLedger(filepath.Join(dir, file.Name()))
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			notes = append(notes, file.Name()+": in use by a running lab, left alone")
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			failed = append(failed, err)
		default:
			if err := l.Undo(); err != nil {
				failed = append(failed, err)
				continue
			}
			notes = append(notes, l.Mark+": removed")
		}
	}
	return notes, errors.Join(failed...)
}

func openLedger(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Ledger{Mark: strings.TrimSuffix(filepath.Base(path), ledgerSuffix), file: f, path: path}, nil
}
