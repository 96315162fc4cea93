package faultfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// twoMounts mounts a share with these faults twice, over a directory with a file in it.
func twoMounts(t *testing.T, faults string) (s *Share, a, b string) {
	t.Helper()
	needMounts(t)
	planted, err := Parse(faults)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "old")
	s, err = New(dir, 1, planted...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	a, b = t.TempDir(), t.TempDir()
	for _, at := range []string{a, b} {
		if err := s.Mount(at); err != nil {
			t.Fatal(err)
		}
	}
	return s, a, b
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func size(t *testing.T, name string) string {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Repeat("x", int(info.Size()))
}

// TestACacheLastsAsLongAsItSays changes something over one mount, and looks over the other before and after.
func TestACacheLastsAsLongAsItSays(t *testing.T) {
	const last = 500 * time.Millisecond
	for _, c := range []struct {
		kind     Kind
		look     func(at string) string
		old, new string
	}{
		{AttrCached, func(at string) string { return size(t, at+"/file") }, "xxx", "xxxxx"},
		{ContentCached, func(at string) string { return read(t, at+"/file") }, "old", "newer"},
		{ListingCached, func(at string) string { return list(t, at) }, "file", "another file"},
		{NegativeCached, func(at string) string { _, err := os.Stat(at + "/another"); return presence(err) }, "absent", "present"},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			f := c.kind.New()
			f.For = last
			_, a, b := twoMounts(t, f.String())
			if got := c.look(b); got != c.old {
				t.Fatalf("at first: %q", got)
			}
			looked := time.Now()
			write(t, a+"/another", "")
			write(t, a+"/file", "newer")
			if got := c.look(b); got != c.old && time.Since(looked) < last {
				t.Errorf("while it is cached: %q", got)
			}
			if got := c.look(a); got != c.new {
				t.Errorf("where it was changed: %q", got)
			}
			time.Sleep(time.Until(looked.Add(last + 100*time.Millisecond)))
			if got := c.look(b); got != c.new {
				t.Errorf("afterwards: %q", got)
			}
		})
	}
}

func presence(err error) string {
	if err != nil {
		return "absent"
	}
	return "present"
}

func TestWhatAnotherHasRemovedIsStale(t *testing.T) {
	_, a, b := twoMounts(t, "open=estale-when-removed")
	open := func(at string) int {
		fd, err := unix.Open(at+"/file", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	fdA, fdB := open(a), open(b)
	if err := unix.Unlink(a + "/file"); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	buf := make([]byte, 3)
	if _, err := unix.Pread(fdA, buf, 0); err != nil {
		t.Errorf("where it was removed: %v", err)
	}
	if _, err := unix.Pread(fdB, buf, 0); err != unix.ESTALE {
		t.Errorf("read gives %v", err)
	}
	if err := unix.Fstat(fdB, &st); err != unix.ESTALE {
		t.Errorf("fstat gives %v", err)
	}
}

// within does something and looks until it is done: it returns what it has seen, if anything, that is neither of the two.
func within(t *testing.T, do func() error, look func() string, before, after string) (between string) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return between
		default:
			if seen := look(); seen != before && seen != after {
				between = seen
			}
		}
	}
}

func TestARenamedFileHasBothNamesForAMoment(t *testing.T) {
	_, a, b := twoMounts(t, "rename=both-names,delay=500ms")
	rename := func() error { return os.Rename(a+"/file", a+"/moved") }
	if got := within(t, rename, func() string { return list(t, b) }, "file", "moved"); got != "file moved" {
		t.Errorf("seen %q in between", got)
	}
	if read(t, b+"/moved") != "old" {
		t.Error("the content is another")
	}
}

func TestARenameThatCopiesShowsAHalf(t *testing.T) {
	_, a, b := twoMounts(t, "rename=copy,delay=500ms")
	write(t, a+"/new", "fresh!")
	rename := func() error { return os.Rename(a+"/new", a+"/file") }
	if got := within(t, rename, func() string { return read(t, b+"/file") }, "old", "fresh!"); got != "fre" {
		t.Errorf("seen %q in between", got)
	}
}

func TestATornWriteShowsAHalf(t *testing.T) {
	_, a, b := twoMounts(t, "write=torn,delay=500ms")
	f, err := os.OpenFile(a+"/file", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	overwrite := func() error { _, err := f.Write([]byte("fresh!")); return err }
	if got := within(t, overwrite, func() string { return read(t, b+"/file") }, "old", "fresh!"); got != "fre" {
		t.Errorf("seen %q in between", got)
	}
}

func TestACreateThatNeedNotBeExclusiveIsToldEEXIST(t *testing.T) {
	_, a, b := twoMounts(t, "create=eexist,negative=cached")
	if _, err := os.Stat(b + "/another"); err == nil {
		t.Fatal("it is not there yet")
	}
	write(t, a+"/another", "")
	if fd, err := unix.Open(b+"/another", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o666); err != unix.EEXIST {
		t.Errorf("got descriptor %d, %v", fd, err)
	}
}

func TestAnExclusiveCreateEmptiesWhatIsThere(t *testing.T) {
	_, a, b := twoMounts(t, "excl=truncates,negative=cached")
	os.Stat(b + "/another")
	write(t, a+"/another", "claimed")
	fd, err := unix.Open(b+"/another", unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	if got := read(t, a+"/another"); got != "" {
		t.Errorf("%q is left", got)
	}
}

// locker opens the file over a mount and returns the way to lock it.
func locker(t *testing.T, at string) (lock func(how int) error, end func()) {
	t.Helper()
	fd, err := unix.Open(at+"/file", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return func(how int) error { return unix.Flock(fd, how) }, func() { unix.Close(fd) }
}

func TestALockIsReleasedLate(t *testing.T) {
	_, a, b := twoMounts(t, "lock=release-late,for=300ms")
	first, end := locker(t, a)
	second, endSecond := locker(t, b)
	defer endSecond()
	if err := first(unix.LOCK_EX | unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	closed := time.Now()
	end()
	if err := second(unix.LOCK_EX | unix.LOCK_NB); err != unix.EWOULDBLOCK && time.Since(closed) < 300*time.Millisecond {
		t.Errorf("at once: %v", err)
	}
	if err := second(unix.LOCK_EX); err != nil || time.Since(closed) < 300*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(closed), err)
	}
}

func TestALockIsGrantedTwiceWhenTheFileIsCold(t *testing.T) {
	_, a, b := twoMounts(t, "lock=granted-when-cold,for=10s")
	first, end := locker(t, a)
	second, endSecond := locker(t, b)
	third, endThird := locker(t, a)
	defer end()
	defer endSecond()
	defer endThird()
	if err := first(unix.LOCK_EX | unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if err := second(unix.LOCK_EX | unix.LOCK_NB); err != nil {
		t.Errorf("cold: %v", err)
	}
	if err := third(unix.LOCK_EX | unix.LOCK_NB); err != unix.EWOULDBLOCK {
		t.Errorf("on the same mount: %v", err)
	}
}

func TestWaitingIsSaidToBeADeadlock(t *testing.T) {
	_, a, _ := twoMounts(t, "lock=edeadlk,every=2")
	lock, end := locker(t, a)
	defer end()
	first, second := lock(unix.LOCK_EX), lock(unix.LOCK_EX)
	if first != nil || second != unix.EDEADLK {
		t.Errorf("got %v, %v", first, second)
	}
	if err := lock(unix.LOCK_EX | unix.LOCK_NB); err != nil {
		t.Errorf("without waiting: %v", err)
	}
}

func TestASkewedClockKeepsTimesThatAreSet(t *testing.T) {
	_, a, b := twoMounts(t, "times=skewed-per-mount,skew=1h")
	at := func(mount string) time.Time {
		info, err := os.Stat(mount + "/file")
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	if got := at(b).Sub(at(a)); got != time.Hour {
		t.Errorf("the mounts are %v apart", got)
	}
	set := time.Unix(1_000_000_000, 5)
	if err := os.Chtimes(b+"/file", set, set); err != nil || !at(b).Equal(set) {
		t.Errorf("set to %v, read %v, %v", set, at(b), err)
	}
}
