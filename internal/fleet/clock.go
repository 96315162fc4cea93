package fleet

import (
	"cmp"
	"math"
	"slices"

	"github.com/claimbench/claimbench/internal/race"
)

// A sample is one round trip: the host read its clock at an instant between two of the coordinator's. All in ns.
type sample struct {
	sent, back int64 // coordinator
	theirs     int64 // host
}

func (s sample) trip() int64 { return s.back - s.sent }

// middle is the coordinator's clock less the host's, if both ways took equally long; it is wrong by half a trip at most.
func (s sample) middle() float64 { return float64(s.sent) + float64(s.trip())/2 - float64(s.theirs) }

const (
	keptSamples = 512
	fitFrom     = 5e9    // ns that samples must span for a drift to be told from their noise
	driftDoubt  = 1e-6   // by how much a drift that was fitted may change
	blindDrift  = 100e-6 // one that was not; NTP slews by 500e-6 at most, and seldom
	mostDrift   = 1e-3
)

// A fit is a host's clock as a line, and how wrong it may be.
type fit struct {
	number int // no two fits have the same, but for those of the coordinator's own clock: 0
	clock  race.Clock
	unsure func(at int64) int64 // at an instant of the host's clock, ns
}

// doubt is how wrong it may be at an instant of the coordinator's clock.
func (f *fit) doubt(at int64) int64 { return f.unsure(at - f.clock.Offset) }

// fitClock fits the best quarter of the samples: those whose trips were the shortest, which say most.
//
// Every sample bounds the true offset at its instant, whatever way took longer: it is within half a trip of the
// middle. So the line is wrong, at that instant, by no more than its distance from the middle and half the trip; and at
// another by what the clocks may have drifted since. The least of these bounds is the uncertainty. Nothing about the
// symmetry of the two ways is assumed.
//
// A clock that is slewed is no line, and the bounds of earlier instants rest on its being one. By as much as the line
// leaves what some sample allows it is proven wrong there, and that much is added everywhere.
func fitClock(all []sample) fit {
	if len(all) == 0 {
		return fit{unsure: func(int64) int64 { return math.MaxInt64 / 4 }}
	}
	best := slices.Clone(all)
	slices.SortFunc(best, func(a, b sample) int { return cmp.Compare(a.trip(), b.trip()) })
	best = best[:max(1, (len(best)+3)/4)]
	at, offset, slope := line(best)
	doubt := blindDrift
	if slope != 0 { // the noise of the middles, over the time between them, is what the slope may be wrong by
		doubt = driftDoubt + float64(best[len(best)/2].trip())/float64(spanOf(best))
	}
	type bound struct{ at, by int64 }
	off := func(s sample) int64 { return int64(math.Abs(offset + slope*float64(s.theirs-at) - s.middle())) }
	var bounds []bound
	for _, s := range best {
		bounds = append(bounds, bound{s.theirs, off(s) + s.trip()/2 + 1})
	}
	proven := int64(0)
	for _, s := range all {
		proven = max(proven, off(s)-s.trip()/2)
	}
	return fit{
		clock: race.Clock{At: at, Offset: int64(math.Round(offset)), Drift: int64(math.Round(slope * (1 << 40)))},
		unsure: func(t int64) int64 {
			least := int64(math.MaxInt64 / 4)
			for _, b := range bounds {
				least = min(least, b.by+int64(doubt*math.Abs(float64(t-b.at))))
			}
			return least + proven
		},
	}
}

// line is the least-squares line through the middles; level where the samples span too little. at is the mean instant.
func line(all []sample) (at int64, offset, slope float64) {
	base := all[0].middle()
	var sumX, sumY, n float64
	for _, s := range all {
		sumX += float64(s.theirs - all[0].theirs)
		sumY += s.middle() - base
		n++
	}
	at, offset = all[0].theirs+int64(sumX/n), base+sumY/n
	if spanOf(all) < fitFrom || n < 8 {
		return at, offset, 0
	}
	var xx, xy float64
	for _, s := range all {
		x := float64(s.theirs - at)
		xx += x * x
		xy += x * (s.middle() - offset)
	}
	return at, offset, min(max(xy/xx, -mostDrift), mostDrift)
}

// jumped says that no clock that is only slewed gives these two samples, one after the other: the host was suspended in
// between, and its clock stood still.
func jumped(a, b sample) bool {
	apart := math.Abs(a.middle()-b.middle()) - float64(a.trip()+b.trip())/2
	return apart > mostDrift*float64(b.back-a.sent)
}

// spanOf is from the first instant of the samples to the last.
func spanOf(all []sample) int64 {
	first, last := all[0].theirs, all[0].theirs
	for _, s := range all {
		first, last = min(first, s.theirs), max(last, s.theirs)
	}
	return last - first
}
