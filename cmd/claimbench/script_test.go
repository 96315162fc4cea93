package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// patience bounds every wait for something that is about to happen. What took how long is logged, not judged.
const patience = 30 * time.Second

// TestScript runs testdata/script with the program as it is shipped, since contenders are the program again. Beside
// what testscript provides, scripts have the commands of the table below, the conditions of capable, and in the
// environment BIN, the program's path, and SHM, a directory on tmpfs.
func TestScript(t *testing.T) {
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
		if signal.Ignored(s) { // as under nohup: the scripts' shells could not trap it
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	bin := buildProgram(t)
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		Condition:          capable,
		Setup:              func(env *testscript.Env) error { return setup(env, bin) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":       status,
			"says":         says,
			"nothingleft":  nothingLeft,
			"eachpromise":  eachPromise,
			"validate":     validate,
			"waitfor":      waitFor,
			"nomatch":      noMatch,
			"processes":    processes,
			"signal":       signalBackground,
			"ended":        ended,
			"terminal":     terminal,
			"norenameat2":  withoutRenameat2,
			"unexecutable": unexecutable,
		},
	})
}

func buildProgram(t *testing.T) string {
	dir, err := os.MkdirTemp("", "claimbench-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	bin := filepath.Join(dir, "claimbench")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for scripts that change the user
		t.Fatal(err)
	}
	return bin
}

func setup(env *testscript.Env, bin string) error {
	shm, err := os.MkdirTemp("/dev/shm", "claimbench-script-")
	if err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(shm) })
	env.Setenv("PATH", filepath.Dir(bin)+":"+os.Getenv("PATH"))
	env.Setenv("BIN", bin)
	env.Setenv("SHM", shm)
	env.Values[lastSignal{}] = &lastSignal{}
	return os.Chmod(filepath.Dir(env.WorkDir), 0o711)
}

// capable knows the conditions [root] and [mounts]: root that may mount in a namespace of its own, which is not a
// matter of course in a container.
func capable(condition string) (bool, error) {
	able := false
	switch condition {
	case "root":
		able = os.Geteuid() == 0
	case "mounts":
		able = canMount()
	default:
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	if !able && os.Getenv("CLAIMBENCH_NO_SKIP") != "" {
		return false, fmt.Errorf("[%s] is not met, and CLAIMBENCH_NO_SKIP is set", condition)
	}
	return able, nil
}

var canMount = sync.OnceValue(func() bool {
	return exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "claimbench", "/tmp").Run() == nil
})

// status runs a command that must end with one of the given exit statuses: status 0,3 claimbench ...
func status(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: status N[,N] program [args...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	checkStatus(ts, args[0], err)
}

func checkStatus(ts *testscript.TestScript, want string, err error) {
	var exit *exec.ExitError
	got := "0"
	switch {
	case errors.As(err, &exit):
		got = strconv.Itoa(exit.ExitCode())
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if !slices.Contains(strings.Split(want, ","), got) {
		ts.Fatalf("exit status %s (%v), want %s", got, err, want)
	}
}

// says requires that the last command printed exactly this one error, and nothing to stdout.
func says(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: says 'error'")
	}
	if got, want := ts.ReadFile("stderr"), "claimbench: "+args[0]+"\n"; got != want {
		ts.Fatalf("stderr is\n%swant\n%s", got, want)
	}
	if got := ts.ReadFile("stdout"); got != "" {
		ts.Fatalf("stdout is\n%swant nothing", got)
	}
}

func nothingLeft(ts *testscript.TestScript, _ bool, dirs []string) {
	for _, dir := range dirs {
		entries, err := os.ReadDir(ts.MkAbs(dir))
		ts.Check(err)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".claimbench-") {
				ts.Fatalf("left behind: %s in %s", e.Name(), dir)
			}
		}
	}
}

// eachPromise requires that stdout has so many rows for each probe there is.
func eachPromise(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	for _, p := range probes.All {
		row := regexp.MustCompile(`(?m)^` + p.Name + `( \[\d+\])* +(holds|unproven|unsupported|broken|hung)\b`)
		want := want
		if p.Disposable || p.Hosts { // the scripts survey nothing that may be harmed, on one kernel
			want = 0
		}
		if got := len(row.FindAllString(ts.ReadFile("stdout"), -1)); got != want {
			ts.Fatalf("%d rows for %s, want %d", got, p.Name, want)
		}
	}
}

func validate(ts *testscript.TestScript, _ bool, files []string) {
	for _, file := range files {
		ts.Check(result.Validate([]byte(ts.ReadFile(file))))
	}
}

func eventually(ts *testscript.TestScript, what string, happened func() bool) {
	for began := time.Now(); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			ts.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// waitFor waits until a file matches the pattern.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "waitfor "+args[0], func() bool { return len(matches(ts, args[0])) > 0 })
}

// noMatch requires that no file matches the pattern, which exists of testscript takes for a name.
func noMatch(ts *testscript.TestScript, _ bool, args []string) {
	if found := matches(ts, args[0]); len(found) > 0 {
		ts.Fatalf("there is %s", strings.Join(found, ", "))
	}
}

func matches(ts *testscript.TestScript, pattern string) []string {
	found, err := filepath.Glob(ts.MkAbs(pattern))
	ts.Check(err)
	return found
}

// processes waits until exactly so many processes run a program. A script that counts uses a copy of its own.
func processes(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	eventually(ts, args[0]+" processes of "+args[1], func() bool { return running(ts.MkAbs(args[1])) == want })
}

func running(program string) (n int) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe") // only a malformed pattern is an error
	for _, link := range links {
		if exe, err := os.Readlink(link); err == nil && strings.TrimSuffix(exe, " (deleted)") == program {
			n++
		}
	}
	return n
}

// lastSignal is what signal did, for ended to judge.
type lastSignal struct {
	to *exec.Cmd
	at time.Time
}

// signalBackground signals the newest background command: signal TERM.
func signalBackground(ts *testscript.TestScript, _ bool, args []string) {
	background := ts.BackgroundCmds()
	if len(background) == 0 {
		ts.Fatalf("nothing runs in the background")
	}
	last := ts.Value(lastSignal{}).(*lastSignal)
	last.to, last.at = background[len(background)-1], time.Now()
	ts.Check(last.to.Process.Signal(unix.SignalNum("SIG" + args[0])))
}

// ended requires the exit status of the command that was signalled, after it was waited for; -1 is death by a signal.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	last := ts.Value(lastSignal{}).(*lastSignal)
	took := time.Since(last.at)
	ts.Logf("ended %v after the signal", took.Round(time.Millisecond))
	if got := strconv.Itoa(last.to.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("%v, want exit status %s", last.to.ProcessState, args[0])
	}
	if took > 10*time.Second {
		ts.Fatalf("it took %v from the signal to the end", took)
	}
}

// command is a program as exec of testscript would start it, for commands that start it in a way of their own.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	program := args[0]
	if !strings.Contains(program, "/") {
		program = filepath.Join(filepath.Dir(ts.Getenv("BIN")), program)
	}
	cmd := exec.Command(program, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TERM=xterm", "NO_COLOR=" + ts.Getenv("NO_COLOR")}
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	return cmd
}

// terminal is status for a command whose stdout is a terminal of 100 columns.
func terminal(ts *testscript.TestScript, _ bool, args []string) {
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)
	defer control.Close()
	ts.Check(unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	ts.Check(err)
	ts.Check(unix.IoctlSetWinsize(int(control.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)
	cmd := command(ts, args[1:])
	cmd.Stdout = tty
	var shown bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		shown.ReadFrom(control) // EIO when the other end is closed, tty_ioctl(4)
	}()
	err = cmd.Run()
	tty.Close()
	<-read
	fmt.Fprint(ts.Stdout(), strings.ReplaceAll(shown.String(), "\r\n", "\n"))
	checkStatus(ts, args[0], err)
}

// withoutRenameat2 is status for a command under a seccomp filter that answers renameat2(2) with an errno, as those
// of container engines that do not know the call: norenameat2 ENOSYS 1 claimbench ...
func withoutRenameat2(ts *testscript.TestScript, _ bool, args []string) {
	errno := map[string]unix.Errno{"ENOSYS": unix.ENOSYS, "EPERM": unix.EPERM}[args[0]]
	cmd := command(ts, args[2:])
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread has the filter, and ends with this goroutine
		if err := refuse(unix.SYS_RENAMEAT2, errno); err != nil {
			ended <- err
			return
		}
		ended <- cmd.Run()
	}()
	checkStatus(ts, args[1], <-ended)
}

// refuse installs a filter on the calling thread, which its children inherit: seccomp(2).
func refuse(call uint32, errno unix.Errno) error {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // offset 0 of struct seccomp_data: the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}

// unexecutable is status for a program whose file loses its x bits when the kernel has just started it. ptrace(2)
// holds it at that point.
func unexecutable(ts *testscript.TestScript, _ bool, args []string) {
	runtime.LockOSThread() // the thread that started the child is its tracer
	defer runtime.UnlockOSThread()
	cmd := command(ts, args[1:])
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	ts.Check(cmd.Start())
	var stopped unix.WaitStatus
	_, err := unix.Wait4(cmd.Process.Pid, &stopped, 0, nil)
	ts.Check(err)
	ts.Check(os.Chmod(cmd.Path, 0o644))
	ts.Check(unix.PtraceDetach(cmd.Process.Pid))
	checkStatus(ts, args[0], cmd.Wait())
}
