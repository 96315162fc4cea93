// Package stat is the statistics of a survey: bounds on the rate of something counted, and the middle and the
// tail of something timed, each with the uncertainty that the sample leaves. It reads nothing and writes
// nothing, and no result is NaN, because a result file cannot hold one.
package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Upper95 is the one-sided 95 % Clopper-Pearson upper bound on the rate of violation, after so many
// violations in n independent rounds: with the bound as the true rate, so few violations are seen with a
// probability of 5 %. For none in n it is about 3/n. No rounds, or counts that make no sense, prove nothing:
// the bound is 1.
func Upper95(violations, n int) float64 {
	if violations < 0 || violations >= n {
		return 1
	}
	return distuv.Beta{Alpha: float64(violations) + 1, Beta: float64(n - violations)}.Quantile(0.95)
}

// Wilson is the two-sided 95 % Wilson score interval of a rate of which x in n were seen. No trials, or counts
// that make no sense, leave every rate open: 0 to 1.
func Wilson(x, n int) (lo, hi float64) {
	if n <= 0 || x < 0 || x > n {
		return 0, 1
	}
	z := distuv.UnitNormal.Quantile(0.975)
	seen, trials := float64(x)/float64(n), float64(n)
	centre := seen + z*z/(2*trials)
	width := z * math.Sqrt(seen*(1-seen)/trials+z*z/(4*trials*trials))
	scale := 1 + z*z/trials
	lo, hi = (centre-width)/scale, (centre+width)/scale
	// At the ends centre and width cancel exactly on paper only.
	if x == 0 {
		lo = 0
	}
	if x == n {
		hi = 1
	}
	return lo, hi
}
