// Package faultfstest mounts shares with faults for tests.
package faultfstest

import (
	"os"
	"testing"

	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/testenv"
)

// Mount mounts a share of a tmpfs so many times, for the length of the test.
func Mount(t testing.TB, options string, mounts int, faults ...faultfs.Fault) (routes []string) {
	t.Helper()
	dir := testenv.Tmpfs(t, options)
	if _, err := os.Stat("/dev/fuse"); err != nil {
		testenv.Lacks(t, err)
	}
	share, err := faultfs.New(dir, 1, faults...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := share.Close(); err != nil {
			t.Error(err)
		}
	})
	for range mounts {
		at := t.TempDir()
		if err := share.Mount(at); err != nil {
			t.Fatal(err)
		}
		routes = append(routes, at)
	}
	return routes
}
