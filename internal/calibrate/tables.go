package calibrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claimbench/claimbench/internal/report"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
)

func heads(names ...string) (all []report.Head) {
	for i, n := range names {
		all = append(all, report.Head{Name: n, Right: i > 0})
	}
	return all
}

func (f *File) rareTable() report.Table {
	t := report.Table{
		Title: fmt.Sprintf("A violation in a few rounds, 8 contenders, at most %g s", f.Sizes.RareWithinS),
		Heads: heads("probe", "done wrongly as", "of the rounds", "caught", "rounds p50", "rounds p95", "p50 s", "p95 s"),
	}
	t.Heads[1].Right = false
	for i := range f.Diluted {
		d := &f.Diluted[i]
		t.Rows = append(t.Rows, append([]string{d.Probe, d.Wrong, strconv.FormatFloat(d.P, 'g', -1, 64)}, d.Rare.cells()...))
	}
	return t
}

// cells are: caught, and the middle and the tail of rounds and seconds.
func (s *Seen) cells() []string {
	at := func(values []float64, q float64, format string) string {
		v, ok := s.Quantile(values, q)
		if !ok {
			return "-"
		}
		return fmt.Sprintf(format, v)
	}
	return []string{
		fmt.Sprintf("%d/%d", s.Caught, s.Runs),
		at(s.Rounds, 0.5, "%.0f"), at(s.Rounds, 0.95, "%.0f"), at(s.Seconds, 0.5, "%.3g"), at(s.Seconds, 0.95, "%.3g"),
	}
}

func (f *File) leastTable() report.Table {
	t := report.Table{
		Title: "The smallest probability of a violation per round that a survey's budget finds with 95 % power",
		Heads: heads("probe", "filesystem", "contested rounds", "bad seen", "least p", "verified", "95 % interval"),
	}
	t.Heads[1].Right = false
	for i := range f.Diluted {
		d := &f.Diluted[i]
		least, verified, interval := "-", "-", "-"
		if d.LeastP > 0 {
			lo, hi := stat.Wilson(d.Least.Caught, d.Least.Runs)
			least, verified = fmt.Sprintf("%.1e", d.LeastP), fmt.Sprintf("%d/%d", d.Least.Caught, d.Least.Runs)
			interval = fmt.Sprintf("%.2f to %.2f", lo, hi)
		}
		t.Rows = append(t.Rows, []string{
			d.Probe, d.Filesystem, strconv.Itoa(d.rounds()), fmt.Sprintf("%d/%d", d.BadSeen, d.Bad), least, verified, interval,
		})
	}
	return t
}

func (f *File) faultTable() report.Table {
	t := report.Table{
		Title: "Planted faults that must be found",
		Heads: []report.Head{
			{Name: "probe"}, {Name: "what is planted", Text: 30}, {Name: "faults", Drop: 4}, {Name: "mounts", Right: true, Drop: 3}, {Name: "must be"},
			{Name: "caught", Right: true}, {Name: "rounds p50", Right: true, Drop: 2}, {Name: "rounds p95", Right: true, Drop: 2}, {Name: "p50 s", Right: true}, {Name: "p95 s", Right: true, Drop: 1},
		},
	}
	for i := range f.Exhibits {
		if e := &f.Exhibits[i]; e.mustBeFound() {
			t.Rows = append(t.Rows, append(e.cells(), append([]string{string(e.Verdict)}, e.Seen.cells()...)...))
		}
	}
	return t
}

// cells say what was shown.
func (e *Exhibit) cells() []string {
	return []string{e.Probe, e.Name, faultsOf(e.Faults), strconv.Itoa(max(1, e.Mounts))}
}

func (f *File) harmlessTable() report.Table {
	t := report.Table{
		Title: "Planted faults that break no promise of the probe: false alarms",
		Heads: []report.Head{
			{Name: "probe"}, {Name: "what is planted", Text: 30}, {Name: "faults", Drop: 2}, {Name: "mounts", Right: true, Drop: 1},
			{Name: "must be"}, {Name: "said so", Right: true}, {Name: "false alarms", Right: true},
		},
	}
	for i := range f.Exhibits {
		if e := &f.Exhibits[i]; !e.mustBeFound() {
			t.Rows = append(t.Rows, append(e.cells(), string(e.Verdict), fmt.Sprintf("%d/%d", e.Seen.Caught, e.Seen.Runs), strconv.Itoa(e.Alarms)))
		}
	}
	return t
}

func (f *File) goodTable() report.Table {
	t := report.Table{
		Title: "False alarms on filesystems that keep their promises",
		Heads: heads("filesystem", "probe runs", "false alarms", "95 % bound", "unproven", "rounds"),
	}
	row := func(name, filesystem string) {
		runs, alarms, unproven, rounds := f.goodTotals(filesystem)
		t.Rows = append(t.Rows, []string{
			name, strconv.Itoa(runs), strconv.Itoa(alarms), fmt.Sprintf("%.2g %%", 100*stat.Upper95(alarms, runs)), strconv.Itoa(unproven), strconv.Itoa(rounds),
		})
	}
	var seen []string
	for i := range f.Good {
		if fs := f.Good[i].Filesystem; !slices.Contains(seen, fs) {
			seen = append(seen, fs)
			row(fs, fs)
		}
	}
	if len(seen) > 1 {
		row("all", "")
	}
	for i := range f.Good {
		g := &f.Good[i]
		for _, said := range g.Said {
			if strings.HasPrefix(said, string(result.Unsupported)) {
				t.Notes = append(t.Notes, fmt.Sprintf("%s on %s: %s", g.Probe, g.Filesystem, said))
			}
		}
	}
	return t
}

func (f *File) engineTable() report.Table {
	t := report.Table{
		Title: "Protocols on filesystems with planted faults: what a survey calls them, and what storm makes of them",
		Heads: []report.Head{
			{Name: "faults"}, {Name: "mounts", Right: true}, {Name: "safe", Right: true}, {Name: "unproven", Right: true}, {Name: "unsafe", Right: true},
			{Name: "trials", Right: true, Drop: 1}, {Name: "void", Right: true, Drop: 2}, {Name: "seen to fail", Text: 20}, {Name: "escaped", Text: 10},
		},
	}
	for i := range f.Engine {
		e := &f.Engine[i]
		t.Rows = append(t.Rows, e.cells())
		if untried := e.untried(); len(untried) > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%s over %s: called safe, and no trial could be judged: %s", faultsOf(e.Faults), mountsOf(e.Mounts), strings.Join(untried, ", ")))
		}
		if e.Failed != "" {
			t.Notes = append(t.Notes, fmt.Sprintf("%s over %s ended early: %s", faultsOf(e.Faults), mountsOf(e.Mounts), e.Failed))
		}
	}
	return t
}

// untried are the protocols of which storm says nothing, though they were called safe.
func (e *Engine) untried() (names []string) {
	for i := range e.Protocols {
		if p := &e.Protocols[i]; p.Verdict == result.ProtocolSafe && p.Trials == 0 && !p.Escaped() {
			names = append(names, strings.TrimSuffix(p.Name+" ("+p.Voided+")", " ()"))
		}
	}
	return names
}

func (e *Engine) cells() []string {
	counts, trials, void := map[result.Safety]int{}, 0, 0
	var failed, escaped []string
	for i := range e.Protocols {
		p := &e.Protocols[i]
		counts[p.Verdict]++
		trials, void = trials+p.Trials, void+p.Void
		if p.Duplicates+p.Missed > 0 {
			failed = append(failed, p.Name)
		}
		if p.Escaped() {
			escaped = append(escaped, p.Name)
		}
	}
	return []string{
		faultsOf(e.Faults), strconv.Itoa(e.Mounts), strconv.Itoa(counts[result.ProtocolSafe]), strconv.Itoa(counts[result.ProtocolUnproven]),
		strconv.Itoa(counts[result.ProtocolUnsafe]), strconv.Itoa(trials), strconv.Itoa(void), orDash(failed), orDash(escaped),
	}
}
