package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/testenv"
)

// fakeVariable has this program play the others: a kernel, which has a helper that has lost its mark, and the survey.
const fakeVariable = "CLAIMBENCH_LAB_FAKE"

func TestMain(m *testing.M) {
	if os.Getenv(fakeVariable) != "" {
		fake(os.Args[1:])
	}
	os.Exit(m.Run())
}

func fake(args []string) {
	wish, order := "enough", "" // what ends it; what it has done at once
	if args[0] == "helper" {
		wish = "never"
	} else if args[0] == "serve" {
		fmt.Println("here: 3 steps")
	} else {
		dir := ""
		for _, a := range args {
			if d, is := strings.CutPrefix(a, GuestVariable+"="); is {
				dir = d
			}
		}
		fmt.Println("the kernel's words")
		_, _ = unix.Setsid() // as it does, unless it leads a group already
		helper := exec.Command("/proc/self/exe", "helper")
		helper.Env = []string{fakeVariable + "=1"}
		err := helper.Start()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "helper"), []byte(strconv.Itoa(helper.Process.Pid)), 0o644)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, stateName), []byte(stateSurveying), 0o644)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		wish, order = filepath.Join(dir, "die"), filepath.Join(dir, "fault-restart")
	}
	for {
		_ = os.Remove(order)
		if _, err := os.Stat(wish); err == nil {
			os.Exit(0)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// kernels makes a stand of two hosts whose kernels are fakes, without devices.
func kernels(t *testing.T, faults ...string) *Stand {
	t.Helper()
	return fakes(t, &UML{Server: "nfs", Hosts: 2, Faults: parsed(t, faults)})
}

func parsed(t *testing.T, texts []string) (all []Fault) {
	t.Helper()
	for _, text := range texts {
		f, err := parseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

func fakes(t *testing.T, u *UML) *Stand {
	t.Helper()
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv(fakeVariable, "1")
	self, err := os.Executable()
	for name, what := range map[string]string{"linux.uml": self, "ip": "/bin/true", "mkfs.ext4": "/bin/true"} {
		err = errors.Join(err, os.Symlink(what, filepath.Join(bin, name)))
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := Make(t.Context(), Target{Name: "x", UML: u}, Where{Scratch: t.TempDir(), Ledgers: t.TempDir()})
	if err != nil {
		testenv.Lacks(t, err)
	}
	t.Cleanup(func() { s.TakeDown() })
	return s
}

// helperOf is the pid of a kernel's helper, once there is another one than before.
func helperOf(t *testing.T, dir string, before int) (pid int) {
	t.Helper()
	err := until(20*time.Second, func() error {
		text, err := os.ReadFile(filepath.Join(dir, "helper"))
		if err == nil {
			pid, err = strconv.Atoi(string(text))
		}
		if err == nil && pid == before {
			err = errors.New("no other helper")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func helpers(t *testing.T, s *Stand) (pids []int) {
	t.Helper()
	for node := range 3 {
		pids = append(pids, helperOf(t, s.nodeDir(node), 0))
	}
	return pids
}

// gone waits for processes that were killed to be so.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if err := until(5*time.Second, func() error {
			if alive(pid) {
				return fmt.Errorf("a kernel's helper lives: %d", pid)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// nothingIsLeft of processes, mounts, directories and ledgers.
func nothingIsLeft(t *testing.T, s *Stand, helpers []int) {
	t.Helper()
	gone(t, helpers)
	if pids, err := processesMarked(s.ledger.Mark); len(pids) > 0 || err != nil {
		t.Errorf("processes %v, %v", pids, err)
	}
	if on, err := mounted(filepath.Join(s.Dir, networkName)); on || err == nil {
		t.Errorf("the network is still there: %v", err)
	}
	for _, dir := range []string{filepath.Dir(s.Dir), filepath.Dir(s.ledger.path)} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// survey surveys in the background.
func survey(ctx context.Context, s *Stand) chan error {
	over := make(chan error, 1)
	go func() { over <- s.surveyKernels(ctx, time.Minute) }()
	return over
}

func TestKernelsLeaveNothingHoweverTheSurveyEnds(t *testing.T) {
	for _, c := range []struct {
		how  string
		end  func(s *Stand, interrupt func())
		says string
	}{
		{"it is over", func(s *Stand, _ func()) { write(t, filepath.Join(s.Dir, "enough")) }, ""},
		{"interrupted", func(_ *Stand, interrupt func()) { interrupt() }, "context canceled"},
		{"a kernel dies", func(s *Stand, _ func()) { write(t, filepath.Join(s.nodeDir(2), "die")) }, "client-2: the guest ended before it was done; its console ends in\n  | the kernel's words"},
	} {
		t.Run(c.how, func(t *testing.T) {
			s := kernels(t)
			ctx, interrupt := context.WithCancel(t.Context())
			over := survey(ctx, s)
			pids := helpers(t, s)
			if err := until(20*time.Second, func() error { _, err := os.Stat(filepath.Join(s.Dir, surveyLog)); return err }); err != nil {
				t.Fatal(err)
			}
			c.end(s, interrupt)
			if err := <-over; c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %s", err, c.says)
			}
			gone(t, pids)
			if err := s.TakeDown(); err != nil {
				t.Error(err)
			}
			nothingIsLeft(t, s, pids)
		})
	}
}

func TestAKernelThatIsInterruptedEndsWithAllItsProcesses(t *testing.T) {
	s := fakes(t, &UML{Server: "nfs", Mounts: 1})
	ctx, interrupt := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- s.surveyUML(ctx, nil, time.Minute) }()
	pid := helperOf(t, s.Dir, 0)
	interrupt()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	gone(t, []int{pid})
}

// What a SIGKILL of the lab leaves: kernels that run, or what remains of them, and an unlocked ledger.
func TestCleanRemovesKernelsAndTheirNetwork(t *testing.T) {
	s := kernels(t)
	err := s.makeNetwork(t.Context())
	if err == nil {
		err = s.prepareNodes(t.Context())
	}
	n := &nodes{s: s}
	for node := 0; node < 3 && err == nil; node++ {
		err = n.boot(node)
	}
	if err != nil {
		t.Fatal(err)
	}
	pids := helpers(t, s)
	if on, err := mounted(filepath.Join(s.Dir, networkName)); !on || err != nil {
		t.Errorf("the network is not there: %v", err)
	}
	// One's first process has been killed, too: its helper is in the process group alone.
	if err := errors.Join(n.guests[0].cmd.Process.Kill(), <-n.guests[0].ended); err == nil {
		t.Error("it was not killed")
	}
	if err := unix.Flock(int(s.ledger.file.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if notes, err := Clean(filepath.Dir(s.ledger.path)); err != nil || len(notes) != 1 || !strings.HasSuffix(notes[0], "removed") {
		t.Errorf("%q, %v", notes, err)
	}
	nothingIsLeft(t, s, pids)
}

// endsWell ends a survey that is under way, and takes everything down.
func endsWell(t *testing.T, s *Stand, over <-chan error, pids []int) {
	t.Helper()
	write(t, filepath.Join(s.Dir, "enough"))
	if err := <-over; err != nil {
		t.Error(err)
	}
	if err := s.TakeDown(); err != nil {
		t.Error(err)
	}
	nothingIsLeft(t, s, pids)
}

func TestADeathOnPurposeDoesNotEndTheSurvey(t *testing.T) {
	s := kernels(t, "death 10ms")
	over := survey(t.Context(), s)
	pids := helpers(t, s)
	if err := until(20*time.Second, func() error {
		if alive(pids[2]) {
			return errors.New("the last host lives")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if !alive(pids[0]) || !alive(pids[1]) {
		t.Error("others have died with it")
	}
	endsWell(t, s, over, pids)
}

func TestAServerRebootsWhileItsClientsLive(t *testing.T) {
	s := kernels(t, "reboot 1ms every 10ms")
	over := survey(t.Context(), s)
	pids := helpers(t, s)
	again := helperOf(t, s.nodeDir(0), pids[0])
	if alive(pids[0]) || !alive(pids[1]) || !alive(pids[2]) {
		t.Error("not the server alone was ended")
	}
	endsWell(t, s, over, append(pids, again))
}

func TestTheServerIsAskedForTheFaultsWithinIt(t *testing.T) {
	s := kernels(t, "restart 1ms every 10ms")
	over := survey(t.Context(), s)
	pids := helpers(t, s)
	if err := until(20*time.Second, func() error {
		log, err := os.ReadFile(filepath.Join(s.Dir, faultLog))
		if err == nil && !strings.Contains(string(log), "is over: restart 1ms every 10ms") {
			err = fmt.Errorf("no restart is over: %s", log)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	endsWell(t, s, over, pids)
}

func TestAHostThatIsLostUnaskedFailsTheRun(t *testing.T) {
	for _, c := range []struct {
		faults     []string
		incomplete string
		says       string
	}{
		{nil, "", ""},
		{nil, "host a is lost", "the survey is incomplete: host a is lost"},
		{[]string{"death 1s"}, "host a is lost", ""},
		{[]string{"death 1s"}, "", "a host was to be lost"},
	} {
		target := Target{UML: &UML{Hosts: 2, Faults: parsed(t, c.faults)}}
		err := target.complete(&result.File{Incomplete: c.incomplete})
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says)) {
			t.Errorf("%v, %q: %v, want %q", c.faults, c.incomplete, err, c.says)
		}
	}
}
