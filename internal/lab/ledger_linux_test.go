package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/testenv"
)

func newLedger(t *testing.T) *Ledger {
	t.Helper()
	l, err := NewLedger(t.TempDir(), "test")
	if err != nil {
		testenv.Lacks(t, err) // O_TMPFILE is not everywhere
	}
	return l
}

func note(t *testing.T, l *Ledger, entries ...Entry) {
	t.Helper()
	for _, e := range entries {
		if err := l.Note(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUndoRemovesWhatIsInTheLedgerAndNothingElse(t *testing.T) {
	l, dir := newLedger(t), t.TempDir()
	mine, other := filepath.Join(dir, "mine"), filepath.Join(dir, "other")
	note(t, l, Entry{Kind: kindDir, Path: mine}, Entry{Kind: kindMount, Path: filepath.Join(mine, "never-made")})
	for _, d := range []string{mine, other} {
		if err := os.MkdirAll(filepath.Join(d, "below"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Undo(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mine); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", mine, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(l.path); !os.IsNotExist(err) {
		t.Errorf("the ledger is still there: %v", err)
	}
}

func TestUndoEndsTheProcessesWithTheMarkAlone(t *testing.T) {
	l := newLedger(t)
	note(t, l, Entry{Kind: kindProcesses, Mark: l.Mark})
	start := func(mark string) *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = []string{MarkVariable + "=" + mark}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	mine, other := start(l.Mark), start(l.Mark+"0")
	defer func() { other.Process.Kill(); other.Wait() }()
	ended := make(chan error, 1)
	go func() { ended <- mine.Wait() }()
	if err := l.Undo(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the marked process ended with %v", err)
	}
	if !alive(other.Process.Pid) {
		t.Error("a process with another mark was ended")
	}
}

func TestUndoEndsWhatAMarkedProcessLeads(t *testing.T) {
	l := newLedger(t)
	note(t, l, Entry{Kind: kindProcesses, Mark: l.Mark})
	s := &Stand{ledger: l, Dir: t.TempDir()}
	if err := s.hold(); err != nil {
		t.Fatal(err)
	}
	cmd := s.command(t.Context(), []string{"sleep", "1000"})
	cmd.Env = []string{} // it has lost its mark
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := l.Undo(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("it ended with %v", err)
	}
	if alive(s.group) {
		t.Error("the leader is still there")
	}
}

// A process group's number comes back: only where the leader is ours, or gone, the others are.
func TestTheProcessGroupOfAnotherLeaderIsLeftAlone(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err == nil {
		sleep, err = filepath.EvalSymlinks(sleep)
	}
	if err != nil {
		testenv.Lacks(t, err)
	}
	leader := exec.Command("sh", "-c", "sleep 1000 & echo; wait")
	leader.Env = []string{MarkVariable + "=theirs"}
	leader.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	out, err := leader.StdoutPipe()
	if err == nil {
		err = leader.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pgid := leader.Process.Pid
	defer leader.Wait()
	defer unix.Kill(-pgid, unix.SIGKILL)
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	find := func(mark string) (pids []int) {
		for range 200 { // until the shell's child has become the program
			if pids, err = processesOf(pgid, sleep, mark); err != nil || len(pids) > 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		return pids
	}
	if pids := find("theirs"); len(pids) != 1 || err != nil {
		t.Errorf("its own: %v, %v", pids, err)
	}
	if pids, err := processesOf(pgid, sleep, "mine"); len(pids) > 0 || err != nil {
		t.Errorf("of another: %v, %v", pids, err)
	}
}

func TestLedgersThatCannotBeReadAreToldAndNoneAreNone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if notes, err := Clean(file); err == nil || len(notes) > 0 {
		t.Errorf("%q, %v", notes, err)
	}
	if notes, err := Clean(filepath.Join(dir, "absent")); err != nil || len(notes) > 0 {
		t.Errorf("%q, %v", notes, err)
	}
}

func TestALedgerThatAnotherHasUndoneIsNoError(t *testing.T) {
	l := newLedger(t)
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	if err := l.Undo(); err != nil {
		t.Error(err)
	}
}

// The scratch directory is reached by a symlink, and somebody has mounted something in it: what is there is not removed.
func TestWhatAnotherHasMountedInTheScratchDirectoryStays(t *testing.T) {
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	ledgers := t.TempDir()
	s, err := Make(t.Context(), Target{Name: "x", Disk: &Disk{Type: "tmpfs"}}, Where{Scratch: link, Ledgers: ledgers})
	if err != nil {
		testenv.Lacks(t, err)
	}
	at := filepath.Join(s.Dir, "another's")
	precious := filepath.Join(at, "precious")
	err = os.Mkdir(at, 0o755)
	if err == nil {
		err = unix.Mount("another", at, "tmpfs", 0, "")
	}
	if err == nil {
		err = os.WriteFile(precious, nil, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.TakeDown(); err == nil || !strings.Contains(err.Error(), "is still mounted") {
		t.Errorf("taken down: %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if err := unix.Unmount(at, 0); err != nil {
		t.Error(err)
	}
	if notes, err := Clean(ledgers); err != nil || len(notes) != 1 || !strings.HasSuffix(notes[0], "removed") {
		t.Errorf("%q, %v", notes, err)
	}
	if left, err := os.ReadDir(real); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// atItsEnd starts a program of the ledger's in a directory, which runs a command when it is ended.
func atItsEnd(t *testing.T, l *Ledger, dir, command string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "trap '"+command+"; exit' TERM; echo; while :; do sleep 0.1; done")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), MarkVariable+"="+l.Mark)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// What keeps a mount busy is the program that serves it, which unmounts it when it is ended.
func TestAMountThatItsProgramHasTakenDownIsNotLeftBehind(t *testing.T) {
	l, at := newLedger(t), t.TempDir()
	if err := unix.Mount("lab", at, "tmpfs", 0, ""); err != nil {
		testenv.Lacks(t, err)
	}
	defer unix.Unmount(at, unix.MNT_DETACH)
	note(t, l, Entry{Kind: kindProcesses, Mark: l.Mark}, Entry{Kind: kindMount, Path: at})
	atItsEnd(t, l, at, "cd /; umount "+at)
	if err := l.Undo(); err != nil {
		t.Error(err)
	}
}

func TestWhatAProgramMountsAtItsEndIsUnmounted(t *testing.T) {
	l, dir := newLedger(t), filepath.Join(t.TempDir(), "dir")
	at := filepath.Join(dir, "at")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("lab", at, "tmpfs", 0, ""); err != nil {
		testenv.Lacks(t, err)
	}
	defer unix.Unmount(at, unix.MNT_DETACH)
	if err := unix.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	note(t, l, Entry{Kind: kindDir, Path: dir}, Entry{Kind: kindProcesses, Mark: l.Mark}, Entry{Kind: kindMount, Path: at})
	atItsEnd(t, l, "", "mount -t tmpfs lab "+at)
	if err := l.Undo(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestALastLineThatIsCutOffIsNoEntry(t *testing.T) {
	l := newLedger(t)
	note(t, l, Entry{Kind: kindDir, Path: "/a"})
	if _, err := l.file.WriteString(`{"kind":"dir","pa`); err != nil {
		t.Fatal(err)
	}
	got, err := readEntries(l.file)
	if err != nil || !slices.Equal(got, []Entry{{Kind: kindDir, Path: "/a"}}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestALedgerThatSaysSomethingElseIsLeftAlone(t *testing.T) {
	for _, line := range []string{"rubbish\n", `{"kind":"dir","path":"/a","new":1}` + "\n", `{"kind":"volcano"}` + "\n"} {
		l := newLedger(t)
		if _, err := l.file.WriteString(line); err != nil {
			t.Fatal(err)
		}
		if err := l.Undo(); err == nil {
			t.Errorf("%q was undone", line)
		}
		if _, err := os.Stat(l.path); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestCleanLeavesALivingLabAlone(t *testing.T) {
	l := newLedger(t)
	dir := t.TempDir()
	note(t, l, Entry{Kind: kindDir, Path: filepath.Join(dir, "x")})
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	ledgers := filepath.Dir(l.path)
	notes, err := Clean(ledgers)
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "left alone") {
		t.Errorf("%q, %v", notes, err)
	}
	if err := unix.Flock(int(l.file.Fd()), unix.LOCK_UN); err != nil { // as the kernel does when a process dies
		t.Fatal(err)
	}
	notes, err = Clean(ledgers)
	if err != nil || len(notes) != 1 || !strings.HasSuffix(notes[0], "removed") {
		t.Errorf("%q, %v", notes, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
