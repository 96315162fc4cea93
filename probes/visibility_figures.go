package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
)

// A lateness is how late changes were seen.
type lateness struct {
	across  [len(changes)][]float64 // over another route than the writer's, or, if there is none, by another contender, in µs
	spots   map[spot]time.Duration  // the latest
	within  time.Duration           // the latest over the writer's own route
	slowest time.Duration
	where   spot
	size    time.Duration // of a cached size: see noted
	heard   [len(changes)]bool

	controls  int  // changes that were announced only, and must be flagged
	gapMissed bool // the control of the replacements did not fire
}

func newLateness() *lateness { return &lateness{spots: map[spot]time.Duration{}} }

func (l *lateness) add(b *Bench, w *watched, v ruling, lag time.Duration) {
	if v.failed || v.refused {
		return
	}
	l.heard[w.what] = true
	l.spots[w.spot] = max(l.spots[w.spot], lag)
	sameRoute := b.Line.Route(w.writer) == b.Line.Route(w.watcher)
	if sameRoute {
		l.within = max(l.within, lag)
	}
	switch {
	case w.noted():
		l.size = max(l.size, lag)
		return
	case lag > l.slowest:
		l.slowest, l.where = lag, w.spot
	}
	if !sameRoute || b.Routes < 2 {
		l.across[w.what] = append(l.across[w.what], float64(lag)/1e3)
	}
}

// figures records the median and the maximum of each change, and the maximum of each way to look that saw it late.
func (l *lateness) figures(f *result.Finding) {
	for what, us := range l.across {
		if len(us) == 0 {
			continue
		}
		name := figureName(changes[what])
		f.Figures[name+"_max_us"] = slices.Max(us)
		if p50, _, _, ok := stat.Median(us); ok {
			f.Figures[name+"_p50_us"] = p50
		}
	}
	for s, lag := range l.spots {
		if lag > 0 {
			f.Figures[figureName(s.String())+"_max_us"] = float64(lag) / 1e3
		}
	}
	f.Figures["slowest_us"] = float64(l.slowest) / 1e3
	f.Figures["within_a_route_max_us"] = float64(l.within) / 1e3
}

func figureName(words string) string {
	return strings.ReplaceAll(strings.ReplaceAll(words, ",", ""), " ", "_")
}

// mute is the changes that nothing is known of.
func (l *lateness) mute() (names []string) {
	for what, heard := range l.heard {
		if !heard {
			names = append(names, changes[what])
		}
	}
	return names
}

// conclude puts the outcome into words; it makes a finding weaker, never stronger.
func (l *lateness) conclude(f *result.Finding, total, control *evidence) {
	l.figures(f)
	if l.size > 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf("the size of a rewritten file was seen late by stat, by up to %s: open a file to see its newest state", seconds(l.size)))
	}
	if f.Verdict != result.Holds {
		return
	}
	mute := strings.Join(l.mute(), " or ")
	switch {
	case mute != "" && total.failed > 0:
		f.Verdict, f.Reason = result.Unproven, fmt.Sprintf("nothing is known of what is %s: %d watches failed, errnos seen: %s", mute, total.failed, countsOf(total.errnos))
	case control.violations < l.controls:
		f.Verdict, f.Reason = result.Unproven, fmt.Sprintf("the positive control fired for %d of %d changes only that were announced and not made", control.violations, l.controls)
	case l.gapMissed:
		f.Verdict, f.Reason = result.Unproven, "the positive control did not fire: nobody found the name absent that was unlinked before each replacement"
	case l.slowest == 0:
		f.Reason = fmt.Sprintf("the first look saw every change, and no name looked absent (%d rounds)", total.contested)
	default:
		f.Reason = fmt.Sprintf("every change was seen within %s, the slowest one %s (%d rounds)", seconds(l.slowest), l.where, total.contested)
		f.Warnings = append(f.Warnings, fmt.Sprintf("changes were seen late, by up to %s (%s): a slack, a TTL or a pause between polls must be longer than that", seconds(l.slowest), l.where))
	}
	if mute != "" && f.Verdict == result.Holds {
		f.Warnings = append(f.Warnings, "refused here, and so not watched: what is "+mute)
	}
}
