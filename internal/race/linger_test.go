package race

import (
	"os"
	"path/filepath"
	"testing"

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
	pid, errno := Linger(int(f.Fd()))
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
