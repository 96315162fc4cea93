package engine

import (
	"errors"
	"time"
)

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
	f, err := h.FullFS.OpenLock(name)
	if err != nil {
		return nil, err
	}
	return hookLock{f, h, name}, nil
}

type hookLock struct {
	LockFile
	h    *hookFS
	name string
}

func (f hookLock) Stat() (Info, error) {
	f.h.step("stat", f.name)
	i, err := f.LockFile.Stat()
	return i, f.h.reply("stat", f.name, err)
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

func (f *hookFile) Sync() error {
	f.h.step("sync", f.name)
	return f.h.reply("sync", f.name, f.File.Sync())
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
