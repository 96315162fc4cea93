package probes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
)

// control races the control until it has fired often enough, with each number of contenders.
func (b *Bench) control(ctx context.Context, e *evidence, judge func(*race.Round) ruling) error {
	began := time.Now()
	for _, n := range slices.Backward(b.Contenders) {
		_, err := b.Line.Race(ctx, e.op, b.plan(n, b.Time/4/time.Duration(len(b.Contenders))), func(r *race.Round) bool {
			contested, v := r.Contested(b.Routes, b.Line.Meets(e.op)), judge(r)
			if !contested {
				v = ruling{} // a control that needs no contention shows nothing about the harness
			}
			e.add(r, contested, v, func() result.Round { return b.raw(e.op, r) })
			if v.kind != "" && e.violations == 1 {
				e.first = time.Since(began)
			}
			return e.violations < enoughOfControl
		})
		if err != nil || e.violations >= enoughOfControl {
			return err
		}
	}
	return nil
}

func (b *Bench) plan(n int, d time.Duration) race.Plan {
	return race.Plan{
		Contenders: n, Rounds: max(1, b.Rounds/len(b.Contenders)), Time: max(d, time.Millisecond),
		AtLeast: b.MinProof/len(b.Contenders) + 1, Extra: min(3*d, b.Spare),
		ScanShare: b.ScanShare, ColdRounds: b.ColdRounds / len(b.Contenders), ColdPause: b.ColdPause,
	}
}

// raceAll races the operation with each number of contenders, the time split evenly, and records the figures.
func (b *Bench) raceAll(ctx context.Context, e *evidence, f *result.Finding, judge func(*race.Round) ruling) error {
	left := b.Time * 3 / 4
	enough := func() bool { return b.Watch == nil && e.decided() } // who watches says so, and may want all numbers of contenders
	for i, n := range b.Contenders {
		d := left / time.Duration(len(b.Contenders)-i)
		op, plan := b.diluted(e.op, b.plan(n, d))
		watched := true
		t, err := b.Line.Race(ctx, op, plan, func(r *race.Round) bool {
			contested, v := false, judge(r)
			r.Meetings(b.Routes, b.Line.Meets(e.op), func(i, j int) {
				contested = true
				e.meet(b.Line.Route(i), b.Line.Route(j))
			})
			e.add(r, contested, v, func() result.Round { return b.raw(e.op, r) })
			watched = b.Watch == nil || b.Watch(r, contested, v.kind != "")
			return watched && !enough()
		})
		left -= min(t.Elapsed, d)
		b.Spare -= max(0, t.Elapsed-d)
		figures(f, &t, n)
		e.wins = slices.Grow(e.wins, b.Routes)[:b.Routes]
		for i, w := range t.Wins {
			e.wins[b.Line.Route(i)] += w
		}
		if err != nil || !watched || enough() {
			return err
		}
	}
	return nil
}

// diluted is what is raced in place of an operation, where a calibration plants violations.
func (b *Bench) diluted(op string, plan race.Plan) (string, race.Plan) {
	if b.Dilution.P > 0 {
		op, plan.Arg = dilutedPrefix+op, b.Dilution.arg()
	}
	return op, plan
}

// decided reports that more rounds would not change the verdict.
func (e *evidence) decided() bool {
	return e.violations >= enoughBroken || e.contested == 0 && (e.refused >= enoughRefused || e.failed >= enoughFailed)
}

// figures records how the race went: where the contention came from, who won, how long an attempt took.
func figures(f *result.Finding, t *race.Tally, n int) {
	rounds, contested := t.Total()
	if rounds == 0 {
		return
	}
	by := fmt.Sprintf("_%d", n)
	f.Figures["contested"+by+"_share"] = float64(contested) / float64(rounds)
	f.Figures["contested_per_s"+by] = float64(contested) / t.Elapsed.Seconds()
	for p, name := range []string{"tight", "scan", "cold"} {
		if t.Rounds[p] > 0 {
			f.Figures["contested_"+name+by+"_share"] = float64(t.Contested[p]) / float64(t.Rounds[p])
		}
	}
	if t.Unsure > 0 {
		f.Figures["unsure_by_clocks"+by+"_share"] = float64(t.Unsure) / float64(rounds)
	}
	wins := 0
	for _, w := range t.Wins {
		wins += w
	}
	if wins > 0 {
		f.Figures["wins_least"+by+"_share"] = float64(slices.Min(t.Wins)) / float64(wins)
		f.Figures["wins_most"+by+"_share"] = float64(slices.Max(t.Wins)) / float64(wins)
	}
	us := make([]float64, len(t.Durations))
	for i, d := range t.Durations {
		us[i] = float64(d) / 1e3
	}
	if v, lo, hi, ok := stat.Median(us); ok {
		f.Figures["round"+by+"_p50_us"], f.Figures["round"+by+"_p50_low95_us"], f.Figures["round"+by+"_p50_high95_us"] = v, lo, hi
		f.Figures["round_p50_us"] = v
	}
	if v, ok := stat.Percentile(us, 99); ok {
		f.Figures["round"+by+"_p99_us"] = v
	}
}
