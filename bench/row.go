package bench

import (
	"cmp"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
)

// A row gathers the trials of one protocol in one workload.
type row struct {
	result.Bench
	routes   int
	latency  *hdrhistogram.Histogram // ns, of claims that were won
	takeover *hdrhistogram.Histogram // ns
	medians  []float64               // µs, of single trials
	perKey   bool                    // each key of a directory is a trial
}

func newRow(workload, protocol, variant string) *row {
	e := entrants[entrantNamed(protocol)]
	return &row{
		Bench: result.Bench{
			Workload: workload, Protocol: protocol, Variant: variant, Settings: e.settings,
			Control: slices.Contains(controls[workload], protocol) || slices.Contains(controls[workload+" "+variant], protocol),
		},
		latency:  newHistogram(),
		takeover: newHistogram(),
	}
}

// controls are the protocols that a workload is known to break, alone or in one variant. It must show them broken, or
// else it would not have shown the others either.
var controls = map[string][]string{
	"forty":               {"unguarded", "check-then-create"},
	"storm":               {"unguarded"},
	"takeover":            {"unguarded"},
	"forced stale reader": {"excl-unlink", "flock-dir", "flock-key"},
	"forced late rename":  {"quarantine-eager"},
	"forced empty claim":  {"check-then-create", "generations/empty-is-stale"},
	"forced early reaper": {"quarantine/age-from-name", "quarantine/age-from-mtime"},
	"deaths":              {"excl"},
	"stall":               {"unguarded"},
	"unrelated":           {"flock-dir"},
}

// newHistogram holds durations of up to a minute with three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 60e9, 3) }

// add counts one trial.
func (r *row) add(keys []int, all []attempted) {
	v := judge(r.routes, keys, all)
	r.Trials++
	r.Attempts += v.attempts
	r.Expected += len(keys)
	r.Executed += v.executed
	r.Duplicates += v.duplicates
	r.Missed += v.missed
	r.Overlaps += v.overlaps
	r.Refused += v.refused
	r.Accepted += v.accepted
	if v.contested {
		r.Contested++
	}
	r.time(all)
	r.example(v.kind, v.sentence, all)
}

// example keeps the first violation, and the first duplicate rather than any other.
func (r *row) example(kind, sentence string, all []attempted) {
	if kind == "" || r.Counterexample != nil && (kind != "duplicate" || r.Counterexample.Kind == "duplicate") {
		return
	}
	x := &result.ClaimViolation{Kind: kind, Sentence: sentence, Trial: r.Trials + r.Void, Attempts: []result.Attempt{}}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b attempted) int { return cmp.Compare(executedFirst(a), executedFirst(b)) })
	for _, a := range all[:min(len(all), keptAttempts)] {
		x.Attempts = append(x.Attempts, a.Attempt)
	}
	r.Counterexample = x
}

// keptAttempts are enough to tell a violation by.
const keptAttempts = 16

func executedFirst(a attempted) int {
	if a.Began != 0 {
		return 0
	}
	return 1
}

// addEach counts each key as a trial of its own.
func (r *row) addEach(keys []int, all []attempted) {
	for _, key := range keys {
		r.add([]int{key}, slices.DeleteFunc(slices.Clone(all), func(a attempted) bool { return a.Key != key }))
	}
}

// when keeps the times of one trial, which began with the preparations for it; or of each key, if each is a trial.
func (r *row) when(keys []int, began int64, all []attempted) {
	if !r.perKey {
		r.Times = append(r.Times, during(began, all))
		return
	}
	for _, key := range keys {
		r.Times = append(r.Times, during(0, slices.DeleteFunc(slices.Clone(all), func(a attempted) bool { return a.Key != key })))
	}
}

// during is from the first attempt, if it is not known when the trial began, to the last that is known of any.
func during(began int64, all []attempted) result.TrialTime {
	t := result.TrialTime{Begin: began, End: began}
	for i := range all {
		a := &all[i]
		t.Begin = soonest(t.Begin, a.firstInvoke)
		t.End = max(t.End, a.Invoke, a.Return, a.Ended, a.Done, a.Died, a.left)
		if a.Done != 0 {
			t.Done = soonest(t.Done, a.Done)
		}
	}
	return t
}

// void counts a trial that cannot be judged.
func (r *row) void(why string) {
	r.Void++
	if !slices.Contains(r.Voided, why) && len(r.Voided) < 8 {
		r.Voided = append(r.Voided, why)
	}
}

func (r *row) time(all []attempted) {
	var won []float64
	for _, a := range all {
		if a.Began != 0 && a.Return != 0 {
			took := a.Return - a.Invoke
			record1(r.latency, took)
			won = append(won, float64(took)/1000)
		}
	}
	if median, _, _, _ := stat.Median(won); len(won) > 0 {
		r.medians = append(r.medians, median)
	}
}

// rate adds the claims per second of one trial: keys done, from the first try to the last done record.
func (r *row) rate(all []attempted) {
	first, last, done := int64(0), int64(0), 0
	for _, a := range all {
		if first == 0 || a.firstInvoke < first {
			first = a.firstInvoke
		}
		if a.Done != 0 {
			done++
		}
		last = max(last, a.Done)
	}
	if last > first {
		r.Rates = append(r.Rates, float64(done)/(float64(last-first)/1e9))
	}
}

// record1 counts what is out of the histogram's range at its end.
func record1(h *hdrhistogram.Histogram, ns int64) {
	_ = h.RecordValue(min(max(ns, 1), h.HighestTrackableValue()))
}

// finish is the row as it is kept.
func (r *row) finish() result.Bench {
	r.LatencyUS = summary(r.latency, 1e3)
	if r.LatencyUS != nil {
		r.LatencyUS.Samples = r.medians
	}
	r.TakeoverMS = summary(r.takeover, 1e6)
	r.ClaimsPerS, _, _, _ = stat.Median(r.Rates)
	return r.Bench
}

// summary leaves out the percentiles that the sample cannot carry.
func summary(h *hdrhistogram.Histogram, unit float64) *result.Latency {
	n := int(h.TotalCount())
	if n == 0 {
		return nil
	}
	at := func(p float64) float64 { return float64(h.ValueAtPercentile(p)) / unit }
	l := &result.Latency{N: n, P50: at(50), Max: float64(h.Max()) / unit}
	if n >= 100 {
		p := at(99)
		l.P99 = &p
	}
	if n >= 1000 {
		p := at(99.9)
		l.P999 = &p
	}
	return l
}

func inOrder(rows map[string]*row) []result.Bench {
	var all []result.Bench
	for _, r := range rows {
		all = append(all, r.finish())
	}
	slices.SortStableFunc(all, func(a, b result.Bench) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(entrantNamed(a.Protocol), entrantNamed(b.Protocol)))
	})
	return all
}
