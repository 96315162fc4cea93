package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func newLedger(t *testing.T) *Ledger {
	t.Helper()
	l, err := NewLedger(t.TempDir(), "test")
	if err != nil {
		t.Skip(err) // O_TMPFILE is not everywhere
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
