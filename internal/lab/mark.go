package lab

import (
	"math"
	"slices"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
)

// mark says of each trial whether a fault overlapped it, and how long after the faults something was done again. It is
// pure.
func mark(t *result.Target, faults []result.Fault) {
	t.Faults = faults
	for i := range t.Bench {
		b := &t.Bench[i]
		b.UnderFault = 0
		for j := range b.Times {
			trial := &b.Times[j]
			trial.UnderFault = slices.ContainsFunc(faults, func(f result.Fault) bool { return overlaps(trial, f) })
			if trial.UnderFault {
				b.UnderFault++
			}
		}
		if b.Workload == "storm" { // in others a key waits for a lease to expire, fault or not
			b.RecoveryMS = recovery(b.Times, faults)
		}
	}
}

func overlaps(trial *result.TrialTime, f result.Fault) bool {
	return trial.Begin <= ended(f) && trial.End >= f.Begin
}

// ended is when a fault was over; one that lasted never was.
func ended(f result.Fault) int64 {
	if f.End == 0 {
		return math.MaxInt64
	}
	return f.End
}

// recovery is the distribution of the time from the end of a fault to the first key that was done after it. Of a trial
// that was not under way then, or had a key done before, it says nothing.
func recovery(trials []result.TrialTime, faults []result.Fault) *result.Latency {
	var took []float64
	for _, f := range faults {
		first := int64(math.MaxInt64)
		for i := range trials {
			if t := &trials[i]; t.Begin <= f.End && t.Done > f.End {
				first = min(first, t.Done)
			}
		}
		if f.End != 0 && first != math.MaxInt64 {
			took = append(took, float64(first-f.End)/1e6)
		}
	}
	if len(took) == 0 {
		return nil
	}
	p50, _, _, _ := stat.Median(took)
	return &result.Latency{N: len(took), P50: p50, Max: slices.Max(took), Samples: took}
}
