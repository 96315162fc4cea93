package probes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/testenv"
)

const us = int64(time.Microsecond)

// here and there are two kernels with ticks of 10 ms: there has a count 300 ms later.
var (
	here  = ticker{Boot: 1, Initial: 1, Tick: 10 * ms, Count: 5000, At: 1000 * ms, ID: 800, MostID: 32768}
	there = ticker{Boot: 2, Initial: 1, Tick: 10 * ms, Count: 4990, At: 1200 * ms, ID: 790, MostID: 32768}
)

// oneWinner is a round of equal ids and counts, in which the second create begins during the first, and is refused.
func oneWinner() cloneRound {
	return cloneRound{number: 7, of: [2]clone{
		{0, race.Event{Invoke: 2005 * ms, Return: 2405 * ms, Saw: 824}, here, 0},
		{1, race.Event{Invoke: 2305 * ms, Return: 2705 * ms, Saw: 824, Errno: uint32(unix.EEXIST)}, there, 0},
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
		{"later in one tick", func(t *cloneRound) { t.of[1].event.Invoke += 3 * ms }, severalWinners, false, true},
		{"later by less than a tick, in the next", func(t *cloneRound) { t.of[1].event.Invoke += 7 * ms }, severalWinners, false, false},
		{"at one instant, and not at one count", func(t *cloneRound) { t.of[1].event.Invoke = t.of[0].event.Invoke }, severalWinners, false, false},
		{"over before the other begins", func(t *cloneRound) { t.of[0].event.Return = 2301 * ms }, severalWinners, false, true},
		// Since the first one's count was read 1005 ms have passed, and since the second one's 1105: 0.603 and 0.663 ms.
		{"by a clock that is known little", func(t *cloneRound) { t.of[0].unsure = 4397 * us }, severalWinners, false, false},
		{"by a clock that is known enough", func(t *cloneRound) { t.of[0].unsure = 4397*us - 1 }, severalWinners, false, true},
		{"by the other clock, known little", func(t *cloneRound) { t.of[1].unsure = 4337 * us }, severalWinners, false, false},
		{"by the other clock, known enough", func(t *cloneRound) { t.of[1].unsure = 4337*us - 1 }, severalWinners, false, true},
		{"by a count that was read badly", func(t *cloneRound) { t.of[0].count.Unsure = 4397 * us }, severalWinners, false, false},
		{"by a count that was read well", func(t *cloneRound) { t.of[0].count.Unsure = 4397*us - 1 }, severalWinners, false, true},
		{"by a count that was read long ago", func(t *cloneRound) { t.of[0].count.At -= 8000 * ms; t.of[0].count.Count -= 800 }, severalWinners, false, false},
		{"at the beginning of a tick", func(t *cloneRound) { t.of[0].event.Invoke -= 4500 * us }, severalWinners, false, false},
		{"at the end of a tick", func(t *cloneRound) { t.of[1].event.Invoke += 4500 * us }, severalWinners, false, false},
		{"one did not come back", func(t *cloneRound) { t.of[1].event.Return = 0 }, "", true, true},
		{"none was there", func(t *cloneRound) {
			t.of[0].event = race.Event{Invoke: 2005 * ms, Return: 2006 * ms, Errno: uint32(unix.ESRCH)}
			t.of[1].event = race.Event{Invoke: 2305 * ms, Return: 2306 * ms, Errno: uint32(unix.ESRCH)}
		}, "", true, false},
		{"one was not there", func(t *cloneRound) { t.of[1].event = race.Event{Errno: uint32(unix.ESRCH)} }, "", true, false},
		{"an error", func(t *cloneRound) { t.of[1].event.Errno = uint32(unix.EIO) }, "", true, true},
		{"nobody", func(t *cloneRound) {
			t.of[0].event.Errno, t.of[1].event.Errno = uint32(unix.EEXIST), uint32(unix.EEXIST)
		}, "", true, true},
		{"refused", func(t *cloneRound) {
			t.of[0].event.Errno, t.of[1].event.Errno = uint32(unix.ENOSYS), uint32(unix.EOPNOTSUPP)
		}, "", false, true},
		{"one of them refused", func(t *cloneRound) {
			t.of[0].event.Errno, t.of[1].event.Errno = uint32(unix.ENOSYS), uint32(unix.EEXIST)
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
	refused := oneWinner()
	refused.of[0].event.Errno, refused.of[1].event.Errno = uint32(unix.ENOSYS), uint32(unix.ENOSYS)
	alone := twoWinners() // as both win without O_EXCL, be it a race or not
	alone.of[0].event.Return = 2301 * ms
	apart := twoWinners()
	apart.of[1].event.Saw = 5
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
		{"refusals", slices.Repeat([]cloneRound{refused}, 5), 0, twoWinners(), here, nil, result.Unsupported, "refused with ENOSYS ×10"},
		{"refusals, and a pair left out", slices.Repeat([]cloneRound{refused}, 5), 0, twoWinners(), here, []string{"too far"}, result.Unsupported, "refused with ENOSYS ×10"},
		{"one too few", []cloneRound{lone}, 19, twoWinners(), here, nil, result.Unproven, "only 19 of 20 rounds had equal thread ids and counts of ticks and overlapped; at least 20 are needed"},
		{"too far apart for a race", slices.Repeat([]cloneRound{over}, 20), 0, twoWinners(), here, nil, result.Unproven, "20 of 20 rounds had equal thread ids and counts of ticks, and none of those overlapped"},
		{"too few of them a race", slices.Repeat([]cloneRound{over}, 20), 19, twoWinners(), here, nil, result.Unproven, "only 19 of 39 rounds had equal thread ids and counts of ticks and overlapped; at least"},
		{"a silent control", nil, 20, oneWinner(), here, nil, result.Unproven, "the positive control did not fire in 1 contested rounds: this run could not have seen a violation"},
		{"a control without a race", nil, 20, alone, here, nil, result.Unproven, "the positive control did not fire in 0 contested rounds"},
		{"a control of unequal ids", nil, 20, apart, here, nil, result.Unproven, "the positive control did not fire in 0 contested rounds"},
		{"estimated counts", nil, 20, twoWinners(), estimate, nil, result.Unproven, "no second winner, but that says little; counts of ticks were estimated"},
		{"two winners", []cloneRound{twoWinners(), unequal}, 3, twoWinners(), here, nil, result.Broken, "; 4 of 5 rounds had equal thread ids and counts of ticks, 1 of them with two winners"},
		{"two winners, by estimated counts", []cloneRound{twoWinners()}, 0, twoWinners(), estimate, nil, result.Broken, "; counts of ticks were estimated"},
		{"a pair left out", nil, 20, twoWinners(), here, []string{"too far"}, result.Unproven, "too far"},
		{"two winners, and a pair left out", []cloneRound{twoWinners()}, 0, twoWinners(), here, []string{"too far"}, result.Broken, "by threads 824 and 824"},
		{"nobody to race", nil, 0, oneWinner(), here, []string{"too far", "too alone"}, result.Unproven, "too far; too alone"},
		{"errors", []cloneRound{broken}, 19, twoWinners(), here, nil, result.Unproven, "1 of 20 rounds failed, errnos seen: EEXIST ×19, EIO ×1"},
	} {
		run, f := newCloning(&Bench{}), result.Finding{Figures: map[string]float64{}}
		p := newPairing([2]int{0, 1})
		run.raced = append(run.raced, p)
		run.counts[0] = &c.counts
		for range c.equal {
			c.rounds = append(c.rounds, oneWinner())
		}
		for i := range c.rounds {
			p.add(p.total, &c.rounds[i], record)
		}
		p.add(p.control, &c.control, record)
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

// What one pair of kernels has shown is no proof of another.
func TestEachPairOfClonesIsCountedByItself(t *testing.T) {
	for _, c := range []struct {
		name     string
		rounds   [3]int
		controls [3]int
		verdict  result.Verdict
		reason   string
	}{
		{"all enough", [3]int{20, 20, 20}, [3]int{1, 1, 1}, result.Holds, "no second winner; 60 of 60 rounds"},
		{"one alone", [3]int{20, 0, 0}, [3]int{1, 1, 1}, result.Unproven, "contenders 0 and 2: only 0 of 0 rounds had equal thread ids and counts of ticks and overlapped; " +
			"at least 20 are needed; contenders 1 and 2: only 0 of 0 rounds"},
		{"one too few", [3]int{40, 40, 19}, [3]int{1, 1, 1}, result.Unproven, "contenders 1 and 2: only 19 of 19 rounds"},
		{"a silent control", [3]int{20, 20, 20}, [3]int{4, 0, 4}, result.Unproven, "contenders 0 and 2: the positive control did not fire"},
	} {
		run, f := newCloning(&Bench{}), result.Finding{Figures: map[string]float64{}}
		for i, who := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
			p, won, both := newPairing(who), oneWinner(), twoWinners()
			for range c.rounds[i] {
				p.add(p.total, &won, record)
			}
			for range c.controls[i] {
				p.add(p.control, &both, record)
			}
			run.raced = append(run.raced, p)
		}
		if run.decide(&f, nil, nil); f.Verdict != c.verdict || !strings.HasPrefix(f.Reason, c.reason) {
			t.Errorf("%s: %s: %s, want %s: %s", c.name, f.Verdict, f.Reason, c.verdict, c.reason)
		}
	}
}

func TestAPairOfClonesIsRacedUntilItsRoundsAreEnough(t *testing.T) {
	const d, spare = 30 * time.Second, 60 * time.Second
	win, twice, refused, late := oneWinner(), twoWinners(), oneWinner(), oneWinner()
	refused.of[0].event.Errno, refused.of[1].event.Errno = uint32(unix.ENOSYS), uint32(unix.ENOSYS)
	late.of[0].event.Return = 2301 * ms
	for _, c := range []struct {
		name  string
		round cloneRound
		n     int
		also  int // rounds that are a race
		took  time.Duration
		want  bool
	}{
		{"as many as wanted", win, 40, 0, time.Second, true},
		{"one too few", win, 39, 0, time.Second, false},
		{"enough, and no time", win, 20, 0, d + 1, true},
		{"not enough, and spare time", win, 19, 0, d + 1, false},
		{"not enough, and no spare time", win, 19, 0, d + spare + 1, true},
		{"alike, and hardly any a race", late, 100, 19, d + 1, false},
		{"alike, and none a race", late, 20, 0, d + 1, true},
		{"alike, none a race, and time", late, 100, 0, time.Second, false},
		{"doubles", twice, 10, 0, time.Second, true},
		{"refusals", refused, 50, 0, time.Second, true},
	} {
		p := newPairing([2]int{0, 1})
		for range c.n {
			p.add(p.total, &c.round, record)
		}
		for range c.also {
			p.add(p.total, &win, record)
		}
		if got := p.over(c.took, d, spare, 40); got != c.want {
			t.Errorf("%s: over %v, want %v", c.name, got, c.want)
		}
	}
}

func TestClonesStartAtEqualCounts(t *testing.T) {
	for _, p := range [][2]ticker{{here, there}, {there, here}, {here, here}} {
		for aside := -4; aside <= 4; aside++ {
			earliest := 3003 * ms
			at := instants(&p[0], &p[1], earliest, aside)
			second := at[1] - int64(aside)*p[0].Tick/cloneStepsATick
			a, b := clone{event: race.Event{Invoke: at[0]}, count: p[0], unsure: 3 * ms}, clone{event: race.Event{Invoke: second}, count: p[1], unsure: 3 * ms}
			if first, second := a.ticks(), b.ticks(); first != second || !a.certain() || !b.certain() || min(at[0], at[1]) < earliest || max(at[0], at[1]) > earliest+350*ms {
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

func TestReadingsTellWhenACountBegan(t *testing.T) {
	for _, c := range []struct {
		name       string
		all        []reading
		at, unsure int64
	}{
		{"one", []reading{{1004 * ms, 1005 * ms, 5000}}, 999500 * us, 5500 * us},
		{"two counts", []reading{{1008 * ms, 1009 * ms, 5000}, {1009 * ms, 1010 * ms, 5001}}, 999 * ms, 1000 * us},
		{"at the tick each time", []reading{{1000 * ms, 1001 * ms, 5000}, {1020 * ms, 1021 * ms, 5002}}, 995500 * us, 5500 * us},
		{"a slow one", []reading{{1008 * ms, 1009 * ms, 5000}, {1009 * ms, 1038 * ms, 5003}, {1009 * ms, 1011 * ms, 5001}}, 999500 * us, 1500 * us},
		{"a late tick", []reading{{1000 * ms, 1001 * ms, 5000}, {1013 * ms, 1014 * ms, 5000}}, 1002 * ms, 1000 * us},
	} {
		k := ticker{Tick: 10 * ms}
		if k.fit(c.all); k.Count != 5000 || k.At != c.at || k.Unsure != c.unsure+1 {
			t.Errorf("%s: count %d at %d µs ± %d ns", c.name, k.Count, k.At/us, k.Unsure)
		}
	}
}

func TestCountsAreReadAgain(t *testing.T) {
	badly := here
	badly.Unsure = 2600 * us
	for _, c := range []struct {
		k    ticker
		at   int64
		want bool
	}{{here, 2000 * ms, false}, {here, 2600 * ms, false}, {here, 2700 * ms, true}, {badly, 1000 * ms, true}} {
		if got := c.k.stale(c.at); got != c.want {
			t.Errorf("at %d ms: %v", c.at/ms, got)
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
		if held = do(0, "clones:hold", b.Line.Name(), holding(wanted, 10*time.Second)).Errno == 0; held {
			break
		}
	}
	if !held {
		testenv.Lacks(t, fmt.Sprintf("thread %d is another's each time: this machine is busy", wanted))
	}
	if ev := do(1, "clones:hold", b.Line.Name(), holding(1, 20*time.Millisecond)); ev.Errno != uint32(unix.ETIMEDOUT) {
		t.Errorf("an id that is not to be had: %+v", ev)
	}
	at, name := race.Now()+5*ms, b.Line.Name()
	if ev := do(0, "clones:approach", name, 0); ev.Errno != 0 {
		t.Error(unix.Errno(ev.Errno))
	}
	if ev := do(0, exclAlike, name, uint64(at)); !ev.Won() || int64(ev.Saw) != wanted || ev.Invoke < at || ev.Return < ev.Invoke || ev.Inode == 0 {
		t.Errorf("%+v: not by thread %d at %d", ev, wanted, at)
	}
	if ev := do(0, exclAlike, name, 0); !loses(&ev) || int64(ev.Saw) != wanted {
		t.Errorf("a second time: %+v", ev)
	}
	if ev := do(0, createAlike, name, 0); !ev.Won() {
		t.Errorf("the control: %+v", ev)
	}
	if ev := do(1, exclAlike, name, 0); ev.Errno != uint32(unix.ESRCH) {
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
