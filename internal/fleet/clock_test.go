package fleet

import (
	"math/rand/v2"
	"testing"
)

// trips makes samples of a host's clock that is off by offset and drifts, over ways of uneven length.
func trips(offset int64, drift float64, n int, every, least, noise int64) []sample {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []sample
	for i := range int64(n) {
		sent := 1e12 + i*every
		there := sent + least + rng.Int64N(noise)
		back := there + least/3 + rng.Int64N(noise) // the ways differ
		theirs := there - offset - int64(drift*float64(there-1e12))
		all = append(all, sample{sent, back, theirs})
	}
	return all
}

func TestAFittedClockIsWithinItsUncertainty(t *testing.T) {
	for _, c := range []struct {
		name   string
		offset int64
		drift  float64
		n      int
		every  int64
	}{
		{"one sample", 5e9, 0, 1, 1e6},
		{"a burst", -3e9, 0, 40, 1e6},
		{"far off", 7e17, 0, 40, 1e6},
		{"a minute, no drift", 1e6, 0, 120, 5e8},
		{"a minute, 40 ppm", 1e6, 40e-6, 120, 5e8},
		{"a minute, -300 ppm", -1e9, -300e-6, 120, 5e8},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := trips(c.offset, c.drift, c.n, c.every, 150e3, 300e3)
			f := fitClock(all)
			last := all[len(all)-1]
			for _, later := range []int64{0, 1e9, 2e9} {
				there := last.sent + 200e3 + later
				theirs := there - c.offset - int64(c.drift*float64(there-1e12))
				wrong := f.clock.Correct(theirs) - there
				if unsure := f.unsure(theirs); wrong > unsure || -wrong > unsure {
					t.Errorf("%v later: wrong by %d ns, and sure to %d", later, wrong, unsure)
				}
				if unsure := f.unsure(theirs); c.n > 30 && unsure > 400e3+int64(blindDrift*float64(later)) {
					t.Errorf("%v later: unsure by %d ns", later, unsure)
				}
			}
		})
	}
}

func TestWithoutSamplesNothingIsKnown(t *testing.T) {
	if f := fitClock(nil); f.unsure(0) < 1e18 {
		t.Errorf("sure to %d ns", f.unsure(0))
	}
}

func TestADriftIsFittedWhenThereIsTimeEnough(t *testing.T) {
	f := fitClock(trips(1e6, 40e-6, 120, 5e8, 150e3, 300e3))
	if ppm := float64(f.clock.Drift) / (1 << 40) * 1e6; ppm < 30 || ppm > 50 {
		t.Errorf("%v ppm", ppm)
	}
	if f := fitClock(trips(1e6, 40e-6, 40, 1e6, 150e3, 300e3)); f.clock.Drift != 0 {
		t.Error("40 ms show no drift")
	}
}

// A clock that is slewed in the middle is no line. What it is off by at the end must be within what is said of it.
func TestAClockThatIsSlewedIsNotTrustedAsALine(t *testing.T) {
	for _, drift := range []float64{100e-6, -500e-6} {
		all := trips(1e6, 0, 240, 25e7, 50e3, 100e3)
		bend := all[120].theirs
		off := func(theirs int64) int64 { return int64(drift * float64(max(0, theirs-bend))) }
		for i := range all {
			all[i].theirs -= off(all[i].theirs)
		}
		f := fitClock(all)
		for _, i := range []int{60, 120, 180, 239} {
			s := &all[i]
			wrong := float64(f.clock.Correct(s.theirs)) - float64(s.theirs) - s.middle()
			wrong = max(wrong, -wrong) - float64(s.trip())/2 // at least
			if unsure := float64(f.unsure(s.theirs)); wrong > unsure {
				t.Errorf("slewed by %v: wrong by %v µs at least at sample %d, and sure to %v µs", drift, wrong/1e3, i, unsure/1e3)
			}
		}
	}
}

func TestAHostThatWasSuspendedIsMeasuredAfresh(t *testing.T) {
	all := trips(1e6, 0, 60, 25e7, 50e3, 100e3)
	for i := range all[30:] {
		all[30+i].theirs -= 2e9 // its clock stood still for so long
	}
	k := &kernel{}
	for _, s := range all {
		k.add(s)
	}
	f, last := k.current(), all[59]
	wrong := float64(f.clock.Correct(last.theirs)-last.theirs) - last.middle()
	if wrong = max(wrong, -wrong) - float64(last.trip())/2; wrong > float64(f.unsure(last.theirs)) || f.unsure(last.theirs) > 1e6 {
		t.Errorf("wrong by %v ns at least, and sure to %d", wrong, f.unsure(last.theirs))
	}
	if len(k.samples) != 30 {
		t.Errorf("%d samples are left of the 30 since then", len(k.samples))
	}
}

func TestWhatIsNotKnownGrowsDuringABatch(t *testing.T) {
	growing := func(number int) fit { return fit{number: number, unsure: func(at int64) int64 { return at / 1000 }} }
	c := &contest{field: &field{fits: []fit{growing(1), growing(1), growing(2)}}, who: []int{0, 1, 2}}
	doubt := c.doubts(1000, 5000)
	if same, other := doubt(0, 1), doubt(1, 2); same != 0 || other != 10 {
		t.Errorf("within one clock %d, want 0; between two %d, want 10", same, other)
	}
}
