package stat

import (
	"math"
	"slices"
	"sort"

	"github.com/montanaflynn/stats"
	"gonum.org/v1/gonum/stat/distuv"
)

// Median is the median of xs and a 95 % interval for the median of what xs was drawn from, whatever its
// distribution: lo and hi are themselves among xs. With fewer than six values no such interval exists; then ok
// is false, and lo and hi say nothing. Of an empty sample, or one that holds a NaN or an infinity, the median
// is 0 and ok is false.
func Median(xs []float64) (med, lo, hi float64, ok bool) {
	if len(xs) == 0 || !finite(xs) {
		return 0, 0, 0, false
	}
	sorted := slices.Sorted(slices.Values(xs))
	med, err := stats.Median(sorted)
	rank := medianRank(len(xs))
	if err != nil || rank == 0 {
		return med, 0, 0, false
	}
	return med, sorted[rank-1], sorted[len(xs)-rank], true
}

// medianRank is the largest rank k for which the k-th smallest and the k-th largest of n values enclose the
// median with a probability of 95 % or more; 0 when none does. They miss it only if fewer than k of n fair
// coins show one side: 2*P(Binomial(n, 1/2) < k) is at most 5 %.
func medianRank(n int) int {
	coins := distuv.Binomial{N: float64(n), P: 0.5}
	return sort.Search(n, func(k int) bool { return coins.CDF(float64(k)) > 0.025 })
}

// Percentile is the p-th percentile of xs by nearest rank: one of xs, never a value between two of them. ok is
// false, and v is 0, when xs cannot carry it: fewer than one value is expected beyond it, as in 99 values for
// p99 or 999 for p99.9 (or for p1 or p0.1), or xs holds a NaN or an infinity.
func Percentile(xs []float64, p float64) (v float64, ok bool) {
	n := float64(len(xs))
	below := n * p / 100
	if !(below*(1+rounding) >= 1 && below*(1-rounding) <= n-1) || !finite(xs) {
		return 0, false
	}
	// The library takes the ceiling of n*p/100, which for p99.9 of 41000 comes out above 40959.
	v, err := stats.PercentileNearestRank(xs, p*(1-rounding))
	return v, err == nil
}

// rounding is more than the relative error of n*p/100 in floating point, and far less than what tells one rank
// from the next.
const rounding = 0x1p-50

func finite(xs []float64) bool {
	return !slices.ContainsFunc(xs, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}
