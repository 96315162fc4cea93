package race

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The operations of the tests: an exclusive create, one that only looks first, and some that misbehave.
var testOps = []Op{
	{Name: "excl", Prepare: coldParent, Attempt: createExcl, Observe: observeFd, After: lookAfter, Clean: removeName},
	{Name: "check", Prepare: coldParent, Attempt: checkThenCreate, Observe: observeFd, After: lookAfter, Clean: removeName},
	{Name: "first", Attempt: func(e *Env, ev *Event) unix.Errno {
		if !e.First {
			return unix.EAGAIN
		}
		return 0
	}},
	{Name: "refuse", Prepare: func(e *Env) unix.Errno {
		if e.ID == 1 {
			return unix.ENOSPC
		}
		return 0
	}, Attempt: func(*Env, *Event) unix.Errno { return 0 }},
	{Name: "stall", Attempt: func(e *Env, _ *Event) unix.Errno {
		for e.ID == 1 && e.Num%4 == 3 {
			_ = unix.Pause()
		}
		return unix.EAGAIN
	}},
	{Name: "die", Attempt: func(e *Env, _ *Event) unix.Errno {
		if e.ID == 1 {
			os.Stderr.WriteString("out of luck\n")
			os.Exit(7)
		}
		return 0
	}},
	{Name: "closes", Attempt: func(*Env, *Event) unix.Errno { return 0 }, Close: func(e *Env) { e.Words(e.ID)[7]++ }},
	{Name: "become", Attempt: func(*Env, *Event) unix.Errno { return ExecPause() }},
	{Name: "leave a child", Attempt: func(e *Env, ev *Event) unix.Errno {
		errno := e.Linger(2)
		ev.Saw = uint64(e.child.Load())
		return errno
	}},
	{Name: "reference", Attempt: func(e *Env, ev *Event) unix.Errno {
		for range e.Arg {
			fd, errno := createName(e)
			if errno == 0 {
				Close(fd)
				removeName(e)
			}
		}
		return 0
	}},
}

func TestMain(m *testing.M) {
	Contend(testOps)
	os.Exit(m.Run())
}

func coldParent(e *Env) unix.Errno {
	if e.First {
		return e.MakeParent()
	}
	return 0
}

//go:nosplit
func createName(e *Env) (int, unix.Errno) {
	return Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, e.Mark())
}

//go:nosplit
func createExcl(e *Env, _ *Event) (errno unix.Errno) {
	e.Fd, errno = createName(e)
	return errno
}

//go:nosplit
func checkThenCreate(e *Env, _ *Event) (errno unix.Errno) {
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

func newLine(t testing.TB, n int, dirs ...string) *Line {
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
	if err := l.Enter(t.Context(), dirs...); err != nil {
		t.Fatal(err)
	}
	return l
}

// race runs an operation until so many rounds were contested, and hands each round to the test.
func (l *Line) race(t testing.TB, op string, plan Plan, each func(*Round) bool) Tally {
	t.Helper()
	if plan.Time == 0 {
		plan.Time = time.Minute // the count ends it
	}
	tally, err := l.Race(t.Context(), op, plan, each)
	if err != nil {
		t.Fatal(err)
	}
	return tally
}

// shm is a directory on tmpfs: the fastest filesystem is the one where overlap is hardest to get.
func shm(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "claimbench-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestEveryRoundOfAnExclusiveCreateHasOneWinnerAndItsFile(t *testing.T) {
	for _, n := range []int{2, 3, 8, 40} {
		l := newLine(t, n, shm(t))
		tally := l.race(t, "excl", Plan{Contenders: n, Rounds: 500, ScanShare: 0.25, ColdRounds: 8, ColdPause: time.Millisecond}, func(r *Round) bool {
			w := r.Winners()
			if len(w) != 1 {
				t.Fatalf("%d contenders: round %d has winners %v", n, r.Number, w)
			}
			if r.After.Errno != 0 || int(r.After.Owner) != w[0] || r.After.Inode != r.Events[w[0]].Inode {
				t.Fatalf("%d contenders: round %d was won by %d, and afterwards there is %+v", n, r.Number, w[0], r.After)
			}
			for i, ev := range r.Events {
				if ev.Invoke == 0 || ev.Return < ev.Invoke || (i != w[0]) != (unix.Errno(ev.Errno) == unix.EEXIST) {
					t.Fatalf("%d contenders: round %d, contender %d: %+v", n, r.Number, i, ev)
				}
			}
			return true
		})
		if rounds, contested := tally.Total(); rounds < 500 || contested < 500 {
			t.Errorf("%d contenders: %d rounds, %d contested", n, rounds, contested)
		}
		if tally.Rounds[Scan] == 0 || tally.Rounds[Cold] == 0 {
			t.Errorf("%d contenders: rounds by phase %v: every phase must occur", n, tally.Rounds)
		}
	}
}

func TestALookBeforeAPlainCreateIsSeenToHaveTwoWinners(t *testing.T) {
	for _, n := range []int{2, 8} {
		several := 0
		newLine(t, n, shm(t)).race(t, "check", Plan{Contenders: n, Rounds: 20000}, func(r *Round) bool {
			if len(r.Winners()) > 1 {
				several++
			}
			return several < 10
		})
		if several < 10 {
			t.Errorf("%d contenders: %d rounds with two winners; the line cannot see what it is for", n, several)
		}
	}
}

func TestNothingIsLeftWhenARaceIsOver(t *testing.T) {
	dir := shm(t)
	newLine(t, 4, dir).race(t, "excl", Plan{Contenders: 4, Rounds: 200, ColdRounds: 16, ColdPause: time.Microsecond}, func(*Round) bool { return true })
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v left, %v", left, err)
	}
}

func TestWinsSpreadOverContenders(t *testing.T) {
	const n = 4
	tally := newLine(t, n, shm(t)).race(t, "excl", Plan{Contenders: n, Rounds: 4000}, func(*Round) bool { return true })
	rounds, _ := tally.Total()
	for i, w := range tally.Wins {
		if w < rounds/n/4 {
			t.Errorf("contender %d won %d of %d rounds: %v", i, w, rounds, tally.Wins)
		}
	}
}

func TestExactlyOneContenderIsFirst(t *testing.T) {
	for _, n := range []int{1, 2, 5, 40} {
		seen, rounds := make([]int, n), 0
		newLine(t, n, shm(t)).race(t, "first", Plan{Contenders: n, Rounds: 1 << 30}, func(r *Round) bool {
			rounds++
			w := r.Winners()
			if len(w) != 1 {
				t.Fatalf("%d contenders: %v are first", n, w)
			}
			seen[w[0]]++
			return rounds < 4*n
		})
		for i, k := range seen {
			if k == 0 {
				t.Errorf("%d contenders: %d is never first: %v", n, i, seen)
			}
		}
	}
}

// On one CPU nothing may hang, and a race without overlap must say so.
func TestOneCPU(t *testing.T) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	l := newLine(t, 8, shm(t))
	l.cpus = l.cpus[:1]
	one.Set(l.cpus[0])
	for i := range 8 {
		if err := unix.SchedSetaffinity(l.procs[i].cmd.Process.Pid, &one); err != nil {
			t.Fatal(err)
		}
	}
	tally := l.race(t, "excl", Plan{Contenders: 8, Rounds: 1 << 30, Time: 300 * time.Millisecond, ScanShare: 0.25}, func(r *Round) bool {
		if len(r.Winners()) != 1 {
			t.Fatalf("round %d has winners %v", r.Number, r.Winners())
		}
		return true
	})
	rounds, contested := tally.Total()
	t.Logf("%d rounds, %d contested", rounds, contested)
	if rounds == 0 {
		t.Error("no round on one CPU")
	}
	if contested > rounds/2 {
		t.Errorf("%d of %d rounds count as contested on one CPU, on a filesystem that does not block", contested, rounds)
	}
}

func TestAContenderThatDoesNotComeBackIsReportedAndReplaced(t *testing.T) {
	l := newLine(t, 4, shm(t))
	l.cfg.HangAfter = 200 * time.Millisecond
	_, err := l.Race(t.Context(), "stall", Plan{Contenders: 4, Rounds: 100, Time: time.Minute}, func(*Round) bool { return true })
	var hung *HungError
	if !errors.As(err, &hung) || hung.Contender != 1 || hung.Op != "stall" {
		t.Fatalf("got %v; contender 1 hangs", err)
	}
	l.cfg.HangAfter = 2 * time.Second
	tally := l.race(t, "excl", Plan{Contenders: 4, Rounds: 100}, func(*Round) bool { return true })
	if rounds, _ := tally.Total(); rounds < 100 {
		t.Errorf("%d rounds after the hang", rounds)
	}
}

func TestAContenderThatDiesIsTheHarnesssFault(t *testing.T) {
	l := newLine(t, 4, shm(t))
	_, err := l.Race(t.Context(), "die", Plan{Contenders: 4, Rounds: 100, Time: time.Minute}, func(*Round) bool { return true })
	var died *DiedError
	if !errors.As(err, &died) || died.Contender != 1 || !strings.Contains(died.Cause, "exit status 7") || !strings.Contains(died.Cause, "out of luck") {
		t.Fatalf("got %v; contender 1 exits with 7", err)
	}
	l.race(t, "excl", Plan{Contenders: 4, Rounds: 100}, func(*Round) bool { return true })
}

func TestAnUnpreparedContenderStaysAway(t *testing.T) {
	rounds := 0
	newLine(t, 3, shm(t)).race(t, "refuse", Plan{Contenders: 3, Rounds: 1 << 30}, func(r *Round) bool {
		rounds++
		ev := r.Events[1]
		if !ev.Unready || unix.Errno(ev.Errno) != unix.ENOSPC || ev.Invoke != 0 || ev.Won() {
			t.Fatalf("%+v", ev)
		}
		return rounds < 50
	})
}

func TestCancellingEndsARaceSoon(t *testing.T) {
	l := newLine(t, 4, shm(t))
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	_, err := l.Race(ctx, "excl", Plan{Contenders: 4, Rounds: 1 << 30, Time: time.Hour}, func(*Round) bool {
		cancel()
		return true
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

func TestContendersEndWithTheirLine(t *testing.T) {
	l, err := Start(Config{Ops: testOps, Contenders: 3, HangAfter: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Enter(t.Context(), shm(t)); err != nil {
		t.Fatal(err)
	}
	pid := l.Contender(2).PID
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(pid, 0); err != unix.ESRCH {
		t.Errorf("process %d: %v; it must be gone", pid, err)
	}
}

// A step can block while others go on, and end by a kill.
func TestAStepCanBlockAndBeKilled(t *testing.T) {
	l := newLine(t, 2, shm(t))
	l.Begin(1, "stall", 3, 0)
	for {
		if pending, invoke := l.Pending(1); !pending {
			t.Fatal("the stalled step came back")
		} else if invoke != 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if ev, err := l.Do(t.Context(), 0, "excl", l.Name(), 0); err != nil || !ev.Won() {
		t.Errorf("%+v, %v", ev, err)
	}
	l.Kill(1)
	if err := l.Restart(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if ev, err := l.Do(t.Context(), 1, "excl", l.Name(), 0); err != nil || !ev.Won() {
		t.Errorf("%+v, %v", ev, err)
	}
}

func TestNothingAllocatesAtTheLine(t *testing.T) {
	dir, err := os.Open(shm(t))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	e, ev, op := newEnv(3), &Event{}, &testOps[0]
	e.Dir = int(dir.Fd())
	number := int64(0)
	if n := testing.AllocsPerRun(100, func() {
		number++
		e.at(number, false)
		attempt(op, e, ev)
		op.Observe(e, ev)
		op.Clean(e)
	}); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
	if !ev.Won() {
		t.Errorf("%+v", ev)
	}
}
