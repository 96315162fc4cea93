package probes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/museum"
	"github.com/claimbench/claimbench/internal/testenv"
)

// The filesystems of the kernel keep all promises: here nothing but holds may come out.
func TestGoodFilesystemsHold(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("on one CPU no two calls of a local filesystem overlap")
	}
	all := []struct {
		name string
		make func(testing.TB) []string // the routes
	}{
		{"temporary directory", func(t testing.TB) []string { return []string{t.TempDir()} }},
		{"tmpfs", func(t testing.TB) []string { needRoot(t); return []string{newTmpfs(t)} }},
		{"ext4", func(t testing.TB) []string { return []string{newLoop(t, "ext4", "e2fsprogs", 64<<20)} }},
		{"xfs", func(t testing.TB) []string { return []string{newLoop(t, "xfs", "xfsprogs", 320<<20)} }},
		{"btrfs", func(t testing.TB) []string { return []string{newLoop(t, "btrfs", "btrfs-progs", 128<<20)} }},
		{"overlay", func(t testing.TB) []string { needRoot(t); return newOverlays(t, 1) }},
		{"bind mount", newBind},
		{"FUSE, twice", func(t testing.TB) []string { return newFaulty(t, 2, "") }},
	}
	if testing.Short() {
		all = all[:1]
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			dirs := c.make(t)
			b := smallBench(t, 4, dirs...)
			for _, p := range harmless() {
				enterFresh(t, b, p.Name, dirs...)
				good := museum.Exhibit{Probe: p.Name, Verdict: holds, Class: classWhereGood[p.Name]}
				if p.Name == "inode-reuse" {
					good.Class = reusing[c.name]
				}
				check(t, b, &good)
				if left := leftovers(t, filepath.Join(dirs[0], p.Name)); len(left) > 0 {
					t.Errorf("%s left %q", p.Name, left)
				}
			}
		})
	}
}

var classWhereGood = map[string]string{"flock": enforced, "posix-lock": enforced, "ofd-lock": enforced}

// reusing are the filesystems that give an inode number away again. What the temporary directory is on, is not known.
var reusing = map[string]string{"ext4": reused, "xfs": reused, "temporary directory": "any"}

// leftovers is what a probe should have removed. Its directory is the survey's to remove, with the lock files in it.
func leftovers(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		isLock := strings.HasPrefix(e.Name(), "lock") || strings.HasPrefix(e.Name(), "r") && filepath.Base(dir) == "lock-release"
		if !isLock {
			names = append(names, e.Name())
		}
	}
	return names
}

// newLoop makes a filesystem in a file, and mounts it.
func newLoop(t testing.TB, fstype, pkg string, size int64, options ...string) string {
	t.Helper()
	needRoot(t)
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, size); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("mkfs." + fstype); err != nil {
		testenv.Lacks(t, fmt.Sprintf("%v: install the package %s", err, pkg))
	}
	mkfs := append(append([]string{"mkfs." + fstype}, options...), "-q", image)
	for _, args := range [][]string{mkfs, {"mount", "-o", "loop", "-t", fstype, image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() { unmount(t, dir) })
	return dir
}

// An ext4 with inodes of 128 bytes has no room for fractions of a second, nor for a time of birth.
func TestCoarseTimesOfARealFilesystemAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	b := smallBench(t, 4, newLoop(t, "ext4", "e2fsprogs", 64<<20, "-I", "128"))
	coarse := museum.Exhibit{Probe: "timestamps", Mounts: 1, Verdict: broken, Violations: []string{coarseTimes}, Reason: "in steps of 1s"}
	check(t, b, &coarse)
	for _, p := range []museum.Exhibit{
		{Probe: "clock-skew", Verdict: holds}, {Probe: "inode-reuse", Verdict: holds, Class: reused, Reason: "the file handle does"},
	} {
		check(t, b, &p)
	}
}

// newBind reaches one directory by two paths through one superblock.
func newBind(t testing.TB) []string {
	t.Helper()
	needRoot(t)
	dir, bound := newTmpfs(t), t.TempDir()
	mountAt(t, dir, bound, "", unix.MS_BIND, "")
	return []string{dir, bound}
}

// newOverlays mounts overlays that share one upper directory. More than one is against the documentation of
// overlayfs, which calls the outcome undefined; the kernel mounts them all the same.
func newOverlays(t testing.TB, n int) (dirs []string) {
	t.Helper()
	base := newTmpfs(t)
	for _, d := range []string{"lower", "upper"} {
		if err := os.Mkdir(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		work, dir := filepath.Join(base, fmt.Sprint("work", i)), t.TempDir()
		if err := os.Mkdir(work, 0o755); err != nil {
			t.Fatal(err)
		}
		mountAt(t, "overlay", dir, "overlay", 0, fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s", base, base, work))
		dirs = append(dirs, dir)
	}
	return dirs
}

// Two overlays over one upper directory look each name up once and do not hear of the other's changes. What the
// directory below decides still has one winner (the loser is told ESTALE); what an overlay decides alone, from its old
// look-ups and its own locks, does not hold across them. The kernel calls the outcome undefined: of the promises that
// may be kept only that no violation is claimed.
func TestTwoOverlaysOfOneUpperDirectoryDoNotAgree(t *testing.T) {
	needRoot(t)
	dirs := newOverlays(t, 2)
	b := smallBench(t, 4, dirs...)
	for _, name := range []string{"excl-create", "mkdir", "symlink", "link", "rename-noreplace"} {
		enterFresh(t, b, name, dirs...)
		stale := museum.Exhibit{Probe: name, Mounts: 2, Verdict: broken, Violations: []string{releasedStaysTaken}}
		check(t, b, &stale)
	}
	for _, name := range []string{"flock", "posix-lock", "ofd-lock"} {
		enterFresh(t, b, name, dirs...)
		local := museum.Exhibit{Probe: name, Mounts: 2, Verdict: broken, Class: localOnly, Violations: []string{severalWinners}}
		check(t, b, &local)
	}
	b.MaxWait = 200 * time.Millisecond
	enterFresh(t, b, "visibility", dirs...)
	late := museum.Exhibit{Probe: "visibility", Mounts: 2, Verdict: broken, Violations: []string{newNameLate, newEntryLate, removedNameStays, removedInListing, oldFileStays, contentStale, touchLate, staleHandle}}
	check(t, b, &late)
	enterFresh(t, b, "lock-coherence", dirs...)
	lost := museum.Exhibit{Probe: "lock-coherence", Mounts: 2, Verdict: broken, Violations: []string{lostUpdate}}
	check(t, b, &lost)
	for _, name := range []string{"rename-dir-occupied", "rename-replace", "publish"} {
		enterFresh(t, b, name, dirs...)
		if f := run(t, b, name); f.Verdict != holds && f.Verdict != unproven {
			t.Error(describe(&f))
		}
	}
}
