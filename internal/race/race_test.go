package race

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The operations of the tests: an exclusive create, and one that only looks first.
var testOps = []Op{
	{Name: "excl", Prepare: coldParent, Attempt: createExcl, Observe: observeFd, After: lookAfter, Clean: removeName},
	{Name: "check", Prepare: coldParent, Attempt: checkThenCreate, Observe: observeFd, After: lookAfter, Clean: removeName},
	{Name: "idle", Attempt: func(*Env, *Event) unix.Errno { return 0 }},
	{Name: "stall", Attempt: func(e *Env, ev *Event) unix.Errno {
		if e.ID == 0 {
			for {
				unix.Pause()
			}
		}
		return 0
	}},
	{Name: "die", Attempt: func(e *Env, ev *Event) unix.Errno {
		if e.ID == 0 {
			os.Exit(7)
		}
		return 0
	}},
}

func TestMain(m *testing.M) {
	Contend(testOps)
	os.Exit(m.Run())
}

func coldParent(e *Env) unix.Errno {
	if e.ID == int(e.Num)%e.N {
		return e.MakeParent()
	}
	return 0
}

//go:nosplit
func createExcl(e *Env, ev *Event) (errno unix.Errno) {
	e.Fd, errno = Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, e.Mark())
	return errno
}

//go:nosplit
func checkThenCreate(e *Env, ev *Event) (errno unix.Errno) {
	if Lstat(e.Dir, e.Name(), &e.Stat) == 0 {
		return unix.EEXIST
	}
	e.Fd, errno = Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_WRONLY, e.Mark())
	return errno
}

func observeFd(e *Env, ev *Event) {
	if ev.Errno == 0 {
		Fstat(e.Fd, &e.Stat)
		ev.Inode = e.Stat.Ino
		Close(e.Fd)
	}
}

func lookAfter(e *Env, a *After) {
	a.Errno = uint32(Lstat(e.Dir, e.Name(), &e.Stat))
	if a.Errno == 0 {
		a.Inode, a.Mode, a.Size, a.Owner = e.Stat.Ino, e.Stat.Mode, e.Stat.Size, OwnerByMark(e.Stat.Mode)
	}
}

func removeName(e *Env) { Unlink(e.Dir, e.Name(), 0) }

func newLine(t testing.TB, n int, dir string) *Line {
	t.Helper()
	l, err := Start(Config{Ops: testOps, Contenders: n, HangAfter: 2 * time.Second, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := l.Enter(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTry(t *testing.T) {
	for _, root := range []string{"/dev/shm", "/root"} {
		for _, n := range []int{2, 4, 8, 16, 40} {
			dir, _ := os.MkdirTemp(root, "cb")
			defer os.RemoveAll(dir)
			began := time.Now()
			l := newLine(t, n, dir)
			up := time.Since(began)
			bad := 0
			tally, err := l.Race(context.Background(), "excl", Plan{Contenders: n, Rounds: 1 << 30, Time: 2 * time.Second, ScanShare: 0.25, ColdRounds: 64, ColdPause: time.Millisecond}, func(r *Round) bool {
				if len(r.Winners()) != 1 {
					bad++
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			rounds, contested := tally.Total()
			fmt.Printf("%-9s n=%2d up=%v rounds/s=%.0f contested=%.3f (tight %.3f scan %.3f cold %.3f) bad=%d wins=%v\n", root, n, up.Round(time.Millisecond), float64(rounds)/tally.Elapsed.Seconds(), float64(contested)/float64(rounds),
				share(tally, 0), share(tally, 1), share(tally, 2), bad, tally.Wins)
		}
	}
}
func share(t Tally, p int) float64 { return float64(t.Contested[p]) / float64(t.Rounds[p]) }
