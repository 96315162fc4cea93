package fleet

import (
	"math"

	"github.com/claimbench/claimbench/internal/race"
)

// A sample is one round trip: the host read its clock at an instant between two of the coordinator's. All in ns.
type sample struct {
	sent, back int64 // coordinator
	theirs     int64 // host
}

// allows is what the coordinator's clock less the host's may have been at that instant, less base: whatever way took
// longer, it was nothing else.
func (s sample) allows(base int64) (least, most float64) {
	return float64(s.sent - s.theirs - base - 1), float64(s.back - s.theirs - base + 1)
}

const (
	keptSamples = 512
	mostDrift   = 600e-6 // the kernel slews by 500e-6 at most for NTP (adjtimex(2)); crystals differ by less than the rest
	wander      = 1e-6   // by how much the drift of a clock that nobody slews may change while samples are kept
	settled     = 2e9    // ns after a step: by then a clock that was set is told from one that keeps running away
	horizon     = 2e9    // ns after the last sample, for which the line is made
	unknown     = math.MaxInt64 / 4
)

// A fit is a host's clock as a line, and how wrong it may be.
type fit struct {
	number int // no two fits have the same, but for those of the coordinator's own clock: 0
	clock  race.Clock
	unsure func(at int64) int64 // at an instant of the host's clock, ns
}

// doubt is how wrong it may be at an instant of the coordinator's clock.
func (f *fit) doubt(at int64) int64 { return f.unsure(at - f.clock.Offset) }

// contradicts says that no clock is what both fits say of an instant of the coordinator's.
func (f *fit) contradicts(g *fit, at int64) bool {
	theirs := at - f.clock.Offset
	apart := f.clock.Correct(theirs) - g.clock.Correct(theirs)
	return g.unsure(theirs) >= unknown || max(apart, -apart) > f.unsure(theirs)+g.unsure(theirs)
}

// fitClock goes by all lines that no sample rules out, and takes the middle of where they may be: whichever of them is
// the clock, it is not further off than the outermost. If every line is ruled out the clock was slewed, and is taken for
// one that strays by mostDrift.
func fitClock(all []sample) fit {
	nothing := fit{unsure: func(int64) int64 { return unknown }}
	if all = sinceStep(all); len(all) == 0 {
		return nothing
	}
	last := all[len(all)-1]
	base, strays := last.sent-last.theirs, wander
	lines := feasible(all, base, mostDrift, strays)
	if len(lines) == 0 {
		strays = mostDrift
		if lines = feasible(all, base, 0, strays); len(lines) == 0 { // a host that tells impossible times
			return nothing
		}
	}
	bounds := func(x float64) (least, most float64) { // of the offset, less base, x ns after the last sample
		least, most = math.Inf(1), math.Inf(-1)
		for _, l := range lines {
			least, most = min(least, l.at(x)), max(most, l.at(x))
		}
		return least - strays*math.Abs(x), most + strays*math.Abs(x)
	}
	least, most := bounds(0)
	leastThen, mostThen := bounds(horizon)
	middle := (least + most) / 2
	slope := ((leastThen+mostThen)/2 - middle) / horizon
	return fit{
		clock: race.Clock{At: last.theirs, Offset: base + int64(math.Round(middle)), Drift: int64(math.Round(slope * (1 << 40)))},
		unsure: func(t int64) int64 {
			x := float64(t - last.theirs)
			least, most := bounds(x)
			return int64(max(most-middle-slope*x, middle+slope*x-least)) + 4 // Correct rounds
		},
	}
}

// A line is the offset at the last sample, less base, and the drift.
type line struct{ offset, drift float64 }

func (l line) at(x float64) float64 { return l.offset + l.drift*x }

// feasible are the corners of the lines that no sample rules out: a convex polygon, from which each sample cuts off two
// sides. An old sample says less, by how far the clock may have strayed from a line since.
func feasible(all []sample, base int64, drift, strays float64) []line {
	last := all[len(all)-1]
	least, most := last.allows(base)
	lines := []line{{least, -drift}, {most, -drift}, {most, drift}, {least, drift}}
	for _, s := range all {
		x := float64(s.theirs - last.theirs)
		least, most := s.allows(base)
		by := strays * math.Abs(x)
		lines = clip(lines, func(l line) float64 { return least - by - l.at(x) })
		lines = clip(lines, func(l line) float64 { return l.at(x) - most - by })
	}
	return lines
}

// clip leaves of a convex polygon what is not beyond an edge.
func clip(lines []line, beyond func(line) float64) []line {
	var left []line
	for i, l := range lines {
		next := lines[(i+1)%len(lines)]
		here, there := beyond(l), beyond(next)
		if here <= 0 {
			left = append(left, l)
		}
		if here*there < 0 {
			part := here / (here - there)
			left = append(left, line{l.offset + part*(next.offset-l.offset), l.drift + part*(next.drift-l.drift)})
		}
	}
	return left
}

// sinceStep leaves out what came before a step, which no clock makes that is only slewed: the host was suspended, and
// its clock stood still. It leaves nothing until what came since spans enough.
func sinceStep(all []sample) []sample {
	if len(all) == 0 {
		return nil
	}
	last := all[len(all)-1]
	base := last.sent - last.theirs
	least, most := last.allows(base)
	for i := len(all) - 2; i >= 0; i-- {
		grown := mostDrift * math.Abs(float64(all[i+1].theirs-all[i].theirs))
		lo, hi := all[i].allows(base)
		if least, most = max(least-grown, lo), min(most+grown, hi); least <= most {
			continue
		}
		if last.theirs-all[i+1].theirs < settled {
			return nil
		}
		return all[i+1:]
	}
	return all
}
