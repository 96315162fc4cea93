package calibrate

import (
	"fmt"

	"github.com/claimbench/claimbench/internal/result"
)

// The exit statuses of a calibration.
const (
	StatusGood    = 0 // everything was caught, and there was neither a false alarm nor an escape
	StatusBad     = 1
	StatusPartial = 3 // nothing is bad, and a part could not be run, or nothing was measured
)

// Status is the exit status.
func (f *File) Status() int {
	switch {
	case len(f.Problems()) > 0:
		return StatusBad
	case len(f.Missing) > 0 || f.Incomplete != "" || f.empty():
		return StatusPartial
	}
	return StatusGood
}

// empty says that nothing was measured, as of a selection that has nothing for the part.
func (f *File) empty() bool {
	return len(f.Diluted)+len(f.Exhibits)+len(f.Good)+len(f.Engine) == 0
}

// accuses says of a verdict that something is wrong with the filesystem, which may be a false alarm. That it refuses an
// operation is no accusation.
func accuses(v result.Verdict) bool { return v == result.Broken || v == result.Hung }

// Problems are what a calibration must not show, each in a sentence: something planted that was missed, a false alarm,
// a protocol that escaped.
func (f *File) Problems() (all []string) {
	for i := range f.Diluted {
		all = append(all, f.Diluted[i].problems(&f.Sizes)...)
	}
	for i := range f.Exhibits {
		all = append(all, f.Exhibits[i].problems()...)
	}
	for i := range f.Good {
		if g := &f.Good[i]; g.Alarms > 0 {
			all = append(all, fmt.Sprintf("FALSE ALARM: %s on %s: %d of %d runs: %s", g.Probe, g.Filesystem, g.Alarms, g.Runs, firstOf(g.Said)))
		}
	}
	for i := range f.Engine {
		all = append(all, f.Engine[i].problems()...)
	}
	return all
}

// mayMiss is how many of so many runs may miss a rare violation: one of twenty.
func mayMiss(runs int) int { return runs / 20 }

// enoughToSee bad rounds cannot all go unseen by chance.
const enoughToSee = 20

func (d *Diluted) problems(s *Sizes) (all []string) {
	if missed := d.Rare.Runs - d.Rare.Caught; missed > mayMiss(d.Rare.Runs) {
		all = append(all, fmt.Sprintf("MISSED: %s with %s at %g per round: %d of %d runs caught it within %g s", d.Probe, d.Wrong, d.P, d.Rare.Caught, d.Rare.Runs, s.RareWithinS))
	}
	if d.Alarms > 0 {
		all = append(all, fmt.Sprintf("FALSE ALARM: %s on %s: %d of %d runs with nothing planted", d.Probe, d.Filesystem, d.Alarms, len(d.Contested)))
	}
	if d.Stray > 0 {
		all = append(all, fmt.Sprintf("FALSE ALARM: %s on %s: %d violations in rounds in which nothing was planted", d.Probe, d.Filesystem, d.Stray))
	}
	if d.Bad >= enoughToSee && d.BadSeen == 0 {
		all = append(all, fmt.Sprintf("MISSED: %s with %s: none of %d contested rounds that were done wrongly was seen to be violated", d.Probe, d.Wrong, d.Bad))
	}
	if d.Least.refuted() {
		all = append(all, fmt.Sprintf("MISSED: %s with %s at %.2g per round, which was to be found: %d of %d runs caught it", d.Probe, d.Wrong, d.LeastP, d.Least.Caught, d.Least.Runs))
	}
	return all
}

// problems are none where every run said what must be said.
func (e *Exhibit) problems() (all []string) {
	where := fmt.Sprintf("%s: %s (%s over %s)", e.Probe, e.Name, faultsOf(e.Faults), mountsOf(e.Mounts))
	missed := e.Seen.Runs - e.Seen.Caught - e.Alarms
	if missed > 0 {
		all = append(all, fmt.Sprintf("MISSED: %s: %d of %d runs: %s", where, missed, e.Seen.Runs, firstOf(e.Differs)))
	}
	if e.Alarms > 0 {
		all = append(all, fmt.Sprintf("FALSE ALARM: %s: %d of %d runs: %s", where, e.Alarms, e.Seen.Runs, firstOf(e.Differs)))
	}
	return all
}

func (e *Engine) problems() (all []string) {
	for i := range e.Protocols {
		if p := &e.Protocols[i]; p.Escaped() {
			all = append(all, fmt.Sprintf("ESCAPE: %s is called safe on %s over %s, and in %d trials of storm there were %d duplicates and %d missed keys", p.Name, faultsOf(e.Faults), mountsOf(e.Mounts), p.Trials, p.Duplicates, p.Missed))
		}
	}
	return all
}

func faultsOf(text string) string {
	if text == "" {
		return "no fault"
	}
	return text
}

func mountsOf(n int) string {
	if n > 1 {
		return fmt.Sprintf("%d mounts", n)
	}
	return "1 mount"
}

// mustBeFound says of an exhibit that something is wrong there which the probe must tell. Where it must say that it
// cannot tell, nothing is found.
func (e *Exhibit) mustBeFound() bool {
	return e.Verdict != result.Holds && e.Verdict != result.Unproven
}

// goodTotals are over all filesystems, or over one: runs, false alarms, unproven runs, and rounds.
func (f *File) goodTotals(filesystem string) (runs, alarms, unproven, rounds int) {
	for i := range f.Good {
		if g := &f.Good[i]; filesystem == "" || g.Filesystem == filesystem {
			runs, alarms, unproven, rounds = runs+g.Runs, alarms+g.Alarms, unproven+g.Unproven, rounds+g.Rounds
		}
	}
	return runs, alarms, unproven, rounds
}
