package probes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
)

const ms = int64(time.Millisecond)

// stamped makes stamps of one act, a millisecond apart by the contender's clock, whose file times are those given, in
// milliseconds less the contender's clock.
func stamped(a act, times ...int64) (ss []stamp) {
	for i, t := range times {
		at := int64(i) * ms
		ss = append(ss, stamp{Act: a, Invoke: at, Before: at + 1, After: at + 2, Return: at + 3, Mtime: at + t*ms, Ctime: at + t*ms})
	}
	return ss
}

// stepping is a clock that moves by step, read once per every for as long.
func stepping(a act, step, every, long time.Duration) (ss []stamp) {
	for at := int64(0); at < int64(long); at += int64(every) {
		t := at - at%int64(step)
		ss = append(ss, stamp{Act: a, Invoke: at, Before: at, After: at + 10, Return: at + 10, Mtime: t, Ctime: t})
	}
	return ss
}

// setBetween is a clock that stamps and that is this host's own, which is set between the two readings around stamp n.
func setBetween(n int, by time.Duration) []stamp {
	ss := stamped(touch, 0, 0, 0, 0)
	for i := range ss[n:] {
		s := &ss[n+i]
		if i > 0 {
			s.Before += int64(by)
		}
		s.After, s.Mtime, s.Ctime = s.After+int64(by), s.Mtime+int64(by), s.Ctime+int64(by)
	}
	return ss
}

// A contender that gets no CPU between two readings has not seen its clock being set.
func TestAPauseDoesNotSetTheClock(t *testing.T) {
	for _, stop := range []func(s *stamp){
		func(s *stamp) { s.Before, s.After, s.Return = s.Before+oneHour, s.After+oneHour, s.Return+oneHour },
		func(s *stamp) { s.After, s.Return = s.After+oneHour, s.Return+oneHour },
		func(s *stamp) { s.Return += oneHour },
	} {
		ss := stamped(touch, 0, 0, 0)
		stop(&ss[2])
		if clockSet(ss) {
			t.Errorf("%+v", ss[2])
		}
	}
}

func TestTimesAreJudgedByTheirSteps(t *testing.T) {
	set := stamped(touch, 0, 0, 0)
	set[2].Before, set[2].After = set[2].Before+oneHour, set[2].After+oneHour
	ctimeOnly := stepping(touch, time.Millisecond, time.Millisecond, 3*time.Second)
	for i := range ctimeOnly {
		ctimeOnly[i].Mtime = 7
	}
	written := slices.Clone(ctimeOnly)
	for i := range written {
		written[i].Act = write
	}
	none, refused, failed := map[uint32]int{}, map[uint32]int{uint32(unix.EPERM): 3}, map[uint32]int{uint32(unix.EIO): 3, uint32(unix.EPERM): 1}
	for _, c := range []struct {
		what     string
		act      act
		stamps   []stamp
		failures map[uint32]int
		want     ruling
		at       int
	}{
		{"each act moves the clock", touch, stamped(touch, 0, 0, 0), none, ruling{}, 0},
		{"a tick of 10 ms", create, stepping(create, 10*time.Millisecond, time.Millisecond, 50*time.Millisecond), none, ruling{}, 0},
		{"a step of just under a second", touch, stepping(touch, time.Second-1, 100*time.Millisecond, 2500*time.Millisecond), none, ruling{}, 0},
		{"a step of a second", touch, stepping(touch, time.Second, 100*time.Millisecond, 2500*time.Millisecond), none, ruling{kind: coarseTimes}, 10},
		{"each act takes a second", touch, stepping(touch, time.Millisecond, 1200*time.Millisecond, 6*time.Second), none, ruling{failed: true}, 0},
		{"FAT, and each act takes a second", touch, stepping(touch, 2*time.Second, 1200*time.Millisecond, 9*time.Second), none, ruling{failed: true}, 0},
		{"FAT", write, stepping(write, 2*time.Second, 100*time.Millisecond, 2500*time.Millisecond), none, ruling{kind: coarseTimes}, 20},
		{"a long step among short ones", touch, stamped(touch, 0, 2000, 2000), none, ruling{}, 0},
		{"no step yet", touch, stepping(touch, time.Hour, time.Millisecond, 2400*time.Millisecond), none, ruling{failed: true}, 0},
		{"no step", touch, stepping(touch, time.Hour, time.Millisecond, 2501*time.Millisecond), none, ruling{kind: timesStill}, 2500},
		{"a touch that moves the ctime alone", touch, ctimeOnly, none, ruling{kind: timesStill}, 2999},
		{"a write that moves the ctime alone", write, written, none, ruling{}, 0},
		{"a little back", touch, stamped(touch, 0, 0, -900, 0), none, ruling{}, 0},
		{"a second back", touch, stamped(touch, 0, 0, -1001, 0), none, ruling{kind: timesBack}, 2},
		{"a second back in small steps", touch, stamped(touch, 0, -400, -800, -1200), none, ruling{kind: timesBack}, 3},
		{"this host's clock was set", touch, set, none, ruling{failed: true}, 0},
		{"this host's clock was set back in the middle of an act", touch, setBetween(1, -2*time.Second), none, ruling{failed: true}, 0},
		{"this host's clock was set forward in the middle of an act", touch, setBetween(1, 2*time.Second), none, ruling{failed: true}, 0},
		{"refused", touch, nil, refused, ruling{refused: true}, 0},
		{"failed", touch, nil, failed, ruling{failed: true}, 0},
		{"nothing", touch, nil, none, ruling{failed: true}, 0},
		{"one stamp", touch, stamped(touch, 0), none, ruling{failed: true}, 0},
		{"some failed, and the others are good", touch, stamped(touch, 0, 0), failed, ruling{}, 0},
	} {
		got, at := judgeTimes(c.act, c.stamps, c.failures, patience)
		if got.kind != c.want.kind || got.refused != c.want.refused || got.failed != c.want.failed || at != c.at {
			t.Errorf("%s: %+v at %d, want %+v at %d", c.what, got, at, c.want, c.at)
		}
		if (got.kind != "") != (got.sentence != "") {
			t.Errorf("%s: kind %q with sentence %q", c.what, got.kind, got.sentence)
		}
	}
}

func TestATimeThatIsSetTellsHowTimesAreKept(t *testing.T) {
	for _, c := range []struct{ got, want int64 }{
		{setTo, 1}, {1_234_567_891_987_654_300, 100}, {1_234_567_891_987_654_000, 1e3}, {1_234_567_891_987_000_000, 1e6},
		{1_234_567_891_980_000_000, 1e7}, {1_234_567_891_000_000_000, 1e9}, {1_234_567_890_000_000_000, 2e9},
		{0, 0}, {setTo + 1, 0}, {1_234_567_892_000_000_000, 0},
	} {
		if got := keptTo(c.got); got != c.want {
			t.Errorf("%d: kept to %d ns, want %d", c.got, got, c.want)
		}
	}
}

func TestAnOffsetIsBoundedWhereAStampMovesOn(t *testing.T) {
	second := int64(time.Second)
	ahead := stepping(touch, 10*time.Millisecond, time.Millisecond, 100*time.Millisecond)
	for i := range ahead {
		ahead[i].Mtime += 5 * second
	}
	still := stamped(touch, 0)
	for _, c := range []struct {
		what   string
		stamps []stamp
		around int64 // lies in the interval
		width  int64 // at most
		known  bool
	}{
		{"a clock that ticks", stepping(touch, 10*time.Millisecond, time.Millisecond, 100*time.Millisecond), 0, ms + 10, true},
		{"one that ticks between the readings", stepping(touch, 10*time.Millisecond, 3*time.Millisecond, 100*time.Millisecond), 0, 3*ms + 10, true},
		{"one five seconds ahead", ahead, 5 * second, ms + 10, true},
		{"one of two seconds", stepping(touch, 2*time.Second, 10*time.Millisecond, 2500*time.Millisecond), 0, 10*ms + 10, true},
		{"one stamp", still, 0, 0, false},
		{"none", nil, 0, 0, false},
	} {
		o := offsetOf(1, touch, c.stamps)
		if o.known != c.known || c.known && (o.low > c.around || o.high < c.around || o.high-o.low > c.width) {
			t.Errorf("%s: %+v, want %d within, %d wide at most", c.what, o, c.around, c.width)
		}
	}
}

// A clock that moves once per tick comes late by a varying part of it: what bounds it from above crosses what bounds
// it from below, and the interval is what lies between.
func TestBoundsThatCrossAreAnInterval(t *testing.T) {
	ss := stamped(touch, 0, -3, 0)
	ss[1].Mtime, ss[2].Mtime = ss[0].Mtime+1, ss[0].Mtime+2
	if o := offsetOf(0, touch, ss); o.low > o.high || !o.known {
		t.Errorf("%+v", o)
	}
}

func TestClocksDifferBySecondsBetweenTheirIntervals(t *testing.T) {
	second := int64(time.Second)
	clock := func(who int, a act, low, high int64) offset {
		return offset{who: who, act: a, low: low, high: high, known: true}
	}
	base := clock(0, touch, -100, 100)
	unknown := clock(1, touch, 50*second, 50*second)
	unknown.known = false
	for _, c := range []struct {
		what string
		all  []offset
		kind string
		says string
	}{
		{"one", []offset{base}, "", ""},
		{"none", nil, "", ""},
		{"the same", []offset{base, clock(1, touch, -50, 150)}, "", ""},
		{"a second between them", []offset{base, clock(1, touch, 100+second, 200+second)}, "", ""},
		{"more", []offset{base, clock(1, touch, 101+second, 200+second)}, routesDiffer, "1.000000001s"},
		{"behind", []offset{base, clock(1, touch, -9*second, -2*second-100)}, routesDiffer, "2s"},
		{"wide intervals excuse it", []offset{base, clock(1, touch, 0, 60*second)}, "", ""},
		{"a clock that is not known", []offset{base, unknown}, "", ""},
		{"acts of one route", []offset{clock(0, create, 0, 0), clock(0, write, 0, 0), clock(0, touch, 5*second, 5*second)}, actsDiffer, "touch"},
		{"the farthest two are named", []offset{base, clock(0, write, 2*second, 2*second), clock(1, touch, 9*second, 9*second)}, routesDiffer, "contender 1"},
	} {
		v, worst := judgeClocks(c.all)
		if v.kind != c.kind || !strings.Contains(v.sentence, c.says) {
			t.Errorf("%s: %+v, want %q", c.what, v, c.kind)
		}
		if v.kind != "" && worst[0] == worst[1] {
			t.Errorf("%s: no two clocks: %v", c.what, worst)
		}
	}
}

// The clocks of two routes are compared by this host's: if that is set after the first route, they seem to differ.
func TestNoClocksAreComparedByOneThatWasSet(t *testing.T) {
	first, second := stamped(touch, 0, 0, 0), stamped(touch, 5000, 5000, 5000)
	for i := range second {
		s := &second[i]
		s.Before, s.After, s.Mtime = s.Before-5000*ms, s.After-5000*ms, s.Mtime-5000*ms
	}
	clocks, e := []offset{offsetOf(0, touch, first), offsetOf(1, touch, second)}, newEvidence("clocks")
	clocks[1].low, clocks[1].high = 5000*ms, 5000*ms
	(&Bench{}).compare(e, clocks, append(first, second...))
	if e.violations > 0 || e.failed != 1 || e.notes[clockWasSet] != 1 {
		t.Errorf("%+v", e)
	}
}

func TestTheFirstClockThatIsKnownIsTold(t *testing.T) {
	f := result.Finding{Verdict: result.Unproven, Figures: map[string]float64{}}
	tellSkew(&f, []offset{{low: -oneHour}}, 0)
	if _, ok := f.Figures["skew_us"]; ok || len(f.Warnings) > 0 {
		t.Errorf("of a clock that is not known: %v %q", f.Figures, f.Warnings)
	}
	tellSkew(&f, []offset{{low: -oneHour}, {who: 1, low: 2000, high: 4000, known: true}}, 0)
	if f.Figures["skew_us"] != 3 || len(f.Warnings) > 0 {
		t.Errorf("%v %q", f.Figures, f.Warnings)
	}
}

func TestAnAgeIsWrongByTheStepAndByTheDifferenceOfClocks(t *testing.T) {
	ticking := stepping(create, 10*time.Millisecond, time.Millisecond, 100*time.Millisecond)
	if got := ageError(ticking); got < 9*ms || got > 10*ms {
		t.Errorf("a tick of 10 ms: %s", span(got))
	}
	ahead := stamped(touch, 5000, 5000, 5000, 5000)
	if got := ageError(append(ticking, ahead...)); got < 5000*ms || got > 5011*ms {
		t.Errorf("and a touch that is 5 s ahead: %s", span(got))
	}
	slow := stamped(touch, 0, 0, 0, 0)
	slow[3].After += oneHour
	if got := ageError(slow); got > 10 {
		t.Errorf("an act that was interrupted counts: %s", span(got))
	}
	if got := ageError(nil); got != 0 {
		t.Errorf("no stamps: %d", got)
	}
}

// The files of two hosts are stamped by one clock, and the hosts' own clocks are three seconds apart.
func TestTheClocksOfHostsAreNotOnTrial(t *testing.T) {
	first, second := stamped(touch, 5, 5, 5), stamped(touch, 5, 5, 5)
	for i := range second {
		s := &second[i]
		s.Before, s.After = s.Before+3000*ms, s.After+3000*ms // what is left is one clock
	}
	a, b := offsetOf(0, touch, first), offsetOf(1, touch, second)
	if most, _ := farthest([]offset{a, b}); most < 2000*ms {
		t.Fatalf("they seem to be %s apart", span(most))
	}
	others := []offset{b}
	if ahead := readAs(first, second, others); ahead < 2999*ms || ahead > 3001*ms {
		t.Errorf("the second host's clock is ahead by %s", span(ahead))
	}
	e := newEvidence("clocks")
	(&Bench{}).compare(e, append(others, a), append(slices.Clone(first), second...))
	if e.violations > 0 || e.failed > 0 {
		t.Errorf("%+v", e)
	}
	if wrong := ageError(append(first, second...)); wrong > 10*ms {
		t.Errorf("an age is wrong by %s", span(wrong))
	}
	f := result.Finding{Figures: map[string]float64{}}
	if tellHost(&f, "beta", 1, 3000*ms); f.Figures["route_1_host_ahead_us"] != 3e6 || len(f.Warnings) != 1 {
		t.Errorf("%v %q", f.Figures, f.Warnings)
	}
}
