package race

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The child has the open file description: its flock lasts until the child is gone, whatever its maker closes.
func TestALingeringChildHoldsWhatItInherited(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	pid, errno := linger(int(f.Fd()))
	if errno != 0 {
		t.Fatal(errno)
	}
	f.Close()
	other, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EAGAIN {
		t.Errorf("the child does not hold the lock: %v", err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("the child is gone and the lock is not: %v", err)
	}
}

func TestTheLineEndsTheChildOfAContenderThatIsGone(t *testing.T) {
	l := newLine(t, 2, t.TempDir())
	ev, err := l.Do(t.Context(), 1, "leave a child", 0, 0)
	if err != nil || ev.Errno != 0 {
		t.Fatalf("%v %v", err, unix.Errno(ev.Errno))
	}
	l.Kill(1)
	child := int(ev.Saw)
	if err := unix.Kill(child, 0); err != nil {
		t.Fatalf("the child did not outlive its maker: %v", err)
	}
	l.EndChild(1)
	l.EndChild(1) // there is none any more
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if err != nil || strings.Contains(string(state), ") Z ") { // whoever adopted it may take its time
			break
		}
		if time.Now().After(until) {
			t.Fatal("the child is still there")
		}
	}
	if err := l.Restart(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
}

func TestAContenderThatBecameAnotherProgramIsSeen(t *testing.T) {
	l := newLine(t, 2, t.TempDir())
	if l.Became(0) || l.Became(1) {
		t.Error("a contender is taken for another program")
	}
	l.Begin(1, "become", 0, 0)
	for until := time.Now().Add(5 * time.Second); !l.Became(1); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("a contender became another program, and was not seen to")
		}
	}
	if err := l.Restart(t.Context(), 1); err != nil || l.Became(1) {
		t.Errorf("after its restart: %v", err)
	}
}
