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
	if f := fitClock(nil); f.known || f.unsure(0) < 1e18 {
		t.Errorf("%+v", f)
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
