package race

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAListingIsReadToItsEnd(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("name", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := append([]byte(dir), 0)
	for _, size := range []int{280, 4096, 1 << 15} { // 280 bytes hold one entry of any length
		b := make([]byte, size)
		for name, want := range map[string]bool{"name0": true, "name299": true, ".": true, "name": false, "name300": false, "ame1": false, "name11x": false} {
			if got, errno := Lists(unix.AT_FDCWD, &path[0], name, b); got != want || errno != 0 {
				t.Errorf("%s in %d bytes: %v, %v", name, size, got, errno)
			}
		}
	}
	gone := append([]byte(dir+"/gone"), 0)
	if _, errno := Lists(unix.AT_FDCWD, &gone[0], "x", make([]byte, 4096)); errno != unix.ENOENT {
		t.Error(errno)
	}
}

func TestTimesThatAreSetAreSeen(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if errno := Futimens(int(f.Fd()), &[2]unix.Timespec{{Sec: 5}, {Sec: 7, Nsec: 9}}); errno != 0 {
		t.Fatal(errno)
	}
	var st unix.Statx_t
	if errno := StatxSync(int(f.Fd()), &st); errno != 0 || st.Mtime.Sec != 7 || st.Mtime.Nsec != 9 {
		t.Errorf("%v, %+v", errno, st.Mtime)
	}
}
