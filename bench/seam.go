package bench

import (
	"time"

	"github.com/claimbench/claimbench/engine"
)

// A verb is a kind of step.
type verb int64

// The verbs. Executing is a step as well: a contender can die in the middle of it.
const (
	create verb = iota + 1
	open
	lstat
	mkdir
	clock
	link
	unlink
	overwrite
	rename
	rmdir
	list
	openLock
	lock
	write
	touch
	fstat
	sync
	read
	closing
	executing
)

var verbs = [...]string{"", "create", "open", "lstat", "mkdir", "reading the clock", "link", "unlink", "overwrite",
	"rename", "rmdir", "listing", "opening the lock", "locking", "write", "touch", "fstat", "sync", "read", "close", "execution"}

func (v verb) String() string { return verbs[v] }

// A seam is a real directory with a hook before each operation on it.
type seam struct {
	*engine.DirFS
	before func(verb)
}

func (s seam) Create(name string) (engine.File, error) {
	s.before(create)
	return s.file(s.DirFS.Create(name))
}

func (s seam) Overwrite(name string) (engine.File, error) {
	s.before(overwrite)
	return s.file(s.DirFS.Overwrite(name))
}

func (s seam) file(f engine.File, err error) (engine.File, error) {
	if err != nil {
		return nil, err
	}
	return seamFile{f, s.before}, nil
}

func (s seam) Open(name string) (engine.Reader, error) {
	s.before(open)
	r, err := s.DirFS.Open(name)
	if err != nil {
		return nil, err
	}
	return seamReader{r, s.before}, nil
}

func (s seam) OpenLock(name string) (engine.LockFile, error) {
	s.before(openLock)
	f, err := s.DirFS.OpenLock(name)
	if err != nil {
		return nil, err
	}
	return seamLock{f, s.before}, nil
}

func (s seam) Lstat(name string) (engine.Info, error) {
	s.before(lstat)
	return s.DirFS.Lstat(name)
}

func (s seam) Mkdir(name string) error {
	s.before(mkdir)
	return s.DirFS.Mkdir(name)
}

func (s seam) Now() (time.Time, error) {
	s.before(clock)
	return s.DirFS.Now()
}

func (s seam) Link(name, another string) error {
	s.before(link)
	return s.DirFS.Link(name, another)
}

func (s seam) Unlink(name string) error {
	s.before(unlink)
	return s.DirFS.Unlink(name)
}

func (s seam) Rename(from, to string) error {
	s.before(rename)
	return s.DirFS.Rename(from, to)
}

func (s seam) Rmdir(name string) error {
	s.before(rmdir)
	return s.DirFS.Rmdir(name)
}

func (s seam) List(name string) ([]string, error) {
	s.before(list)
	return s.DirFS.List(name)
}

type seamFile struct {
	engine.File
	before func(verb)
}

func (f seamFile) WriteAt(p []byte, off int64) (int, error) {
	f.before(write)
	return f.File.WriteAt(p, off)
}

func (f seamFile) Touch() error {
	f.before(touch)
	return f.File.Touch()
}

func (f seamFile) Stat() (engine.Info, error) {
	f.before(fstat)
	return f.File.Stat()
}

func (f seamFile) Sync() error {
	f.before(sync)
	return f.File.Sync()
}

func (f seamFile) Close() error {
	f.before(closing)
	return f.File.Close()
}

type seamReader struct {
	engine.Reader
	before func(verb)
}

func (r seamReader) ReadAt(p []byte, off int64) (int, error) {
	r.before(read)
	return r.Reader.ReadAt(p, off)
}

func (r seamReader) Stat() (engine.Info, error) {
	r.before(fstat)
	return r.Reader.Stat()
}

func (r seamReader) Close() error {
	r.before(closing)
	return r.Reader.Close()
}

type seamLock struct {
	engine.LockFile
	before func(verb)
}

func (l seamLock) TryLock() error {
	l.before(lock)
	return l.LockFile.TryLock()
}

func (l seamLock) Stat() (engine.Info, error) {
	l.before(fstat)
	return l.LockFile.Stat()
}

func (l seamLock) Close() error {
	l.before(closing)
	return l.LockFile.Close()
}

// emptyIsStale is the commonest wrong take-over: a claim that is empty counts as malformed, and malformed as stale.
// It is generations with every empty file dated back to the epoch.
type emptyIsStale struct{ engine.FullFS }

func (s emptyIsStale) Open(name string) (engine.Reader, error) {
	r, err := s.FullFS.Open(name)
	if err != nil {
		return nil, err
	}
	return agedWhenEmpty{r}, nil
}

type agedWhenEmpty struct{ engine.Reader }

func (r agedWhenEmpty) Stat() (engine.Info, error) {
	info, err := r.Reader.Stat()
	if info.Size == 0 {
		info.Mtime, info.Ctime = time.Unix(1, 0), time.Unix(1, 0)
	}
	return info, err
}
