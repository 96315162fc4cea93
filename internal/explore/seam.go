package explore

import (
	"context"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/claimbench/claimbench/engine"
)

// A seam is the filesystem and the clock of one contender. What its methods do
// is hand a step to do and give back what that returns.
type seam struct {
	w     *world
	who   int
	nonce uint8
	do    func(Op) Result
	note  func(Event)
}

func (s *seam) env(params engine.Params) engine.Env {
	return engine.Env{FS: s, Clock: seamClock{s}, Nonce: s.draw, Params: params}
}

// draw makes nonces that differ between contenders, and those of one
// contender from each other.
func (s *seam) draw() ([]byte, error) {
	s.nonce++
	return []byte(nonceStart(s.who) + string('0'+rune(s.nonce))), nil
}

func nonceStart(who int) string { return letter(who) + "-----nonce----" }

func (s *seam) named(verb Verb, name string) Result {
	return s.do(Op{Verb: verb, Path: s.w.path(name)})
}

func (s *seam) opened(verb Verb, name string) (*seamFile, error) {
	r := s.named(verb, name)
	if r.Errno != 0 {
		return nil, r.Errno
	}
	return &seamFile{s, r.Handle}, nil
}

func fault(r Result) error {
	if r.Errno != 0 {
		return r.Errno
	}
	return nil
}

func (s *seam) Create(name string) (engine.File, error) {
	f, err := s.opened(Create, name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s *seam) Overwrite(name string) (engine.File, error) {
	f, err := s.opened(Overwrite, name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s *seam) Open(name string) (engine.Reader, error) {
	f, err := s.opened(Open, name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s *seam) OpenLock(name string) (engine.LockFile, error) {
	f, err := s.opened(OpenLock, name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s *seam) Lstat(name string) (engine.Info, error) { return info(s.named(Lstat, name)) }
func (s *seam) Mkdir(name string) error                { return fault(s.named(Mkdir, name)) }
func (s *seam) Unlink(name string) error               { return fault(s.named(Unlink, name)) }
func (s *seam) Rmdir(name string) error                { return fault(s.named(Rmdir, name)) }

func (s *seam) Link(name, another string) error {
	return fault(s.do(Op{Verb: Link, Path: s.w.path(name), To: s.w.path(another)}))
}

func (s *seam) Rename(from, to string) error {
	return fault(s.do(Op{Verb: Rename, Path: s.w.path(from), To: s.w.path(to)}))
}

func (s *seam) Now() (time.Time, error) {
	r := s.do(Op{Verb: Now})
	return time.Unix(0, r.Time), fault(r)
}

func (s *seam) List(name string) ([]string, error) {
	r := s.named(List, name)
	if r.Errno != 0 || r.Data == 0 {
		return nil, fault(r)
	}
	return strings.Split(s.w.contents[r.Data], "\n"), nil
}

func info(r Result) (engine.Info, error) {
	if r.Errno != 0 {
		return engine.Info{}, r.Errno
	}
	return engine.Info{Kind: engine.Kind(r.Kind), Size: int64(r.Size), Ino: r.Ino, Nlink: uint64(r.Nlink),
		Mtime: time.Unix(0, r.Mtime), Ctime: time.Unix(0, r.Ctime)}, nil
}

type seamFile struct {
	s  *seam
	at uint8
}

func (f *seamFile) simple(verb Verb) Result { return f.s.do(Op{Verb: verb, Handle: f.at}) }

func (f *seamFile) Touch() error               { return fault(f.simple(Touch)) }
func (f *seamFile) Sync() error                { return fault(f.simple(Sync)) }
func (f *seamFile) Close() error               { return fault(f.simple(Close)) }
func (f *seamFile) TryLock() error             { return fault(f.simple(TryLock)) }
func (f *seamFile) Stat() (engine.Info, error) { return info(f.simple(Fstat)) }

func (f *seamFile) WriteAt(p []byte, off int64) (int, error) {
	r := f.s.do(Op{Verb: WriteAt, Handle: f.at, Data: f.s.w.data(p), Off: int32(off)})
	if r.Errno != 0 {
		return 0, r.Errno
	}
	return len(p), nil
}

func (f *seamFile) ReadAt(p []byte, off int64) (int, error) {
	r := f.s.do(Op{Verb: ReadAt, Handle: f.at, Off: int32(off), Len: int32(len(p))})
	if r.Errno != 0 {
		return 0, r.Errno
	}
	n := copy(p, f.s.w.contents[r.Data])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

type seamClock struct{ s *seam }

func (c seamClock) Now() time.Duration { return time.Duration(c.s.do(Op{Verb: ReadClock}).Time) }

// Sleep takes no time: how much of it passes is the scheduler's to say.
func (c seamClock) Sleep(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }

// errStopped answers the steps of a program that was stopped, which are those
// of its deferred functions.
const errStopped = syscall.ECANCELED
