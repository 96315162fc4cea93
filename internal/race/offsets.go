package race

import "slices"

// startOffset is when this contender starts, relative to the agreed instant of the round, in nanoseconds. It is a
// pure function of the job and the round, so that a run can be repeated from its seed.
//
// In a tight round contenders start at their steered offset plus a jitter. In a scan the leader of one lane
// sweeps from one operation's width before the others to one after them; the lanes take turns.
func (j *job) startOffset(r *runner, number int64) int64 {
	switch {
	case j.phase == Tight:
		return j.offset + int64(mix(j.seed, uint64(number), uint64(r.id))%uint64(j.jitter+1))
	case j.phase == Scan:
		step, lane := number%scanSteps, int(number/scanSteps)%r.lanes
		if lane == r.lane {
			return j.offset + 2*j.width*step/(scanSteps-1)
		}
		return j.offset + j.width
	}
	return 0
}

// scanSteps is how many alignments of two attempts a scan visits per sweep.
const scanSteps = 32

// steer moves the offsets after a tight batch: who wins more than its share starts later. The earliest start is
// always 0. Where the last offsets have cost contention, they are halved: a contender whose operation takes long, as
// over a slow route, may be started far ahead of the others, but one that is done before they begin races nobody.
func steer(offsets []int64, wins []int, width int64, contested float64) {
	if contested < enoughContested {
		for i := range offsets {
			offsets[i] /= 2
		}
		return
	}
	total := 0
	for _, w := range wins {
		total += w
	}
	if total == 0 {
		return
	}
	for i := range offsets {
		excess := float64(wins[i])/float64(total) - 1/float64(len(wins))
		offsets[i] += int64(excess * float64(width) / 2)
	}
	least := slices.Min(offsets)
	for i := range offsets {
		offsets[i] -= least
	}
}

// enoughContested is the share of contested rounds under which offsets go back.
const enoughContested = 0.9

// mix is a hash of three words (the finaliser of SplitMix64): the jitter must be the same for the same seed.
func mix(a, b, c uint64) uint64 {
	x := a ^ b*0x9e3779b97f4a7c15 ^ c*0xc2b2ae3d27d4eb4f
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
