package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

const testTTL = 10 * time.Second

func testParams() Params {
	return Params{TTL: testTTL, Deadline: testTTL / 2, Margin: testTTL, Slack: testTTL / 10}
}

// world is a real directory whose clock a test can put forward, together with
// the local clocks of all contenders.
type world struct {
	t   *testing.T
	dir string

	mu    sync.Mutex
	ahead time.Duration
	// dated is how far ahead the clock was when a file was last written.
	dated map[uint64]time.Duration
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir(), dated: map[uint64]time.Duration{}}
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

// Now and Sleep make world a Clock.
func (w *world) Now() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return OSClock{}.Now() + w.ahead
}

func (w *world) Sleep(ctx context.Context, d time.Duration) error {
	w.advance(d)
	return context.Cause(ctx)
}

// join adds a contender. What its hook says happens before each of its steps.
func (w *world) join(protocol string) (Protocol, *hookFS) {
	w.t.Helper()
	return w.joinWith(protocol, testParams())
}

func (w *world) joinWith(protocol string, p Params) (Protocol, *hookFS) {
	w.t.Helper()
	spec, ok := Find(protocol)
	if !ok {
		w.t.Fatalf("no protocol %q", protocol)
	}
	dir, err := OpenDir(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { dir.Close() })
	fs := &hookFS{FullFS: dir, world: w}
	return spec.New(Env{FS: fs, Clock: w, Nonce: RandomNonce, Params: p}), fs
}

func (w *world) try(p Protocol, sig Signature, want State) Outcome {
	w.t.Helper()
	out, err := p.Try(sig)
	if err != nil {
		w.t.Fatal(err)
	}
	if out.State != want {
		w.t.Fatalf("attempt is %v, want %v", out.State, want)
	}
	return out
}

// hookFS runs a test's code before a step, once, and can replace its answer.
type hookFS struct {
	FullFS
	world  *world
	before func(op, name string)
	answer func(op, name string, err error) error
}

// at arranges for do to run before the n-th step of that kind from now.
func (h *hookFS) at(op string, n int, do func()) {
	h.before = func(got, _ string) {
		if got != op {
			return
		}
		if n--; n == 0 {
			h.before = nil
			do()
		}
	}
}

func (h *hookFS) step(op, name string) {
	if h.before != nil {
		h.before(op, name)
	}
}

func (h *hookFS) reply(op, name string, err error) error {
	if h.answer != nil {
		return h.answer(op, name, err)
	}
	return err
}

func (h *hookFS) Now() (time.Time, error) {
	h.step("now", "")
	now, err := h.FullFS.Now()
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	return now.Add(h.world.ahead), h.reply("now", "", err)
}

// date notes that a thing was written now.
func (w *world) date(i Info, err error) {
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dated[i.Ino] = w.ahead
}

func (w *world) shift(i Info) Info {
	w.mu.Lock()
	defer w.mu.Unlock()
	i.Mtime = i.Mtime.Add(w.dated[i.Ino])
	i.Ctime = i.Ctime.Add(w.dated[i.Ino])
	return i
}

func (h *hookFS) Create(name string) (File, error) {
	h.step("create", name)
	f, err := h.FullFS.Create(name)
	if err := h.reply("create", name, err); err != nil {
		return nil, err
	}
	h.world.date(f.Stat())
	return &hookFile{File: f, h: h, name: name}, nil
}

func (h *hookFS) Overwrite(name string) (File, error) {
	h.step("overwrite", name)
	f, err := h.FullFS.Overwrite(name)
	if err := h.reply("overwrite", name, err); err != nil {
		return nil, err
	}
	h.world.date(f.Stat())
	return &hookFile{File: f, h: h, name: name}, nil
}

func (h *hookFS) Open(name string) (Reader, error) {
	h.step("open", name)
	f, err := h.FullFS.Open(name)
	if err := h.reply("open", name, err); err != nil {
		return nil, err
	}
	return hookReader{f, h.world}, nil
}

func (h *hookFS) Lstat(name string) (Info, error) {
	h.step("lstat", name)
	i, err := h.FullFS.Lstat(name)
	return h.world.shift(i), h.reply("lstat", name, err)
}

func (h *hookFS) named(op, name string, call func() error) error {
	h.step(op, name)
	return h.reply(op, name, call())
}

func (h *hookFS) Mkdir(name string) error {
	return h.named("mkdir", name, func() error {
		err := h.FullFS.Mkdir(name)
		if err == nil {
			h.world.date(h.FullFS.Lstat(name))
		}
		return err
	})
}

func (h *hookFS) Link(name, another string) error {
	return h.named("link", another, func() error { return h.FullFS.Link(name, another) })
}

func (h *hookFS) Unlink(name string) error {
	return h.named("unlink", name, func() error { return h.FullFS.Unlink(name) })
}

func (h *hookFS) Rename(from, to string) error {
	return h.named("rename", to, func() error { return h.FullFS.Rename(from, to) })
}

func (h *hookFS) Rmdir(name string) error {
	return h.named("rmdir", name, func() error { return h.FullFS.Rmdir(name) })
}

func (h *hookFS) OpenLock(name string) (LockFile, error) {
	h.step("openlock", name)
	return h.FullFS.OpenLock(name)
}

type hookFile struct {
	File
	h    *hookFS
	name string
}

func (f *hookFile) WriteAt(p []byte, off int64) (int, error) {
	f.h.step("write", f.name)
	if err := f.h.reply("write", f.name, nil); err != nil {
		return 0, err
	}
	defer func() { f.h.world.date(f.File.Stat()) }()
	return f.File.WriteAt(p, off)
}

func (f *hookFile) Touch() error {
	f.h.step("touch", f.name)
	err := f.File.Touch()
	f.h.world.date(f.File.Stat())
	return f.h.reply("touch", f.name, err)
}

func (f *hookFile) Stat() (Info, error) {
	f.h.step("stat", f.name)
	i, err := f.File.Stat()
	return f.h.world.shift(i), f.h.reply("stat", f.name, err)
}

func (f *hookFile) Close() error {
	f.h.step("close", f.name)
	return f.h.reply("close", f.name, f.File.Close())
}

type hookReader struct {
	Reader
	world *world
}

func (r hookReader) Stat() (Info, error) {
	i, err := r.Reader.Stat()
	return r.world.shift(i), err
}

var errStop = errors.New("dead")

// die runs an attempt that ends before the n-th step of that kind, as by
// SIGKILL: nothing the contender would still do happens. It tells whether
// there was such a step.
func die(h *hookFS, op string, n int, attempt func()) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if r != errStop {
				panic(r)
			}
			died = true
		}
	}()
	h.at(op, n, func() {
		h.before = func(string, string) { panic(errStop) }
		panic(errStop)
	})
	attempt()
	h.before = nil
	return false
}
