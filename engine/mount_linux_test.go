package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// cannot skips a test that cannot do its work here, or fails it where that was
// ruled out.
func cannot(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CLAIMBENCH_NO_SKIP") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// mountSmall mounts a memory filesystem of a few pages.
func mountSmall(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("engine-test", dir, "tmpfs", 0, "size=64k,mode=0700")
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		cannot(t, "mounting needs CAP_SYS_ADMIN")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestReadOnlyDirectoryIsRefused(t *testing.T) {
	dir := mountSmall(t)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err := New(dir, Options{})
	var contract *ContractError
	if !errors.As(err, &contract) || contract.Field != "dir" || !errors.Is(err, syscall.EROFS) {
		t.Errorf("%v", err)
	}
}

func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(bytes.Repeat([]byte{1}, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return path
}

func TestFullDirectory(t *testing.T) {
	dir := mountSmall(t)
	g := newTestGuard(t, dir, Options{})
	out := claim(t, g, Key{"before"}, Won)
	filler := fill(t, dir)

	if _, err := g.Claim(context.Background(), Key{"while"}); !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, ErrUnknown) {
		t.Errorf("claim on a full disk: %v", err)
	}
	if err := out.Lease.Done([]byte("result")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("done on a full disk: %v", err)
	}
	claim(t, g, Key{"before"}, Done)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := out.Lease.Done([]byte("result")); err != nil {
		t.Errorf("done once there is room: %v", err)
	}
	if out := claim(t, g, Key{"before"}, Done); string(out.Record) != "result" {
		t.Errorf("record %q", out.Record)
	}
	claim(t, g, Key{"after"}, Won)
}

func TestFullDirectoryIsRefusedAtTheStart(t *testing.T) {
	dir := mountSmall(t)
	fill(t, dir)
	if _, err := New(dir, Options{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
}
