package fleet

import (
	"math/rand/v2"
	"testing"
)

// A reading is a sample, and the coordinator's instant at which the host really read its clock.
type reading struct {
	sample
	there int64
}

const firstSent = int64(1e12)

// readings are of a clock that is behind the coordinator's by what off says. The two ways are never equally long: the
// shortest there takes 50 µs, the shortest back 17 µs, and each up to 100 µs more.
func readings(n int, every int64, off func(there int64) int64) []reading {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []reading
	for i := range int64(n) {
		sent := firstSent + i*every
		there := sent + 50e3 + rng.Int64N(100e3)
		back := there + 17e3 + rng.Int64N(100e3)
		all = append(all, reading{sample{sent, back, there - off(there)}, there})
	}
	return all
}

func fitOf(all []reading) fit {
	var samples []sample
	for i := range all {
		samples = append(samples, all[i].sample)
	}
	return fitClock(samples)
}

// wronglySure reports a reading at which the fit is further off than it says.
func wronglySure(t *testing.T, what string, f fit, all []reading) {
	t.Helper()
	for i := range all {
		wrong := f.clock.Correct(all[i].theirs) - all[i].there
		if unsure := f.unsure(all[i].theirs); wrong > unsure || -wrong > unsure {
			t.Errorf("%s: at reading %d wrong by %d ns, and sure to %d", what, i, wrong, unsure)
			return
		}
	}
}

func steady(offset int64, drift float64) func(int64) int64 {
	return func(there int64) int64 { return offset + int64(drift*float64(there-firstSent)) }
}

// slewed is steady until an instant, and drifts otherwise from then on.
func slewed(from int64, by float64) func(int64) int64 {
	return func(there int64) int64 { return 1e6 + int64(by*float64(max(0, there-from))) }
}

// A fit is made of the first readings, and must be right about the later ones as well.
func TestAFittedClockIsWithinItsUncertainty(t *testing.T) {
	const later = 8
	for _, c := range []struct {
		name  string
		off   func(int64) int64
		n     int
		every int64
		sure  float64 // ns, two seconds after the last sample
	}{
		{"one sample", steady(5e9, 0), 1, 250e6, 140e3 + mostDrift*2.1e9},
		{"a burst", steady(-3e9, 0), 40, 1e6, 75e3 + mostDrift*2.1e9},
		{"far off", steady(7e17, 0), 40, 1e6, 75e3 + mostDrift*2.1e9},
		{"a minute, no drift", steady(1e6, 0), 240, 250e6, 95e3},
		{"a minute, 40 ppm", steady(1e6, 40e-6), 240, 250e6, 95e3},
		{"a minute, -300 ppm", steady(-1e9, -300e-6), 240, 250e6, 95e3},
		{"two minutes, 500 ppm", steady(-1e9, 500e-6), 512, 250e6, 95e3},
		{"a drift that changes a little", slewed(firstSent+30e9, wander), 240, 250e6, 95e3},
	} {
		all := readings(c.n+later, c.every, c.off)
		f := fitOf(all[:c.n])
		wronglySure(t, c.name, f, all)
		last := all[c.n-1]
		if unsure := f.unsure(last.theirs); unsure > (last.back-last.sent)/2+10 {
			t.Errorf("%s: unsure by %d ns, and the last sample alone says more", c.name, unsure)
		}
		if unsure := f.unsure(last.theirs + 2e9); float64(unsure) > c.sure {
			t.Errorf("%s: unsure by %d ns two seconds later", c.name, unsure)
		}
	}
}

func TestASlewedClockIsNotTakenForALine(t *testing.T) {
	for _, by := range []float64{20e-6, -20e-6, 100e-6, -500e-6} {
		all := readings(248, 250e6, slewed(firstSent+30e9, by))
		f := fitOf(all[:240])
		wronglySure(t, "slewed", f, all)
		last := all[239]
		if narrow := f.unsure(last.theirs + 1e9); float64(narrow) < mostDrift/2*1e9 {
			t.Errorf("slewed by %v: a second later sure to %d ns, as if it were a line", by, narrow)
		}
	}
}

func TestAStepIsForgottenOnceTheClockHasSettled(t *testing.T) {
	for _, step := range []int64{2e9, -2e9, 5e6} {
		off := func(there int64) int64 {
			if there < firstSent+15e9 {
				return 1e6
			}
			return 1e6 + step
		}
		all := readings(120, 250e6, off) // the step is before reading 60
		if f := fitOf(all[:64]); f.unsure(all[63].theirs) < unknown {
			t.Errorf("step %d: sure to %d ns after four samples", step, f.unsure(all[63].theirs))
		}
		f := fitOf(all[:112])
		wronglySure(t, "after a step", f, all[60:])
		if unsure := f.unsure(all[111].theirs); unsure > 140e3 {
			t.Errorf("step %d: unsure by %d ns", step, unsure)
		}
	}
}

func TestOfAClockThatRunsAwayNothingIsKnown(t *testing.T) {
	all := readings(40, 250e6, steady(0, 5e-3))
	if f := fitOf(all); f.unsure(all[39].theirs) < unknown {
		t.Errorf("sure to %d ns", f.unsure(all[39].theirs))
	}
	if f := fitClock(nil); f.unsure(0) < unknown {
		t.Errorf("without samples sure to %d ns", f.unsure(0))
	}
}

// Any line that no sample rules out may be the clock: none may be further off than what is said.
func TestNoLineThatIsAllowedIsFurtherOff(t *testing.T) {
	const drift = 40e-6
	all := readings(240, 250e6, steady(1e6, drift))
	f, last := fitOf(all), all[239]
	base := last.there - last.theirs
	rng := rand.New(rand.NewPCG(3, 4))
	tried, allowed := 200000, 0
	for range tried {
		l := line{rng.NormFloat64() * 50e3, drift + rng.NormFloat64()*2e-6}
		if !allows(all, last, base, l) {
			continue
		}
		allowed++
		for _, x := range []int64{-60e9, -1e9, 0, 1e9, 2e9} {
			is := float64(f.clock.Correct(last.theirs+x) - (last.theirs + x) - base)
			if d := l.at(float64(x)) - is; max(d, -d) > float64(f.unsure(last.theirs+x)) {
				t.Fatalf("%+v is %v ns off after %d ns, and the fit is sure to %d", l, d, x, f.unsure(last.theirs+x))
			}
		}
	}
	if allowed < 100 || allowed == tried {
		t.Errorf("%d of %d lines are allowed: nothing was tried", allowed, tried)
	}
}

func allows(all []reading, last reading, base int64, l line) bool {
	for i := range all {
		is := l.at(float64(all[i].theirs - last.theirs))
		if least, most := all[i].allows(base); is < least || is > most {
			return false
		}
	}
	return true
}

func TestWhatIsNotKnownGrowsDuringABatch(t *testing.T) {
	growing := func(number int) fit { return fit{number: number, unsure: func(at int64) int64 { return at / 1000 }} }
	c := &contest{field: &field{fits: []fit{growing(1), growing(1), growing(2)}}, who: []int{0, 1, 2}}
	doubt := c.doubts(1000, 5000, make([]bool, 3))
	if same, other := doubt(0, 1), doubt(1, 2); same != 0 || other != 10 {
		t.Errorf("within one clock %d, want 0; between two %d, want 10", same, other)
	}
	doubt = c.doubts(1000, 5000, []bool{false, false, true})
	if same, other := doubt(0, 1), doubt(1, 2); same != 0 || other < unknown {
		t.Errorf("within one clock %d, want 0; with one that moved %d", same, other)
	}
}

// A batch is judged by what was known before it. What is known after it tells whether that was still so at its end.
func TestAClockThatMovesDuringABatchIsNoticed(t *testing.T) {
	for _, c := range []struct {
		name string
		step int64 // after two thirds of the readings, of 30 s
		want bool
	}{
		{"none", 0, false},
		{"less than can be known", 20e3, false},
		{"suspended for a second", 1e9, true},
		{"set back", -5e6, true},
	} {
		all := readings(120, 250e6, func(there int64) int64 {
			if there < firstSent+20e9 {
				return 1e6
			}
			return 1e6 + c.step
		})
		before := fitOf(all[:80])
		for _, after := range []int{81, 119} { // soon, and when the new clock is known
			now := fitOf(all[:after+1])
			if got := before.contradicts(&now, all[after].there); got != c.want {
				t.Errorf("%s: after reading %d %v, want %v", c.name, after, got, c.want)
			}
		}
	}
}
