package explore

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/faultfs"
)

// TestModelDoesWhatAShareWithoutFaultsDoes has the same sequences on a share without faults: over one mount, and with
// each contender, and each second look, on a mount of its own.
func TestModelDoesWhatAShareWithoutFaultsDoes(t *testing.T) {
	for _, mounts := range []int{1, 2} {
		for _, about := range themes {
			t.Run(fmt.Sprintf("%d %s", mounts, about.name), func(t *testing.T) {
				t.Parallel()
				about.check(t, faultless(t, mounts))
			})
		}
	}
}

// faultless mounts a share of a tmpfs, for each of two contenders.
func faultless(t *testing.T, mounts int) (routes [2]string) {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("claimbench", dir, "tmpfs", 0, "mode=0755"); err != nil {
		cannot(t, fmt.Sprintf("mount a tmpfs: %v", err))
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat("/dev/fuse"); err != nil {
		cannot(t, err.Error())
	}
	share, err := faultfs.New(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := share.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range routes {
		if i >= mounts {
			routes[i] = routes[0]
			continue
		}
		routes[i] = t.TempDir()
		if err := share.Mount(routes[i]); err != nil {
			t.Fatal(err)
		}
	}
	return routes
}
