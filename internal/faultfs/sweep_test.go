package faultfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/testenv"
)

// With servesAs set, this binary mounts something on its second argument over its first, says so, and serves it until
// its standard input ends.
const servesAs = "FAULTFS_TEST_SERVES"

func TestMain(m *testing.M) {
	as := os.Getenv(servesAs)
	if as == "" {
		os.Exit(m.Run())
	}
	if err := serve(as, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(as, dir, at string) error {
	if as == "loopback" {
		root, err := fs.NewLoopbackRoot(dir)
		if err != nil {
			return err
		}
		o := fs.Options{MountOptions: fuse.MountOptions{FsName: "faultfs", Name: "faultfs-not", DirectMountStrict: true}}
		server, err := fs.Mount(at, root, &o)
		if err != nil {
			return err
		}
		fmt.Println("serving")
		io.ReadAll(os.Stdin)
		return server.Unmount()
	}
	s, err := New(dir, 1)
	if err == nil {
		err = s.Mount(at)
	}
	if err != nil {
		return err
	}
	if as == "itself" {
		// A file that is open in its own mount is closed before /dev/fuse is, and that waits for the server.
		f, err := os.Create(filepath.Join(at, "mine"))
		if err != nil {
			return err
		}
		defer f.Close()
	}
	fmt.Println("serving")
	io.ReadAll(os.Stdin)
	return s.Close()
}

// needMounts skips where FUSE, or mounting, is not to be had. With CLAIMBENCH_NO_SKIP set that is a failure.
func needMounts(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	_, err := os.Stat("/dev/fuse")
	if err == nil {
		err = unix.Mount("claimbench", dir, "tmpfs", 0, "")
	}
	if err != nil {
		testenv.Lacks(t, err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
}

// A child is a process that serves a mount.
type child struct {
	*exec.Cmd
	at string
}

func start(t *testing.T, as string) child {
	t.Helper()
	c := child{exec.Command(os.Args[0], t.TempDir(), t.TempDir()), ""}
	c.at = c.Args[2]
	c.Env, c.Stderr = append(os.Environ(), servesAs+"="+as), os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		c.Wait()
		unix.Unmount(c.at, unix.MNT_DETACH) // what is left of a test that failed, and the other program's
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "serving\n" {
		t.Fatalf("%s: %q, %v", as, line, err)
	}
	return c
}

func (c child) mounted(t *testing.T) bool {
	t.Helper()
	all, err := mountTable()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(m mounted) bool { return m.at == c.at })
}

func TestSweepTakesTheMountOfADeadServerAlone(t *testing.T) {
	needMounts(t)
	killed, living, other, otherKilled := start(t, "share"), start(t, "share"), start(t, "loopback"), start(t, "loopback")
	inside := exec.Command("sleep", "60")
	inside.Dir = killed.at
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	defer inside.Wait()
	defer inside.Process.Kill()
	for _, c := range []child{killed, otherKilled} {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.Wait()
	}
	swept, err := Sweep()
	if err != nil || !slices.Contains(swept, killed.at) {
		t.Errorf("swept %q, %v", swept, err)
	}
	if killed.mounted(t) {
		t.Error("the mount of a dead server is still there")
	}
	for _, c := range []child{living, other, otherKilled} {
		if slices.Contains(swept, c.at) || !c.mounted(t) {
			t.Errorf("%v was swept", c.Env[len(c.Env)-1])
		}
	}
	for _, c := range []child{living, other} {
		if err := os.WriteFile(filepath.Join(c.at, "a"), []byte("a"), 0o666); err != nil {
			t.Error(err)
		}
	}
}

func TestSweepFreesWhoWaitsForAServerThatDiedInItsOwnMount(t *testing.T) {
	needMounts(t)
	killed := start(t, "itself")
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() {
		var st unix.Stat_t
		waits <- unix.Stat(filepath.Join(killed.at, "a"), &st)
	}()
	for until := time.Now().Add(10 * time.Second); killed.mounted(t) && time.Now().Before(until); {
		if _, err := Sweep(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case err := <-waits:
		if !errors.Is(err, unix.ENOTCONN) && !errors.Is(err, unix.ECONNABORTED) && !errors.Is(err, unix.ENOENT) {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a call in the mount still waits")
	}
}

func TestSweepLeavesAMountThatHoldsAnotherPrograms(t *testing.T) {
	needMounts(t)
	killed := start(t, "share")
	within := filepath.Join(killed.at, "within it")
	if err := os.Mkdir(within, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("claimbench", within, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	killed.Process.Kill()
	killed.Wait()
	swept, err := Sweep()
	if slices.Contains(swept, killed.at) || err == nil || !killed.mounted(t) {
		t.Errorf("swept %q, %v", swept, err)
	}
	if err := unix.Unmount(killed.at, unix.MNT_DETACH); err != nil {
		t.Error(err)
	}
}

func TestOnlyOurOwnSourceIsRead(t *testing.T) {
	own, err := self()
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := readID(own.String()); !ok || got != own || own.dead() {
		t.Errorf("%s is read as %+v, %v; dead: %v", own, got, ok, own.dead())
	}
	for _, source := range []string{"", "faultfs", "/tmp/a", "faultfs:1:2", own.String() + " x", "faultfs:01:2:pid:[3]", "sshfs:1:2:pid:[3]"} {
		if id, ok := readID(source); ok {
			t.Errorf("%q is read as %+v", source, id)
		}
	}
	later, elsewhere := own, own
	later.start++
	elsewhere.pid, elsewhere.space = 1<<30, "pid:[1]"
	if !later.dead() || elsewhere.dead() {
		t.Error("a number that came back is another process, and one of another namespace is not known to be dead")
	}
}

func TestAShareClosesThoughItsMountLastsInAnotherNamespace(t *testing.T) {
	needMounts(t)
	s, err := New(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Mount(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	elsewhere := exec.Command("sleep", "60")
	elsewhere.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	if err := elsewhere.Start(); err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Wait()
	defer elsewhere.Process.Kill()
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for the other namespace")
	}
}
