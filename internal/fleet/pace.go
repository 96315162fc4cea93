package fleet

import (
	"math"
	"slices"
	"time"
)

// A pace is how the rounds of a race are placed: how far ahead a start is announced, how many rounds there are to a batch,
// and how much later each route starts than the others. It adapts after every batch.
type pace struct {
	lead    int64   // from the announcement of a start to the start, ns
	width   int64   // of the operation, ns
	size    int     // rounds in the next batch
	offsets []int64 // of each route's start, ns; the earliest is 0
	gain    []float64
	excess  []float64 // of each route's wins over its share, in the last batch
}

const (
	leastLead  = int64(200 * time.Microsecond)
	mostLead   = int64(20 * time.Millisecond)
	mostOffset = int64(100 * time.Millisecond)
	batchSpan  = time.Second
	firstBatch = 16
	coldBatch  = 8
	mostRounds = 256
	leastWidth = 1000 // ns
	firstWidth = 20000
)

// newPace begins with twice the time that a message took both ways.
func newPace(routes int, trip time.Duration) *pace {
	p := &pace{
		lead: max(leastLead, 2*int64(trip)), width: firstWidth, size: firstBatch,
		offsets: make([]int64, routes), gain: make([]float64, routes), excess: make([]float64, routes),
	}
	for i := range p.gain {
		p.gain[i] = 0.5
	}
	return p
}

// A report is what a batch was like.
type report struct {
	rounds int
	took   time.Duration
	late   int   // starts that one contender heard of too late, at most
	wins   []int // by route
	widths []int64
}

// after adapts to a batch of tight rounds.
func (p *pace) after(r *report, bound int) {
	switch share := float64(r.late) / float64(max(1, r.rounds)); {
	case share > 0.1:
		p.lead = max(p.lead, min(p.lead*3/2, mostLead)) // a first lead may be longer
	case share < 0.02:
		p.lead = max(p.lead*15/16, leastLead)
	}
	each := max(r.took/time.Duration(max(1, r.rounds)), 1)
	p.size = max(8, min(bound, mostRounds, int(batchSpan/each), 4*p.size))
	if len(r.widths) > 0 {
		slices.Sort(r.widths)
		p.width = max(leastWidth, r.widths[len(r.widths)/10])
	}
	p.steer(r.wins)
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
		p.offsets[i] = min(p.offsets[i]-least, mostOffset)
	}
}
