package facts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// standAside keeps the test's directories out of /tmp, which the test mounts over.
func standAside(t *testing.T) string {
	t.Helper()
	t.Setenv("TMPDIR", "/var/tmp")
	return t.TempDir()
}

func TestDefaultTargetsAreEachFilesystemOnce(t *testing.T) {
	ownMounts(t)
	dir := standAside(t)
	mount(t, "here", mkdir(t, dir+"/wd"), "tmpfs", 0, "")
	mount(t, dir+"/wd", mkdir(t, dir+"/home"), "", unix.MS_BIND, "")
	mount(t, "tmp", "/tmp", "tmpfs", 0, "")
	mount(t, "shm", "/dev/shm", "tmpfs", 0, "")
	t.Chdir(dir + "/wd")
	t.Setenv("HOME", dir+"/home")
	targets, skipped := DefaultTargets()
	if want := []string{dir + "/wd", "/tmp", "/dev/shm"}; !slices.Equal(targets, want) {
		t.Errorf("got %q, want %q", targets, want)
	}
	if len(skipped) != 1 || !strings.HasPrefix(skipped[0], "$HOME: on the same filesystem as "+dir+"/wd") {
		t.Errorf("skipped %q", skipped)
	}
}

func TestDefaultTargetsCanBeWritten(t *testing.T) {
	ownMounts(t)
	dir := standAside(t)
	mount(t, "tmp", "/tmp", "tmpfs", unix.MS_RDONLY, "")
	mount(t, "devices", "/dev/shm", "devpts", 0, "")
	file := dir + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir("/proc")
	t.Setenv("HOME", file)
	targets, skipped := DefaultTargets()
	if len(targets) != 0 || len(skipped) != 4 {
		t.Fatalf("got %q, skipped %q", targets, skipped)
	}
	for i, want := range []string{"working directory: ", "read-only file system", "devpts is no filesystem for files", "not a directory"} {
		if !strings.Contains(skipped[i], want) {
			t.Errorf("%q is not said: %s", want, skipped[i])
		}
	}
}

func TestDefaultTargetsOfAnotherUser(t *testing.T) {
	needRoot(t)
	home := t.TempDir()
	for _, dir := range []string{home, filepath.Dir(home)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	var got [2][]string
	start(t, "targets", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, nil, &got)
	want := "$HOME: write to " + home + ": permission denied"
	if !slices.Contains(got[1], want) || slices.Contains(got[0], home) {
		t.Errorf("got %q, skipped %q; want %q", got[0], got[1], want)
	}
}

// TestTheEffectiveUserCounts gives one thread another effective user id, as a set-user-ID program has.
func TestTheEffectiveUserCounts(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the changed thread ends with its goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 {
			done <- errno
			return
		}
		done <- writableDirectory(dir)
	}()
	if err := <-done; !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a directory of root can be written by user 65534: %v", err)
	}
}

func TestAMissingHomeIsSaid(t *testing.T) {
	t.Setenv("HOME", "")
	if _, skipped := DefaultTargets(); !slices.Contains(skipped, "$HOME: $HOME is not defined") {
		t.Errorf("skipped %q", skipped)
	}
}

func TestChooseTargets(t *testing.T) {
	for _, tt := range []struct {
		name       string
		candidates []candidate
		targets    string
		skipped    []string
	}{
		{"three filesystems", []candidate{{"wd", "/w", "ext4", "8:1", ""}, {"/tmp", "/tmp", "tmpfs", "0:30", ""}, {"$HOME", "/h", "nfs4", "0:40", ""}},
			"/w /tmp /h", nil},
		{"one filesystem", []candidate{{"wd", "/w", "ext4", "8:1", ""}, {"/tmp", "/tmp", "ext4", "8:1", ""}},
			"/w", []string{"/tmp: on the same filesystem as /w (8:1)"}},
		{"the first is read-only", []candidate{{"wd", "/w", "", "", "no"}, {"/tmp", "/tmp", "ext4", "8:1", ""}},
			"/tmp", []string{"wd: no"}},
		{"pseudo", []candidate{{"wd", "/sys/fs/cgroup", "cgroup2", "0:9", ""}, {"/tmp", "/tmp", "ext4", "8:1", ""}},
			"/tmp", []string{"wd: cgroup2 is no filesystem for files"}},
		{"unknown superblocks are not one", []candidate{{"wd", "/w", "", "", ""}, {"/tmp", "/tmp", "", "", ""}},
			"/w /tmp", nil},
	} {
		targets, skipped := chooseTargets(tt.candidates)
		if strings.Join(targets, " ") != tt.targets || !slices.Equal(skipped, tt.skipped) {
			t.Errorf("%s: got %q, skipped %q", tt.name, targets, skipped)
		}
	}
}
