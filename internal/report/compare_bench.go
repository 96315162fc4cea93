package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/claimbench/claimbench/internal/result"
)

func (c *comparison) counts(workload string) section {
	s := section{name: workload, title: caption(workload) + " (executed/expected)"}
	keys, rows := c.benchRows(workload)
	for _, key := range keys {
		row := compared{name: key.protocol, variant: key.variant, measure: countsMeasure, inUnit: countsMeasure}
		base := rows[key][0]
		for i, b := range rows[key] {
			side := side{}
			if b != nil {
				side.cell, side.raw = countsOf(b), rawCounts(b)
				row.name = benchName(b)
			}
			switch {
			case i == 0:
			case base == nil || b == nil:
				side.mark = difference(row.sides[0], side)
			default:
				side.mark = cmp.Or(incomparable(base, b), countDifference(base, b))
			}
			row.sides = append(row.sides, side)
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// wrongs are the counts that are 0 in a good row.
func wrongs() []field[*result.Bench] {
	count := func(name string, of func(*result.Bench) int) field[*result.Bench] {
		return field[*result.Bench]{name, func(b *result.Bench) string { return group(of(b)) }}
	}
	return []field[*result.Bench]{
		count("duplicates", func(b *result.Bench) int { return b.Duplicates }),
		count("missed", func(b *result.Bench) int { return b.Missed }),
		count("blocked", func(b *result.Bench) int { return b.Blocked }),
		count("illegal", func(b *result.Bench) int { return b.Illegal }),
		count("overlaps", func(b *result.Bench) int { return b.Overlaps }),
		count("late writes accepted", func(b *result.Bench) int { return b.Accepted }),
		count("void", func(b *result.Bench) int { return b.Void }),
	}
}

func countsOf(b *result.Bench) string {
	parts := []string{executed(benchRow{Bench: b})}
	if b.Trials == 0 {
		parts[0] = "NOT JUDGED"
	}
	for _, w := range wrongs() {
		if n := w.cell(b); n != "0" {
			parts = append(parts, w.name+" "+n)
		}
	}
	return strings.Join(parts, ", ")
}

func rawCounts(b *result.Bench) string {
	return fmt.Sprintf("executed=%d;expected=%d;duplicates=%d;missed=%d;blocked=%d;overlaps=%d;refused=%d;accepted=%d;trials=%d;void=%d",
		b.Executed, b.Expected, b.Duplicates, b.Missed, b.Blocked, b.Overlaps, b.Refused, b.Accepted, b.Trials, b.Void)
}

// countDifference tells what went wrong in one file only from what went wrong more often in one of them.
func countDifference(a, b *result.Bench) string {
	var only, more []string
	for _, w := range wrongs() {
		switch x, y := w.cell(a), w.cell(b); {
		case x == y:
		case x == "0" || y == "0":
			only = append(only, w.name)
		default:
			more = append(more, w.name)
		}
	}
	if a.Executed != b.Executed && len(only)+len(more) == 0 {
		more = append(more, "executed")
	}
	switch {
	case len(only) > 0:
		return "DIFFERS: " + strings.Join(append(only, more...), ", ")
	case len(more) > 0:
		return "differs: " + strings.Join(more, ", ")
	}
	return ""
}

// A timing is one figure of a row: the medians of its trials or, if none were kept or there is only one of it,
// the figure alone.
type timing struct {
	name   string
	inUnit string
	values func(*result.Bench) []float64 // in base units
	show   func(float64) string
}

func timings() []timing {
	return []timing{
		{"claim p50", "claim_p50_s", func(b *result.Bench) []float64 { return inSeconds(medians(b.LatencyUS), 1e-6) }, span},
		{"take-over p50", "takeover_p50_s", func(b *result.Bench) []float64 { return inSeconds(medians(b.TakeoverMS), 1e-3) }, span},
		{"claims/s", "claims_per_s", func(b *result.Bench) []float64 {
			return rates(b)
		}, digits},
	}
}

func inSeconds(values []float64, unit float64) []float64 {
	seconds := make([]float64, len(values))
	for i, v := range values {
		seconds[i] = v * unit
	}
	return seconds
}

func (c *comparison) timings(workload string) section {
	s := section{name: workload, title: workload + ": times, medians of the trials", times: true}
	keys, rows := c.benchRows(workload)
	for _, key := range keys {
		for _, t := range timings() {
			row := compared{name: key.protocol, variant: key.variant, measure: t.name, inUnit: t.inUnit}
			for _, b := range rows[key] {
				row.sides = append(row.sides, t.side(rows[key][0], b))
			}
			if slices.ContainsFunc(row.sides, func(s side) bool { return s.cell != "" }) {
				s.rows = append(s.rows, row)
			}
		}
	}
	return s
}

func (t timing) side(base, b *result.Bench) side {
	var values, baseline []float64
	if b != nil && b.Trials > 0 {
		values = t.values(b)
	}
	if base != nil && base.Trials > 0 {
		baseline = t.values(base)
	}
	if len(values) == 0 {
		if len(baseline) > 0 {
			return side{mark: onlyInA}
		}
		return side{mark: "-"}
	}
	centre := middle(values)
	s := side{cell: t.show(centre), raw: float(centre)}
	switch {
	case b == base:
	case len(baseline) == 0:
		s.mark = notInA
	case incomparable(base, b) != "":
		s.mark = incomparable(base, b)
	default:
		s.test = compareSamples(baseline, values)
		s.mark = s.test.String()
	}
	return s
}

// A test is whether two samples differ, by the two-sided Mann-Whitney U test at the level of 0.05.
type test struct {
	benchmath.Comparison
	from, to float64 // the medians
}

func compareSamples(a, b []float64) *test {
	x, y := sampleOf(a), sampleOf(b)
	return &test{benchmath.AssumeNothing.Compare(x, y), middle(a), middle(b)}
}

// sampleOf copies the values, since NewSample sorts them.
func sampleOf(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
}

func middle(values []float64) float64 {
	return benchmath.AssumeNothing.Summary(sampleOf(values), 0.95).Center
}

func (t *test) significant() bool { return t.P <= t.Alpha }

// String is the change in percent, or ~ where the samples do not differ significantly, with p and n.
func (t *test) String() string {
	delta := strings.Replace(t.FormatDelta(t.from, t.to), "%", " %", 1)
	return fmt.Sprintf("%s (%s)", delta, strings.Replace(t.Comparison.String(), "p=0.000", "p<0.001", 1))
}

func (t *test) percent() string {
	if change := (t.to/t.from - 1) * 100; t.significant() && !math.IsInf(change, 0) && !math.IsNaN(change) {
		return float(change)
	}
	return ""
}

func (t *test) warning() string {
	var texts []string
	for _, w := range t.Warnings {
		texts = append(texts, w.Error())
	}
	return strings.Join(texts, "; ")
}
