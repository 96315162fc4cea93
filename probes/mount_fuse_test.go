package probes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/sloppyfs"
)

// needRoot skips without root, and only then: as root the mounts must work.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
}

// newTmpfs mounts a tmpfs of its own for the test.
func newTmpfs(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	mountAt(t, "tmpfs", dir, "tmpfs", 0, "mode=0755,size=256m")
	return dir
}

// mountAt mounts for the length of the test. A mount still in use at its end is detached and reported.
func mountAt(t testing.TB, source, at, fstype string, flags uintptr, options string) {
	t.Helper()
	if err := unix.Mount(source, at, fstype, flags, options); err != nil {
		t.Fatalf("mount %s on %s (%s): %v", fstype, at, options, err)
	}
	t.Cleanup(func() { unmount(t, at) })
}

func unmount(t testing.TB, at string) {
	err := unix.Unmount(at, 0)
	for range 100 {
		if err != unix.EBUSY {
			break
		}
		time.Sleep(20 * time.Millisecond)
		err = unix.Unmount(at, 0)
	}
	if err != nil {
		t.Errorf("unmount %s: %v; detaching it: %v", at, err, unix.Unmount(at, unix.MNT_DETACH))
	}
}

// newSloppy mounts one sloppy share several times over a tmpfs.
func newSloppy(t testing.TB, mounts int, plant func(*sloppyfs.Share)) (dirs []string, backing string) {
	t.Helper()
	needRoot(t)
	backing = newTmpfs(t)
	s, err := sloppyfs.New(backing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	plant(s)
	for range mounts {
		dir := t.TempDir()
		if err := s.Mount(dir); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs, backing
}

// smallBench is a bench that does little: enough to see a planted fault.
func smallBench(t testing.TB, contenders int, dirs ...string) Bench {
	b := newBench(t, contenders, dirs...)
	b.Contenders = []int{contenders}
	b.Rounds, b.Time, b.MinProof = 300, 200*time.Millisecond, 10
	b.ColdRounds, b.HoldWait = 8, 150*time.Millisecond
	if len(dirs) > 1 {
		b.Scope = result.ScopeMount
	}
	return b
}

// run runs one probe by name.
func run(t testing.TB, b Bench, probe string) result.Finding {
	t.Helper()
	p, ok := Find(probe)
	if !ok {
		t.Fatalf("no probe %s", probe)
	}
	return Run(t.Context(), p, b)
}

// describe is what a failing test prints of a finding.
func describe(f *result.Finding) string {
	return fmt.Sprintf("%s: %s %s (%s) %s; %d/%d contested, violations %d %v, errnos %v, control %+v, warnings %q",
		f.Promise, f.Verdict, f.Class, f.Scope, f.Reason, f.Contested, f.Rounds, f.Violations, f.Kinds, f.Errnos, f.Control, f.Warnings)
}

// leftovers is what is still under a directory.
func leftovers(t testing.TB, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, filepath.Join(dir, e.Name()))
	}
	slices.Sort(names)
	return names
}
