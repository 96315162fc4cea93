package bench

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

func TestTheClaimDirectoryIsRemovedBelowTheDescriptor(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{"t7/ab", "t7/cd/ef", "t8"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{filepath.Join(dir, "t7/ab/claim"), filepath.Join(dir, "t7/claim"), filepath.Join(outside, "precious")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "t7/cd/link")); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	w := &worker{o: &order{Trial: 7}, env: &race.Env{Dir: fd, Progress: func() {}}}
	for range 2 { // the second time it is gone already
		if err := w.remove(); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "t8" {
		t.Errorf("left: %v %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Error(err)
	}
}
