package probes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// Some probes race nobody: one contender does something, many times, and looks at what it did. A round is then one
// thing done, and none is contested.

// observe counts n rounds of one kind by what a judge says of them together. failures are the errnos seen in them.
func (e *evidence) observe(n int, failures map[uint32]int, v ruling, raw func() result.Round) {
	e.add(&race.Round{}, false, v, raw)
	e.rounds += n - 1
	if v.refused {
		e.refused += n - 1
	}
	if v.failed {
		e.failed += n - 1
	}
	for errno, k := range failures {
		e.errnos[errnoName(errno)] += k
	}
}

// decideAlone is decide for a probe that races nobody: the rounds that neither failed nor were refused are the
// evidence. The control is missed unless every part of it fired.
func decideAlone(f *result.Finding, e, control *evidence, least int, err error) {
	told := e.rounds - e.refused - e.failed
	e.contested = told
	decide(f, e, control, least, err)
	f.Contested, f.Upper95 = 0, nil
	delete(f.Figures, "violations_low95_share")
	delete(f.Figures, "violations_high95_share")
	switch {
	case f.Verdict == result.Unproven && err == nil && e.failed == 0 && told < least:
		f.Reason = fmt.Sprintf("only %d of %d rounds say something; at least %d are needed", told, e.rounds, least)
	case f.Verdict == result.Unproven && err == nil && told >= least && control.violations == 0:
		f.Reason = fmt.Sprintf("the positive control did not fire in %d rounds: this run could not have seen a violation", control.rounds)
	case f.Verdict == result.Holds && control.violations < control.parts:
		f.Verdict, f.Reason = result.Unproven, fmt.Sprintf("%d of %d parts of the positive control fired", control.violations, control.parts)
	}
}

// partial makes a finding weaker where a part of what was to be done was refused, failed, or says nothing.
func partial(f *result.Finding, e *evidence) {
	switch {
	case f.Verdict != result.Holds && f.Verdict != result.Unproven:
	case len(e.notes) > 0:
		f.Verdict, f.Reason = result.Unproven, strings.Join(slices.Sorted(maps.Keys(e.notes)), "; ")
	case f.Verdict == result.Unproven:
	case e.refused > 0:
		f.Verdict, f.Reason = result.Unsupported, "a part is refused with "+countsOf(e.errnos)
	case e.failed > 0:
		f.Verdict, f.Reason = result.Unproven, "a part fails always, errnos seen: "+countsOf(e.errnos)
	}
}

// span writes nanoseconds as a duration.
func span(ns int64) string { return time.Duration(ns).String() }

// epochSeconds writes nanoseconds since 1970 as a reader compares them.
func epochSeconds(ns int64) string {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return fmt.Sprintf("%s%d.%09d s", sign, ns/1e9, ns%1e9)
}
