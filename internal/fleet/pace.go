package fleet

import (
	"math"
	"slices"
	"time"
)

// A pace is how the rounds of a race are placed: how far apart they are, how many there are to a batch, and how much
// later each route starts than the others. It adapts after every batch.
type pace struct {
	step    int64   // from one start to the next, ns
	width   int64   // of the operation, ns
	size    int     // rounds in the next batch
	offsets []int64 // of each route's start, ns; the earliest is 0
	gain    []float64
	excess  []float64 // of each route's wins over its share, in the last batch
}

const (
	leastStep  = int64(300 * time.Microsecond)
	firstStep  = int64(2 * time.Millisecond)
	mostStep   = int64(500 * time.Millisecond)
	batchSpan  = int64(200 * time.Millisecond)
	firstBatch = 16
	coldBatch  = 8
	mostRounds = 256
	leastWidth = 1000 // ns
	firstWidth = 20000
)

func newPace(routes int) *pace {
	p := &pace{step: firstStep, width: firstWidth, size: firstBatch, offsets: make([]int64, routes), gain: make([]float64, routes), excess: make([]float64, routes)}
	for i := range p.gain {
		p.gain[i] = 0.5
	}
	return p
}

// A report is what a batch was like.
type report struct {
	rounds int
	late   int   // rounds in which somebody started, or was prepared, too late
	wins   []int // by route
	widths []int64
}

// after adapts to a batch of tight rounds.
func (p *pace) after(r *report, bound int) {
	p.places(r, bound)
	if len(r.widths) > 0 {
		slices.Sort(r.widths)
		p.width = max(leastWidth, r.widths[len(r.widths)/10])
	}
	p.steer(r.wins)
}

// places makes room between rounds where somebody was late, and takes a little back where nobody was.
func (p *pace) places(r *report, bound int) {
	switch share := float64(r.late) / float64(max(1, r.rounds)); {
	case share > 0.1:
		p.step = p.step * 3 / 2
	case share < 0.02:
		p.step = p.step * 15 / 16
	}
	p.step = min(max(p.step, leastStep, 2*slices.Max(p.offsets), 2*p.width), mostStep)
	p.size = max(4, min(bound, mostRounds, int(batchSpan/p.step), 4*p.size))
}

// steer starts a route later that won more than its share. A route that stays ahead is moved by more each time; one that
// was moved too far comes back by half.
func (p *pace) steer(wins []int) {
	total := 0
	for _, w := range wins {
		total += w
	}
	if total == 0 {
		return
	}
	for i := range p.offsets {
		excess := float64(wins[i])/float64(total) - 1/float64(len(wins))
		if excess*p.excess[i] > 0 {
			p.gain[i] = min(p.gain[i]*1.3, 4)
		} else {
			p.gain[i] = max(p.gain[i]/2, 0.1)
		}
		p.excess[i] = excess
		p.offsets[i] += int64(math.Round(excess * p.gain[i] * float64(p.width)))
	}
	least := slices.Min(p.offsets)
	for i := range p.offsets {
		p.offsets[i] = min(p.offsets[i]-least, mostStep/4)
	}
}
