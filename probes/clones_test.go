package probes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// here and there are two kernels with ticks of 10 ms: there has a count 300 ms later.
var (
	here  = ticker{Boot: 1, Initial: 1, Tick: 10 * ms, Count: 5000, At: 1000 * ms, ID: 800, MostID: 32768}
	there = ticker{Boot: 2, Initial: 1, Tick: 10 * ms, Count: 4990, At: 1200 * ms, ID: 790, MostID: 32768}
)

// oneWinner is a round of equal ids and counts, in which the second create begins during the first, and is refused.
func oneWinner() cloneRound {
	return cloneRound{number: 7, of: [2]clone{
		{0, race.Event{Invoke: 2002 * ms, Return: 2405 * ms, Saw: 824}, here},
		{1, race.Event{Invoke: 2302 * ms, Return: 2705 * ms, Saw: 824, Errno: uint32(unix.EEXIST)}, there},
	}}
}

func twoWinners() cloneRound {
	t := oneWinner()
	t.of[1].event.Errno = 0
	return t
}

func TestTwoWinnersOfARoundOfClonesAreTooMany(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *cloneRound)
		kind   string
		failed bool
		alike  bool
	}{
		{"one winner", func(t *cloneRound) { *t = oneWinner() }, "", false, true},
		{"the other wins", func(t *cloneRound) {
			*t = oneWinner()
			t.of[0].event.Errno, t.of[1].event.Errno = uint32(unix.EEXIST), 0
		}, "", false, true},
		{"two winners", func(*cloneRound) {}, severalWinners, false, true},
		{"with other ids", func(t *cloneRound) { t.of[1].event.Saw++ }, severalWinners, false, false},
		{"a tick later", func(t *cloneRound) { t.of[1].event.Invoke += 10 * ms }, severalWinners, false, false},
		{"later in one tick", func(t *cloneRound) { t.of[1].event.Invoke += 7 * ms }, severalWinners, false, true},
		{"later by less than a tick, in the next", func(t *cloneRound) { t.of[1].event.Invoke += 9 * ms }, severalWinners, false, false},
		{"at one instant, and not at one count", func(t *cloneRound) { t.of[1].event.Invoke = t.of[0].event.Invoke }, severalWinners, false, false},
		{"over before the other begins", func(t *cloneRound) { t.of[0].event.Return = 2301 * ms }, severalWinners, false, true},
		{"by clocks that are known little", func(t *cloneRound) { t.unsure = 5 * ms }, severalWinners, false, false},
		{"by clocks that are known enough", func(t *cloneRound) { t.unsure = 5*ms - 1 }, severalWinners, false, true},
		{"one did not come back", func(t *cloneRound) { t.of[1].event.Return = 0 }, "", true, true},
		{"one was not there", func(t *cloneRound) { t.of[1].event = race.Event{Errno: uint32(unix.ESRCH)} }, "", true, false},
		{"an error", func(t *cloneRound) { t.of[1].event.Errno = uint32(unix.EIO) }, "", true, true},
		{"nobody", func(t *cloneRound) {
			t.of[0].event.Errno, t.of[1].event.Errno = uint32(unix.EEXIST), uint32(unix.EEXIST)
		}, "", true, true},
		{"nobody, for errors", func(t *cloneRound) { t.of[0].event.Errno, t.of[1].event.Errno = uint32(unix.EIO), uint32(unix.EEXIST) }, "", true, true},
	} {
		r := twoWinners()
		c.change(&r)
		if v := r.judge("op"); v.kind != c.kind || v.failed != c.failed || r.alike() != c.alike {
			t.Errorf("%s: %+v, alike %v", c.name, v, r.alike())
		}
	}
	over, early := oneWinner(), oneWinner()
	over.of[0].event.Return = 2301 * ms
	early.of[1].event.Saw++
	for _, c := range []struct {
		r    cloneRound
		want bool
	}{{oneWinner(), true}, {twoWinners(), true}, {over, false}, {early, false}} {
		if got := c.r.contested(); got != c.want {
			t.Errorf("contested: %v, %+v", got, c.r)
		}
	}
	want := "op succeeded for contenders 0 and 1 in the same round, by threads 824 and 824, at ticks 5100 and 5100 since boot"
	if r := twoWinners(); r.judge("op").sentence != want {
		t.Errorf("%q, want %q", r.judge("op").sentence, want)
	}
}

// record stands for a bench, whose contenders name themselves.
func record(contender int, ev *race.Event) result.Event {
	return result.Event{Contender: contender, TID: 1, Invoke: ev.Invoke, Saw: ev.Saw}
}

func TestWhatTheRoundsOfClonesAmountTo(t *testing.T) {
	unequal := twoWinners()
	unequal.of[1].event.Saw = 5
	lone := oneWinner()
	lone.of[1].event.Saw = 5
	over := oneWinner()
	over.of[0].event.Return = 2301 * ms
	broken := oneWinner()
	broken.of[1].event.Errno = uint32(unix.EIO)
	estimate := here
	estimate.Estimated = 1
	for _, c := range []struct {
		name    string
		rounds  []cloneRound
		equal   int // rounds of one winner
		control cloneRound
		counts  ticker
		out     []string
		verdict result.Verdict
		reason  string
	}{
		{"enough", nil, 20, twoWinners(), here, nil, result.Holds, "no second winner; 20 of 20 rounds had equal thread ids and counts of ticks, and 20 of those overlapped"},
		{"one too few", []cloneRound{lone}, 19, twoWinners(), here, nil, result.Unproven, "only 19 of 20 rounds had equal thread ids and counts of ticks and overlapped; at least 20 are needed"},
		{"too far apart for a race", slices.Repeat([]cloneRound{over}, 20), 0, twoWinners(), here, nil, result.Unproven, "20 of 20 rounds had equal thread ids and counts of ticks, and none of those overlapped"},
		{"too few of them a race", slices.Repeat([]cloneRound{over}, 20), 19, twoWinners(), here, nil, result.Unproven, "only 19 of 39 rounds had equal thread ids and counts of ticks and overlapped; at least"},
		{"a silent control", nil, 20, oneWinner(), here, nil, result.Unproven, "the positive control did not fire in 1 contested rounds: this run could not have seen a violation"},
		{"estimated counts", nil, 20, twoWinners(), estimate, nil, result.Unproven, "no second winner, but that says little; counts of ticks were estimated"},
		{"two winners", []cloneRound{twoWinners(), unequal}, 3, twoWinners(), here, nil, result.Broken, "; 4 of 5 rounds had equal thread ids and counts of ticks, 1 of them with two winners"},
		{"two winners, by estimated counts", []cloneRound{twoWinners()}, 0, twoWinners(), estimate, nil, result.Broken, "; counts of ticks were estimated"},
		{"a pair left out", nil, 20, twoWinners(), here, []string{"too far"}, result.Unproven, "too far"},
		{"two winners, and a pair left out", []cloneRound{twoWinners()}, 0, twoWinners(), here, []string{"too far"}, result.Broken, "by threads 824 and 824"},
		{"nobody to race", nil, 0, oneWinner(), here, []string{"too far", "too alone"}, result.Unproven, "too far; too alone"},
		{"errors", []cloneRound{broken}, 19, twoWinners(), here, nil, result.Unproven, "1 of 20 rounds failed, errnos seen: EEXIST ×19, EIO ×1"},
	} {
		run, f := newCloning(&Bench{}), result.Finding{Figures: map[string]float64{}}
		run.counts[0] = &c.counts
		for range c.equal {
			c.rounds = append(c.rounds, oneWinner())
		}
		for i := range c.rounds {
			run.add(run.total, &c.rounds[i], record)
		}
		run.add(run.control, &c.control, record)
		run.decide(&f, c.out, nil)
		if f.Verdict != c.verdict || !strings.Contains(f.Reason, c.reason) {
			t.Errorf("%s: %s: %s, want %s: %s", c.name, f.Verdict, f.Reason, c.verdict, c.reason)
		}
		if f.Counterexample == nil {
			continue
		}
		for _, ev := range f.Counterexample.Round.Events {
			if ev.TID != 824 || ev.Saw != 5100 {
				t.Errorf("%s: the counterexample has thread %d and ticks %d", c.name, ev.TID, ev.Saw)
			}
		}
	}
}

func TestClonesStartAtEqualCounts(t *testing.T) {
	for _, p := range [][2]ticker{{here, there}, {there, here}, {here, here}} {
		for aside := -4; aside <= 4; aside++ {
			earliest := 3003 * ms
			at := instants(&p[0], &p[1], earliest, aside)
			first, second := p[0].at(at[0]), p[1].at(at[1]-int64(aside)*p[0].Tick/cloneStepsATick)
			if first != second || min(at[0], at[1]) < earliest || max(at[0], at[1]) > earliest+350*ms {
				t.Errorf("%d steps aside: at %d and %d, ticks %d and %d", aside, at[0]/ms, at[1]/ms, first, second)
			}
		}
	}
	var swept []int
	for round := range 18 {
		if aside := asideOf(round); round%2 == 0 {
			swept = append(swept, aside)
		} else if aside != 0 {
			t.Errorf("round %d is %d aside", round, aside)
		}
	}
	want := []int{0, 1, -1, 2, -2, 3, -3, 4, -4}
	for i := range want {
		if swept[i] != want[i] {
			t.Errorf("swept %d, want %d", swept, want)
			break
		}
	}
}

func TestTicksAreCounted(t *testing.T) {
	for at, want := range map[int64]int64{1000 * ms: 5000, 1009 * ms: 5000, 1010 * ms: 5001, 999 * ms: 4999, 990 * ms: 4999, 989 * ms: 4998} {
		if got := here.at(at); got != want {
			t.Errorf("at %d ms: %d, want %d", at/ms, got, want)
		}
	}
	if there, back := here.until(&there), there.until(&here); there != 300*ms || back != -300*ms {
		t.Errorf("%d and %d ms later", there/ms, back/ms)
	}
	// The verifier has 32 bits of it.
	over := there
	over.Count += 1 << 32
	if later := here.until(&over); later != 300*ms {
		t.Errorf("after an overflow %d ms later", later/ms)
	}
}

func TestKernelsThatAreTooFarApart(t *testing.T) {
	for want, change := range map[string]func(a, b *ticker){
		"":                              func(_, b *ticker) { b.At += 1700 * ms },
		"2s apart":                      func(_, b *ticker) { b.At += 1701 * ms },
		"3.6s apart":                    func(_, b *ticker) { b.Count += 390 },
		"are those of a container":      func(_, b *ticker) { b.Initial = 0 },
		"those of a container's pid":    func(a, _ *ticker) { a.Initial = 0 },
		"one kernel's tick lasts 10ms":  func(_, b *ticker) { b.Tick = 4 * ms },
		"thread ids, 800 and 50000,":    func(a, b *ticker) { b.ID, a.MostID, b.MostID = 50000, 1<<22, 1<<22 },
		"thread ids, 4000000 and 4190,": func(a, b *ticker) { a.ID, b.ID, a.MostID, b.MostID = 4000000, 4190, 1<<22, 1<<22 },
	} {
		a, b := here, there
		change(&a, &b)
		if got := a.tooFar(&b); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTheNextThreadIDLiesBeforeBoth(t *testing.T) {
	a, b := here, there
	if id := a.nextID(&b); id != 824 || a.threadsTo(id) != 24 || b.threadsTo(id) != 34 {
		t.Errorf("%d, %d and %d threads on", id, a.threadsTo(id), b.threadsTo(id))
	}
	a.ID = 32760 // there the ids of one begin again, and those of the other have to, too
	if id := a.nextID(&b); id != 324 || a.threadsTo(id) != 32 || b.threadsTo(id) != 32002 {
		t.Errorf("%d, %d and %d threads on", id, a.threadsTo(id), b.threadsTo(id))
	}
}

// What the rounds need of a kernel works, though two contenders on one cannot have one thread id.
func TestAContenderCreatesByTheThreadAgreedOn(t *testing.T) {
	b := newBench(t, 2, t.TempDir())
	do := func(who int, op string, name int64, arg uint64) race.Event {
		ev, err := b.Line.Do(t.Context(), who, op, name, arg)
		if err != nil {
			t.Fatal(err)
		}
		return ev
	}
	var all [2]ticker
	for who := range all {
		if ev := do(who, "clones:look", b.Line.Name(), 0); ev.Errno != 0 {
			t.Fatal(unix.Errno(ev.Errno))
		}
		all[who] = *tickerOf(b.Line.Words(who))
	}
	a, o := &all[0], &all[1]
	if apart := time.Duration(a.until(o)).Abs(); a.Boot != o.Boot || a.Estimated == 0 && apart > time.Duration(a.Tick)/2 {
		t.Errorf("one kernel is %v from itself: %+v, %+v", apart, *a, *o)
	}
	wanted := int64(0)
	held := false
	for range idTries {
		if ev := do(0, "clones:look", b.Line.Name(), 0); ev.Errno != 0 {
			t.Fatal(unix.Errno(ev.Errno))
		}
		wanted = tickerOf(b.Line.Words(0)).nextID(o)
		if held = do(0, "clones:hold", b.Line.Name(), uint64(wanted)).Errno == 0; held {
			break
		}
	}
	if !held {
		t.Skipf("thread %d is another's each time: this machine is busy", wanted)
	}
	at, name := race.Now()+5*ms, b.Line.Name()
	if ev := do(0, "clones:approach", name, 0); ev.Errno != 0 {
		t.Error(unix.Errno(ev.Errno))
	}
	if ev := do(0, "open-excl-alike", name, uint64(at)); !ev.Won() || int64(ev.Saw) != wanted || ev.Invoke < at || ev.Inode == 0 {
		t.Errorf("%+v: not by thread %d at %d", ev, wanted, at)
	}
	if ev := do(0, "open-excl-alike", name, 0); !loses(&ev) || int64(ev.Saw) != wanted {
		t.Errorf("a second time: %+v", ev)
	}
	if ev := do(0, "create-alike", name, 0); !ev.Won() {
		t.Errorf("the control: %+v", ev)
	}
	if ev := do(1, "open-excl-alike", name, 0); ev.Errno != uint32(unix.ESRCH) {
		t.Errorf("without a thread: %+v", ev)
	}
}

func TestClonesTakeSeveralKernels(t *testing.T) {
	b := newBench(t, 2, t.TempDir(), t.TempDir())
	if f := Run(t.Context(), exclCreateClones, b); f.Verdict != result.Unproven || f.Rounds != 0 || !strings.Contains(f.Reason, "takes several kernels") || f.Advice == "" {
		t.Errorf("%+v", f)
	}
	b.Scope = result.ScopeHost // as if
	if f := Run(t.Context(), exclCreateClones, b); f.Verdict != result.Unproven || f.Rounds != 0 || f.Reason != "there is one kernel only" {
		t.Errorf("%+v", f)
	}
}
