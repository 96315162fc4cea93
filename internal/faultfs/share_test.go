package faultfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func open(t *testing.T, name string, flags int) int {
	t.Helper()
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestAFlockIsGoneWhenItsUpgradeIsRefused(t *testing.T) {
	_, at, _ := twoMounts(t, "")
	for _, dir := range []string{t.TempDir(), at} {
		name := filepath.Join(dir, "locked")
		one, two := open(t, name, unix.O_RDWR|unix.O_CREAT), open(t, name, unix.O_RDWR)
		for _, fd := range []int{one, two} {
			if err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB); err != nil {
				t.Fatal(err)
			}
		}
		if err := unix.Flock(one, unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			t.Errorf("%s: the first: %v", dir, err)
		}
		if err := unix.Flock(two, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Errorf("%s: the second: %v", dir, err)
		}
	}
}

func TestFaultsOfNamesCombine(t *testing.T) {
	_, at, _ := twoMounts(t, "names=fold-case,names=per-mount")
	long := strings.Repeat("a", 40)
	write(t, filepath.Join(at, "file"), "") // as the share spells it
	for call, do := range map[string]func(name string) error{
		"symlink": func(name string) error { return os.Symlink("x", name) },
		"link":    func(name string) error { return os.Link(filepath.Join(at, "file"), name) },
		"mknod":   func(name string) error { return unix.Mknod(name, unix.S_IFIFO|0o600, 0) },
	} {
		name := filepath.Join(at, call+long)
		if err := do(name); err != nil {
			t.Errorf("%s: %v", call, err)
		}
		if _, err := os.Lstat(name); err != nil {
			t.Errorf("after %s: %v", call, err)
		}
	}
	name := filepath.Join(at, "rename"+long)
	if err := os.Rename(filepath.Join(at, "file"), name); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(name); err != nil {
		t.Errorf("after rename: %v", err)
	}
}

// What is removed a moment later is removed where it was made, whatever has become of the descriptor's number.
func TestWhatVanishesLaterVanishesInItsOwnDirectory(t *testing.T) {
	s, err := New(t.TempDir(), 1, MadeVanishes.New())
	if err != nil {
		t.Fatal(err)
	}
	dir, other := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "x"), "")
	write(t, filepath.Join(other, "x"), "")
	fd, otherFd := open(t, dir, unix.O_PATH), open(t, other, unix.O_PATH)
	if errno := s.after(Create, fd, func(dir int) { removeTree(dir, "x") }); errno != 0 {
		t.Fatal(errno)
	}
	if err := unix.Dup3(otherFd, fd, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("it is still there")
	}
	if _, err := os.Stat(filepath.Join(other, "x")); err != nil {
		t.Error(err)
	}
}

// A mount that is still in use is detached, and served on: from its own directory.
func TestADetachedMountKeepsItsRoot(t *testing.T) {
	needMounts(t)
	dir, at := t.TempDir(), t.TempDir()
	s, err := New(dir, 1)
	if err == nil {
		err = s.Mount(at)
	}
	if err != nil {
		t.Fatal(err)
	}
	within := open(t, at, unix.O_RDONLY|unix.O_DIRECTORY)
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "detached") {
		t.Errorf("closed: %v", err)
	}
	if root, err := os.Readlink(path(s.root)); err != nil || root != dir {
		t.Errorf("the root is %q, %v", root, err)
	}
	write(t, filepath.Join(dir, "x"), "")
	if err := unix.Faccessat(within, "x", unix.F_OK, 0); err != nil {
		t.Error(err)
	}
	unix.Close(s.root)
}
