package calibrate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// power is the probability with which a fault must be found.
const power = 0.95

// leastP is the smallest probability of a violation per round that n contested rounds find with 95 % power, if each
// round that is bad is seen to be so with probability seen. It is 0 where there is none, and never above 1.
func leastP(n int, seen float64) float64 {
	if n < 1 || seen <= 0 {
		return 0
	}
	if p := (1 - math.Pow(1-power, 1/float64(n))) / seen; p <= 1 {
		return p
	}
	return 0
}

// Quantile is the least value that at least the share q of the runs did not exceed; runs that did not catch anything
// exceed every value. ok is false where it is theirs.
func (s *Seen) Quantile(values []float64, q float64) (v float64, ok bool) {
	rank := int(math.Ceil(q * float64(s.Runs)))
	if rank < 1 || rank > len(values) {
		return 0, false
	}
	return slices.Sorted(slices.Values(values))[rank-1], true
}

// add counts one run.
func (s *Seen) add(caught bool, rounds int, seconds float64) {
	s.Runs++
	if !caught {
		s.Missed = append(s.Missed, float64(rounds))
		return
	}
	s.Caught++
	s.Rounds, s.Seconds = append(s.Rounds, float64(rounds)), append(s.Seconds, seconds)
}

// refuted says that so few of the runs caught what they catch with 95 % power if the figures are right, that this would
// happen once in a thousand calibrations.
func (s *Seen) refuted() bool {
	if s.Runs == 0 {
		return false
	}
	return distuv.Binomial{N: float64(s.Runs), P: power}.CDF(float64(s.Caught)) < 0.001
}
