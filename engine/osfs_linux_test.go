package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A number that is closed under a system call is given to the next file that
// is opened, and the call goes on in that one.
func TestCloseLeavesACallItsDirectory(t *testing.T) {
	d, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.at("test", "", func(root int) (int, error) {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		_, err := unix.FcntlInt(uintptr(root), unix.F_GETFD, 0)
		return 0, err
	})
	if err != nil {
		t.Errorf("the descriptor was closed under the call: %v", err)
	}
	if _, err := d.Lstat("x"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("lstat after close: %v", err)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestRefusedFinishLeavesNoFilesOpen(t *testing.T) {
	for _, name := range leased(true) {
		g, err := New(t.TempDir(), Options{Protocol: name})
		if err != nil {
			t.Fatal(err)
		}
		before := openFiles(t)
		for n := range 10 {
			_, err := g.Do(context.Background(), Key{"k", strconv.Itoa(n)}, func(_ context.Context, tok Token) error {
				tok.Record(make([]byte, MaxRecord+1))
				return nil
			})
			var long *RecordError
			if !errors.As(err, &long) {
				t.Errorf("%s: %v", name, err)
			}
		}
		// The first attempt opens the file that tells the time.
		if after := openFiles(t); after > before+1 {
			t.Errorf("%s: %d open files, then %d", name, before, after)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSucceededFinisherLeavesNoFilesOpen(t *testing.T) {
	dir := t.TempDir()
	g := newTestGuard(t, dir, Options{})
	before := openFiles(t)
	_, err := g.Do(context.Background(), Key{"k"}, func(_ context.Context, tok Token) error {
		successor := record{state: stateClaimed, nonce: "ff", generation: 2}.encode()
		return os.WriteFile(filepath.Join(dir, tok.Signature.claim(2)), successor, 0o600)
	})
	if !errors.Is(err, ErrLost) {
		t.Errorf("%v", err)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d open files, then %d", before, after)
	}
}
