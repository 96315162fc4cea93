package probes

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

func TestARuleIsJudgedByTheAttemptAtItsEnd(t *testing.T) {
	got := func(errno unix.Errno) race.Event { return race.Event{Errno: uint32(errno)} }
	ready := []race.Event{{}, {}, {}}
	dropped := &rule{name: "a", wants: [3]wanted{isBusy, isGranted, isBusy}, holds: true}
	both := &rule{name: "b", wants: [3]wanted{isBusy, isGranted, isEither}}
	readOnly := &rule{name: "c", wants: [3]wanted{isGranted, isBadFd, isBadFd}}
	many := &rule{name: atOnce, wants: [3]wanted{isGranted, isGranted, isGranted}}
	const flock, posix, ofd = 0, 1, 2
	for _, c := range []struct {
		what  string
		r     *rule
		kind  int
		setup []race.Event
		got   race.Event
		want  ruling
	}{
		{"kept as it must be", dropped, flock, ready, got(unix.EAGAIN), ruling{}},
		{"kept as it must be, by the other errno", dropped, flock, ready, got(unix.EACCES), ruling{}},
		{"dropped", dropped, flock, ready, got(0), ruling{kind: lockDropped}},
		{"dropped as it must be", dropped, posix, ready, got(0), ruling{}},
		{"kept, and must be dropped", dropped, posix, ready, got(unix.EAGAIN), ruling{kind: lockWithheld}},
		{"two in one process", both, flock, ready, got(0), ruling{kind: lockDropped}},
		{"left open, granted", both, ofd, ready, got(0), ruling{}},
		{"left open, refused", both, ofd, ready, got(unix.EAGAIN), ruling{}},
		{"left open, and neither", both, ofd, ready, got(unix.EIO), ruling{failed: true}},
		{"a read-only descriptor is enough", readOnly, flock, ready, got(0), ruling{}},
		{"emulated", readOnly, flock, ready, got(unix.EBADF), ruling{note: emulation}},
		{"a read-only descriptor is not enough", readOnly, posix, ready, got(unix.EBADF), ruling{}},
		{"a read-only descriptor is enough for fcntl", readOnly, posix, ready, got(0), ruling{note: "posix-lock, c is granted, where EBADF is meant"}},
		{"no such lock", dropped, flock, []race.Event{{}, {}, got(unix.ENOSYS), {}}, got(unix.ENOSYS), ruling{refused: true}},
		{"a later step is refused", dropped, flock, []race.Event{{}, {}, {}, got(unix.ENOLCK)}, got(0), ruling{failed: true}},
		{"the file cannot be made", dropped, flock, []race.Event{got(unix.ENOSPC)}, got(0), ruling{failed: true}},
		{"all 300", many, flock, ready, race.Event{Saw: 300}, ruling{}},
		{"some of 300", many, flock, ready, race.Event{Saw: 100, Errno: uint32(unix.ENOLCK)}, ruling{kind: tooFewLocks}},
		{"none of 300", many, flock, ready, got(unix.ENOLCK), ruling{failed: true}},
		{"some of 300, and the process may not have more", many, flock, ready, race.Event{Saw: 240, Errno: uint32(unix.EMFILE)}, ruling{note: "flock, " + atOnce + ": a process may not open as many files here"}},
		{"some of 300, and an I/O error", many, flock, ready, race.Event{Saw: 100, Errno: uint32(unix.EIO)}, ruling{failed: true}},
		{"the control: let go", &letGo, flock, ready, got(0), ruling{kind: lockDropped}},
		{"the control: held on", &heldOn, posix, ready, got(unix.EAGAIN), ruling{kind: lockWithheld}},
	} {
		v := judgeRule(c.r, c.kind, c.setup, c.got)
		if v.kind != c.want.kind || v.failed != c.want.failed || v.refused != c.want.refused || v.note != c.want.note {
			t.Errorf("%s: %+v, want %+v", c.what, v, c.want)
		}
		if (v.kind != "") != (v.sentence != "") {
			t.Errorf("%s: kind %q with sentence %q", c.what, v.kind, v.sentence)
		}
	}
}

func TestWhatAStepIsToldComesBack(t *testing.T) {
	for _, a := range []ruleArg{{}, {kind: 2, second: true, shared: true, access: unix.O_WRONLY}, {kind: 1, access: unix.O_RDWR}, {second: true}} {
		if got := unpackRule(a.pack()); got != a {
			t.Errorf("%+v became %+v", a, got)
		}
	}
}

// A holder that was not seen to execute anything proves nothing about locks and exec.
func TestAHolderThatExecutesNothingFailsTheRule(t *testing.T) {
	p := rulePlay{setup: make([]race.Event, 3)}
	p.amiss()
	if v := judgeRule(&held, 0, p.setup, race.Event{Errno: uint32(unix.EAGAIN)}); !v.failed {
		t.Errorf("the lock is held, by a holder that should have executed another program: %+v", v)
	}
}

// An otherHost is contenders of another host, whose process numbers name another process here.
type otherHost struct {
	race.Field
	pid int
}

func (l otherHost) Contender(i int) race.Identity {
	who := l.Field.Contender(i)
	who.PID = l.pid
	return who
}

func (l otherHost) Do(ctx context.Context, who int, op string, number int64, arg uint64) (race.Event, error) {
	ev, err := l.Field.Do(ctx, who, op, number, arg)
	if op == "rule-child" {
		ev.Saw = uint64(l.pid)
	}
	return ev, err
}

func TestAProcessNumberOfAnotherHostNamesNobodyHere(t *testing.T) {
	bystander := exec.Command("sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- bystander.Wait() }()
	t.Cleanup(func() { bystander.Process.Kill() })
	b := newBench(t, 3, t.TempDir())
	b.HoldWait = 500 * time.Millisecond
	b.Line = otherHost{b.Line, bystander.Process.Pid}
	f := run(t, b, "lock-rules")
	select {
	case err := <-gone:
		t.Errorf("a process of this host was ended: %v", err)
	default:
	}
	if f.Verdict != holds {
		t.Error(describe(&f))
	}
}

func TestLocksOfALocalFilesystemGoByTheManPages(t *testing.T) {
	t.Cleanup(func() { noChildren(t) })
	b := newBench(t, 3, t.TempDir())
	f := run(t, b, "lock-rules")
	t.Logf("%.3f s %v", f.DurationS, f.Figures)
	if f.Verdict != holds || f.Class != "" || f.Control.Violations != 2*len(lockKinds) || len(f.Warnings) > 0 {
		t.Error(describe(&f))
	}
	for _, kind := range []string{"flock", "posix_lock", "ofd_lock"} {
		if n := f.Figures[kind+"_at_once_count"]; n != manyLocks {
			t.Errorf("%s: %v at once, want %d", kind, n, manyLocks)
		}
	}
}
