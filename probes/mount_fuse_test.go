package probes

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/testenv"
)

// needRoot skips where mounting is refused: without root, and for root in a container that may not. It skips on a
// single CPU, too: the filesystem and all contenders would have to take turns on it.
func needRoot(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("claimbench", dir, "tmpfs", 0, ""); err != nil {
		testenv.Lacks(t, "mounting is refused: "+err.Error())
	}
	unmount(t, dir)
	if runtime.NumCPU() < 2 {
		testenv.Lacks(t, "contention needs two CPUs")
	}
}

// mountAt mounts for the length of the test.
func mountAt(t testing.TB, source, at, fstype string, flags uintptr, options string) {
	t.Helper()
	if err := unix.Mount(source, at, fstype, flags, options); err != nil {
		t.Fatalf("mount %s on %s (%s): %v", fstype, at, options, err)
	}
	t.Cleanup(func() { unmount(t, at) })
}

// unmount waits a moment for contenders that are just ending. What is still in use then is detached, and reported.
func unmount(t testing.TB, at string) {
	err := unix.Unmount(at, 0)
	for until := time.Now().Add(2 * time.Second); err == unix.EBUSY && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
		err = unix.Unmount(at, 0)
	}
	if err != nil {
		t.Errorf("unmount %s: %v; detaching it: %v", at, err, unix.Unmount(at, unix.MNT_DETACH))
	}
}

// newTmpfs mounts a tmpfs of the test's own.
func newTmpfs(t testing.TB) string { return newTmpfsOf(t, "256m") }

func newTmpfsOf(t testing.TB, size string) string {
	t.Helper()
	dir := t.TempDir()
	mountAt(t, "tmpfs", dir, "tmpfs", 0, "mode=0755,size="+size)
	return dir
}

// newFaulty mounts a share with faults, once or several times, over a tmpfs.
func newFaulty(t testing.TB, mounts int, faults string) (dirs []string) {
	t.Helper()
	return newFaultyOf(t, "256m", mounts, faults)
}

func newFaultyOf(t testing.TB, size string, mounts int, faults string) (dirs []string) {
	t.Helper()
	_, dirs = newShare(t, size, mounts, faults)
	return dirs
}

func newShare(t testing.TB, size string, mounts int, faults string) (s *faultfs.Share, dirs []string) {
	t.Helper()
	needRoot(t)
	if _, err := os.Stat("/dev/fuse"); err != nil {
		testenv.Lacks(t, err.Error())
	}
	planted, err := faultfs.Parse(faults)
	if err != nil {
		t.Fatal(err)
	}
	s, err = faultfs.New(newTmpfsOf(t, size), 1, planted...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for range mounts {
		dir := t.TempDir()
		if err := s.Mount(dir); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return s, dirs
}

// smallBench does little: enough to see a planted fault, and to see that nothing else is there.
func smallBench(t testing.TB, contenders int, dirs ...string) Bench {
	t.Helper()
	b := newBench(t, contenders, dirs...)
	b.Contenders, b.Rounds, b.MinProof = []int{contenders}, 200, 10
	b.Time, b.ColdRounds = 120*time.Millisecond, 8
	if len(dirs) > 1 {
		b.Scope = result.ScopeMount
	}
	return b
}

// enterFresh takes the contenders to a fresh directory, over each route, as a survey does for each probe.
func enterFresh(t testing.TB, b Bench, name string, dirs ...string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dirs[0], name), 0o777); err != nil {
		t.Fatal(err)
	}
	var fresh []string
	for _, d := range dirs {
		fresh = append(fresh, filepath.Join(d, name))
	}
	if err := b.Line.Enter(t.Context(), fresh...); err != nil {
		t.Fatal(err)
	}
}

func run(t testing.TB, b Bench, probe string) result.Finding {
	t.Helper()
	p, ok := Find(probe)
	if !ok {
		t.Fatalf("no probe %s", probe)
	}
	return Run(t.Context(), p, b)
}

// insist runs a probe, and runs it again with a larger budget when it proved nothing or missed what is to be seen: that
// can be for want of luck on a busy machine. Claiming a violation that is none is not forgiven.
func insist(t testing.TB, b Bench, probe string, want result.Verdict) result.Finding {
	t.Helper()
	f := run(t, b, probe)
	for tries := 0; tries < 3 && f.Verdict != want && (f.Verdict == result.Unproven || f.Verdict == result.Holds); tries++ {
		t.Logf("again, with a larger budget: %s", describe(&f))
		b.Time, b.Rounds = 3*b.Time, 3*b.Rounds
		f = run(t, b, probe)
	}
	return f
}

// describe is what a failing test prints of a finding.
func describe(f *result.Finding) string {
	return fmt.Sprintf("%s %s %s (%s): %s\n\t%d of %d rounds contested, %d violations %v, errnos %v, control %+v, warnings %q",
		f.Promise, f.Verdict, f.Class, f.Scope, f.Reason, f.Contested, f.Rounds, f.Violations, f.Kinds, f.Errnos, f.Control, f.Warnings)
}
