package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/testenv"
)

// newBencher is a workload under way without its workload.
func newBencher(t *testing.T, o Options) *bencher {
	if o.TTL == 0 {
		o.TTL = usualTTL
	}
	return &bencher{Options: o, ctx: t.Context(), rng: rand.New(rand.NewPCG(1, 1)), rows: map[string]*row{}}
}

// An owner whose process is killed from outside holds nothing any more: what comes after it is no duplicate, and what
// the history then looks like is not illegal.
func TestTheSuccessorOfAKilledContenderIsNoDuplicate(t *testing.T) {
	l := lineIn(t, 4, t.TempDir())
	b := newBencher(t, Options{Line: l})
	r := b.row("storm", "flock-held", "", 4, 1)
	o := withPatience(b.order("flock-held", b.newDir(), 1))
	o.Linger = int64(100 * time.Millisecond)
	killed := make(chan int, 1)
	time.AfterFunc(20*time.Millisecond, func() {
		for i := range 4 {
			if recordsIn(l.Words(i))[0].Began != 0 {
				pid := l.Contender(i).PID
				_ = unix.Kill(pid, unix.SIGKILL)
				killed <- pid
				return
			}
		}
		killed <- 0
	})
	judged, err := b.trial(r, 4, o)
	if pid := <-killed; pid == 0 {
		t.Skip("nobody had begun by then")
	} else if all := b.attempts(o, 0, 1, 2, 3); !wroteBy(all, pid) {
		t.Errorf("no record is that of the killed process %d: %+v", pid, all)
	}
	if err != nil || judged || r.Void != 1 || r.Duplicates+r.Illegal > 0 {
		t.Errorf("%v, %d void, %d duplicates: %+v", err, r.Void, r.Duplicates, r.Counterexample)
	}
}

func wroteBy(all []attempted, pid int) bool {
	for _, a := range all {
		if a.PID == pid && a.Died != 0 {
			return true
		}
	}
	return false
}

// lossy is a line of which one contender's host is gone: all of them together cannot do anything any more.
type lossy struct{ race.Field }

var errLost = errors.New("a host is lost")

func (lossy) Trial(context.Context, string, int, uint64) (race.Round, error) {
	return race.Round{}, errLost
}

// On NFS what a contender has open comes back as a .nfs file in the directory that is to be removed.
func TestWhoIsLeftWhenAHostIsLostClosesWhatItHasOpen(t *testing.T) {
	l := lineIn(t, 2, t.TempDir())
	b := newBencher(t, Options{Line: l})
	if _, err := b.trial(b.row("storm", "generations", "", 2, 1), 2, b.order("generations", b.newDir(), 1)); err != nil {
		t.Fatal(err)
	}
	open := func() (all []string) {
		for i := range 2 {
			fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", l.Contender(i).PID))
			if err != nil {
				t.Fatal(err)
			}
			for _, fd := range fds {
				if to, _ := os.Readlink(fd); strings.Contains(to, fmt.Sprintf("/t%d", b.dirs[0])) {
					all = append(all, to)
				}
			}
		}
		return all
	}
	if len(open()) == 0 {
		t.Error("nothing is open after a trial: this test shows nothing")
	}
	b.Line = lossy{l}
	if err := b.leave(); !errors.Is(err, errLost) {
		t.Errorf("%v, want %v", err, errLost)
	}
	if still := open(); len(still) > 0 {
		t.Errorf("still open: %q", still)
	}
}

// A full disk leaves claims of nobody behind, and work that cannot be recorded as done: neither is missed or a duplicate.
func TestADiskWithoutRoomForContentVoidsTrials(t *testing.T) {
	l := lineIn(t, 4, testenv.Tmpfs(t, "size=64k"))
	b := newBencher(t, Options{Line: l})
	for range 12 {
		for _, protocol := range []string{"generations", "flock-held"} {
			o := withPatience(b.order(protocol, b.newDir(), 1))
			o.Patience = int64(50 * time.Millisecond)
			if _, err := b.trial(b.row("storm", protocol, "", 4, 1), 4, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, r := range b.rows {
		if r.Void == 0 || r.Missed+r.Duplicates > 0 || r.Trials+r.Void != 12 {
			t.Errorf("%q: %d trials, %d void, %d missed, %d duplicates: %v", name, r.Trials, r.Void, r.Missed, r.Duplicates, r.Voided)
		}
	}
}

func TestATrialThatShowsNothingIsVoid(t *testing.T) {
	l := lineIn(t, 4, t.TempDir())
	b := newBencher(t, Options{Line: l})

	// B is refused, where it should be at work.
	x := interleaving{name: "x", pauses: map[string]pause{"excl": {executing, 1}, "generations": {unlink, 1}}}
	for protocol, why := range map[string]string{"excl": "contender 1 did not come to its work", "generations": "contender 0 never came to its first unlink"} {
		if err := b.force(inheritance{interleaving: x, protocol: protocol, order: b.order(protocol, b.newDir(), 1)}); err != nil {
			t.Fatal(err)
		}
		if r := b.row("forced", protocol, "x", 0, 0); r.Void != 1 || r.Trials != 0 || r.Voided[0] != why {
			t.Errorf("%s: %d trials, void: %q", protocol, r.Trials, r.Voided)
		}
	}

	// The hot key's contender does not stop.
	halfWay["excl"] = pause{rmdir, 1}
	defer delete(halfWay, "excl")
	if err := b.hotAndCold(inheritance{protocol: "excl", order: b.order("excl", b.newDir(), 1+coldKeys)}); err != nil {
		t.Fatal(err)
	}
	if r := b.row("unrelated", "excl", "", 0, 0); r.Void != 1 || r.Trials != 0 {
		t.Errorf("unrelated: %d trials, void: %q", r.Trials, r.Voided)
	}

	// There is nothing to take over.
	plan := []inheritance{{protocol: "excl", order: b.order("excl", b.newDir(), 1)}}
	if err := b.alone(0, plan[0].order); err != nil {
		t.Fatal(err)
	}
	if err := b.bequeath(predecessor, plan, 0); err != nil || plan[0].err == nil {
		t.Fatalf("%v, %v: the key is done", err, plan[0].err)
	}
	if err := b.hotAndCold(plan[0]); err != nil || b.row("unrelated", "excl", "", 0, 0).Void != 2 {
		t.Errorf("%v: a trial without a claim to take over is judged", err)
	}
}

// A claim that does not expire refuses the victim, whatever step it was to die before: that is no end of the steps.
func TestAVictimThatIsRefusedIsNoEndOfTheSteps(t *testing.T) {
	b := newBencher(t, Options{Line: lineIn(t, 4, t.TempDir()), TTL: 500 * time.Millisecond})
	if err := b.dyingTakingOver("excl"); err != nil {
		t.Fatal(err)
	}
	if r := b.row("deaths", "excl", "each step of a take-over", 0, 0); r.Trials != 0 || r.Void != 1 || !strings.Contains(r.Voided[0], "was refused: held") {
		t.Errorf("%d trials, void: %q", r.Trials, r.Voided)
	}
}

func TestAStallWithoutASuccessorIsVoid(t *testing.T) {
	owner, successor := ran(0, 10, 11, 60, 65, 50), ran(stalled, 55, 56, 58, 59, long)
	endless := owner
	endless.Key, endless.Expires = 1, never
	if succeeded([]attempted{owner, successor, endless}) != nil {
		t.Error("a successor came, and the other lease does not end")
	}
	if succeeded([]attempted{owner, refused(stalled, 55, 56, "held"), endless}) == nil {
		t.Error("nobody took over")
	}
}

func TestADuplicateThatMayComeFromTheClockIsVoid(t *testing.T) {
	l := lineIn(t, 2, t.TempDir())
	b := newBencher(t, Options{Line: l})
	r := b.row("storm", "unguarded", "", 2, 1)
	for _, set := range []time.Duration{0, time.Hour} {
		o := b.order("unguarded", b.newDir(), 1)
		w := b.begins()
		w.offset += int64(set)
		err := b.together(2, o)
		if _, err := b.conclude(r, o, b.attempts(o, 0, 1), w, err); err != nil {
			t.Fatal(err)
		}
	}
	if r.Trials != 1 || r.Duplicates != 1 || r.Void != 1 {
		t.Errorf("%d trials, %d duplicates, %d void", r.Trials, r.Duplicates, r.Void)
	}
}

func TestSinksForgetTheTrialBefore(t *testing.T) {
	l := lineIn(t, 1, t.TempDir())
	b := newBencher(t, Options{Line: l})
	first, last := sinkIn(l.Words(0), 0), sinkIn(l.Words(0), wordsOfSink-1)
	horizon, behind := horizonIn(l.Words(0)), &recordsIn(l.Words(0))[0].Tries
	*first, *last, *horizon, *behind = 7, 7, 7, 7
	b.begins().disturbed()
	if *first != 0 || *last != 0 || *horizon != 7 || *behind != 7 {
		t.Errorf("sinks %d, %d, horizon %d, records %d", *first, *last, *horizon, *behind)
	}
}

// A lease of the tests: it counts what it is asked.
type leaseOfTests struct {
	expires time.Duration
	err     error
	dropped int
}

func (l *leaseOfTests) Expires() time.Duration { return l.expires }
func (l *leaseOfTests) Renew() error           { return nil }
func (l *leaseOfTests) Done([]byte) error      { return l.err }
func (l *leaseOfTests) Drop() error            { l.dropped++; return nil }

func TestAnOwnerGivesUpWhatItCannotRecord(t *testing.T) {
	words := make([]uint64, race.Words)
	w := &worker{o: &order{}, seen: map[verb]int64{}, env: &race.Env{Words: func(int) []uint64 { return words }}}
	for _, c := range []struct {
		what                      string
		err                       error
		expires                   time.Duration
		began, done, left, answer bool
	}{
		{"done", nil, time.Hour, true, true, false, true},
		{"no room", unix.ENOSPC, time.Hour, true, false, true, false},
		{"lost", engine.ErrLost, time.Hour, true, false, true, true},
		{"the lease had run out before", nil, -time.Hour, false, false, false, true},
	} {
		l, r := &leaseOfTests{expires: time.Duration(race.Now()) + c.expires, err: c.err}, &record{}
		r.Expires = int64(l.expires)
		w.execute(0, r, l)
		if r.Began != 0 != c.began || r.Done != 0 != c.done || r.Left != 0 != c.left || r.Errno == 0 != c.answer || l.dropped == 0 != c.done {
			t.Errorf("%s: %+v, dropped %d times", c.what, r, l.dropped)
		}
		if r.Done == 0 && r.Began > r.Expires {
			t.Errorf("%s: it began after its lease", c.what)
		}
	}
}

func TestADirectoryThatIsNotFilledIsAnError(t *testing.T) {
	if err := filled([]attempted{ran(0, 10, 11, 20, 25, long), refused(0, 30, 35, "held")}); err == nil {
		t.Error("one key is not done")
	}
	if err := filled([]attempted{ran(0, 10, 11, 20, 25, long)}); err != nil {
		t.Error(err)
	}
}

// wholeSeconds is a clock like that of FAT.
type wholeSeconds struct{ engine.FS }

func (wholeSeconds) Now() (time.Time, error) { return time.Now().Truncate(2 * time.Second), nil }

// farAway is a filesystem whose clock takes long to be read.
type farAway struct{ engine.FS }

const oneWay = 80 * time.Millisecond

func (f farAway) Now() (time.Time, error) {
	time.Sleep(oneWay)
	return f.FS.Now()
}

func TestLeasesFitTheFilesystemsClock(t *testing.T) {
	dir := t.TempDir()
	d, err := engine.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if g, err := granularity(wholeSeconds{d}); err != nil || g != coarse {
		t.Errorf("whole seconds: %v, %v", g, err)
	}
	if g, err := granularity(d); err != nil || g != 0 {
		t.Errorf("%s: %v, %v", filepath.Dir(dir), g, err)
	}
	for fs, want := range map[engine.FS]time.Duration{wholeSeconds{d}: coarse, farAway{d}: 2 * oneWay} {
		if r, err := reserve(fs); err != nil || r < want {
			t.Errorf("%T: %v, %v, want %v", fs, r, err, want)
		}
	}
	if p := params(int64(10 * coarse)); p.Slack < coarse {
		t.Errorf("of a TTL of %v the owner keeps %v in reserve", p.TTL, p.Slack)
	}
	b := newBencher(t, Options{Line: lineIn(t, 1, dir)})
	if err := b.fitTTL(); err != nil || b.TTL != usualTTL {
		t.Errorf("%v, %v", b.TTL, err)
	}
}

func TestEachContenderBeginsWithAnotherKey(t *testing.T) {
	l := lineIn(t, 4, t.TempDir())
	b := newBencher(t, Options{Line: l})
	o := b.order("unguarded", b.newDir(), 8)
	if err := b.together(4, o); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		all := b.attempts(o, i)
		firstKey := slices.MinFunc(all, func(a, b attempted) int { return int(a.Invoke - b.Invoke) }).Key
		if len(all) != 8 || firstKey != 2*i {
			t.Errorf("contender %d begins with key %d of %d", i, firstKey, len(all))
		}
	}
}
