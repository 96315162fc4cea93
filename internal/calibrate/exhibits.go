package calibrate

import (
	"fmt"
	"slices"
	"time"

	"github.com/claimbench/claimbench/internal/museum"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// exhibits shows the museum to the probes.
func (r *run) exhibits() error {
	for _, x := range spread(r.Exhibits, r.size.ExhibitsMost) {
		if x.Probe == "" {
			continue // no finding must come out of it
		}
		e := Exhibit{Name: x.Name, Faults: x.Faults, Mounts: x.Mounts, Probe: x.Probe, Verdict: x.Verdict}
		var err error
		for i := 0; i < r.size.ExhibitRuns && err == nil && r.ctx.Err() == nil; i++ {
			err = r.show(&x, &e)
		}
		if e.Seen.Runs > 0 {
			r.file.Exhibits = append(r.file.Exhibits, e)
			r.say("exhibits: %s: %s: %d of %d caught", e.Probe, e.Name, e.Seen.Caught, e.Seen.Runs)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", x.Probe, x.Name, err)
		}
		if r.ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// spread takes at most so many of all, one here and one there; 0 is all.
func spread[T any](all []T, most int) (some []T) {
	every := 1
	if most > 0 {
		every = max(1, (len(all)+most-1)/most)
	}
	for i := 0; i < len(all); i += every {
		some = append(some, all[i])
	}
	return some
}

// show runs the probe once.
func (r *run) show(x *museum.Exhibit, e *Exhibit) error {
	p, ok := probes.Find(x.Probe)
	if !ok {
		return fmt.Errorf("there is no probe %s", x.Probe)
	}
	g, err := r.faulty(sizeFor(&p), x.Mounts, x.Faults)
	if err != nil {
		return err
	}
	var f result.Finding
	if err = r.line.Enter(r.ctx, g.dirs...); err == nil {
		f = r.insist(p, x, e, r.benchFor(x, g))
	}
	switch {
	case r.ctx.Err() != nil:
	case err != nil:
		e.fail(err)
	default:
		e.judge(x, &f)
	}
	return r.close(g)
}

// fail counts a run in which nothing could be asked.
func (e *Exhibit) fail(err error) {
	e.Seen.add(false, 0, 0)
	e.Differs = append(e.Differs, firstLine(err.Error()))
}

// insist runs a probe, and does what an unproven finding advises: it repeats it with a larger budget. Nothing else is
// repeated.
func (r *run) insist(p probes.Probe, x *museum.Exhibit, e *Exhibit, b probes.Bench) result.Finding {
	began, rounds := time.Now(), 0
	for try := 0; ; try++ {
		before := time.Since(began).Seconds()
		f := probes.Run(r.ctx, p, b)
		if f.Verdict != result.Unproven || x.Verdict == result.Unproven || try == repeats || r.ctx.Err() != nil {
			f.DurationS, f.Rounds = f.DurationS+before, f.Rounds+rounds
			if f.Violations > 0 {
				f.Figures["first_violation_s"] += before
				f.Figures["first_violation_round_count"] += float64(rounds)
			}
			return f
		}
		rounds += f.Rounds
		b.Time *= 3
		e.Repeated++
	}
}

// repeats are enough for a busy machine.
const repeats = 2

// sizeFor is that of the filesystem: the probe that fills it up needs a small one.
func sizeFor(p *probes.Probe) string {
	if p.Disposable {
		return "8m"
	}
	return "256m"
}

func (r *run) benchFor(x *museum.Exhibit, g *ground) probes.Bench {
	b := smallBench(4)
	b.Line, b.Routes, b.Scope, b.Disposable = r.line, len(g.dirs), scopeOf(len(g.dirs)), true
	if waitsInVain(x) {
		b.HoldWait, b.MaxWait = 100*time.Millisecond, 200*time.Millisecond
	}
	return b
}

// waitsInVain says of an exhibit that each experiment will wait as long as it may: for a lock that is not released, or
// for a change that is not seen.
func waitsInVain(x *museum.Exhibit) bool {
	long := slices.ContainsFunc(x.Violations, func(kind string) bool {
		return slices.Contains([]string{"lock-outlives-holder", "waiter-not-woken", "lock-withheld", "stays-full"}, kind)
	})
	return long || (x.Probe == "visibility" || x.Probe == "path-agreement") && len(x.Violations) > 0
}

// judge counts one finding.
func (e *Exhibit) judge(x *museum.Exhibit, f *result.Finding) {
	differs := x.Differs(f)
	rounds, seconds := float64(f.Rounds), f.DurationS
	if f.Violations > 0 {
		rounds, seconds = f.Figures["first_violation_round_count"], f.Figures["first_violation_s"]
	}
	e.Seen.add(differs == "", int(rounds), seconds)
	if differs != "" && len(e.Differs) < 8 {
		e.Differs = append(e.Differs, differs)
	}
	if accuses(f.Verdict) && !accuses(x.Verdict) {
		e.Alarms++
	}
}
