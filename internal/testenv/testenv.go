// Package testenv is what tests want of the machine, and what becomes of them where they do not get it.
package testenv

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Lacks skips a test that cannot do its work here. With CLAIMBENCH_NO_SKIP set the machine has to be equipped, and the
// test fails.
func Lacks(t testing.TB, why any) {
	t.Helper()
	if os.Getenv("CLAIMBENCH_NO_SKIP") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Tmpfs mounts one for the length of the test, in a directory of its own.
func Tmpfs(t testing.TB, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("claimbench", dir, "tmpfs", 0, options); err != nil {
		Lacks(t, "mounting is refused: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
