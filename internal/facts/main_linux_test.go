package facts

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/testenv"
)

// childEnv names what a re-executed test binary does in place of running tests.
const childEnv = "CLAIMBENCH_FACTS_CHILD"

func init() {
	// Only then is the goroutine of TestMain on the thread that leads the process.
	if os.Getenv(childEnv) == "headless" {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "owner":
		answer(Self())
	case "headless":
		self, err := Self() // here: the namespaces of a thread that has ended can't be read
		go func() { answer(self, err); os.Exit(0) }()
		unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	case "host":
		answer(ReadHost())
	case "targets":
		targets, skipped := DefaultTargets()
		answer([][]string{targets, skipped}, nil)
	case "gone":
		var o Owner
		if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
			panic(err)
		}
		answer(verdict(OwnerGone(o)), nil)
	case "own record":
		o, err := Self()
		if err != nil {
			panic(err)
		}
		answer(verdict(OwnerGone(o)), nil)
	case "reuse":
		answer(reusedID())
	default:
		panic("unknown child " + os.Getenv(childEnv))
	}
}

// answer prints v, or err, and then stays until its standard input ends.
func answer(v any, err error) {
	if err != nil {
		v = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		panic(err)
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		panic(err)
	}
}

type goneAnswer struct {
	Gone bool
	Why  string
}

func verdict(gone bool, why string) goneAnswer { return goneAnswer{gone, why} }

// A child is a re-executed test binary that has answered and stays until it is ended.
type child struct {
	*exec.Cmd
	stdin io.WriteCloser
}

// end lets the child return and collects it.
func (c child) end() error {
	return errorsOf(c.stdin.Close(), c.Wait())
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// spawn starts this test binary as a child of the given kind, hands it the input, and decodes its answer.
func spawn(kind string, attr *syscall.SysProcAttr, input, answer any) (child, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+kind)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = attr
	cmd.Dir = "/"
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errorsOf(err1, err2, cmd.Start()); err != nil {
		return child{}, err
	}
	c := child{cmd, stdin}
	if input != nil {
		if err := json.NewEncoder(stdin).Encode(input); err != nil {
			return c, err
		}
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	return c, errorsOf(err, json.Unmarshal(line, answer))
}

func start(t *testing.T, kind string, attr *syscall.SysProcAttr, input, answer any) child {
	t.Helper()
	c, err := spawn(kind, attr, input, answer)
	if c.Cmd != nil {
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	}
	if err != nil {
		t.Fatalf("child %q: %v", kind, err)
	}
	return c
}

// needRoot skips where mounting and namespaces can't be had: without root, and for root in a container that may not.
// With CLAIMBENCH_NO_SKIP set a machine must have them.
func needRoot(t *testing.T) {
	t.Helper()
	if exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "claimbench", "/tmp").Run() == nil {
		return
	}
	testenv.Lacks(t, "mounts and makes namespaces, which needs root that may")
}

// ownMounts gives the test's goroutine a mount namespace, working directory and thread of its own, so that nothing
// it mounts is seen elsewhere or survives it.
func ownMounts(t *testing.T) {
	t.Helper()
	needRoot(t)
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatalf("unshare mounts: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatalf("make / private: %v", err)
	}
}

func mount(t *testing.T, source, target, fstype string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, target, fstype, flags, data); err != nil {
		t.Fatalf("mount %s on %s: %v", fstype, target, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", target, err)
		}
	})
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually waits for what happens soon, and fails if it does not.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}
