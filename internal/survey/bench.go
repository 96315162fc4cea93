package survey

import (
	"context"
	"time"

	"github.com/claimbench/claimbench/bench"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// bench runs the workloads in their order.
func (o *Options) bench(ctx context.Context, line race.Field, w Site, t *result.Target, until time.Time) error {
	left := o.workloads()
	for i, workload := range left {
		if ctx.Err() != nil || o.lost() {
			return nil
		}
		o.Progress.Probe(t.Name, workload.Name)
		share := time.Until(until) / time.Duration(len(left)-i)
		var rows []result.Bench
		err := o.inside(ctx, line, w, t, workload.Name, func([]string) {
			rows = o.workload(ctx, line, t, workload, time.Now().Add(share))
		})
		t.Bench = append(t.Bench, rows...)
		o.Progress.Benched(t.Name, rows)
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (o *Options) workloads() []bench.Workload {
	var all []bench.Workload
	for _, name := range o.Config.Workloads {
		if w, ok := bench.Find(name); ok {
			all = append(all, w)
		}
	}
	return all
}

// workload warns of what ended it early: what was counted until then stays.
func (o *Options) workload(ctx context.Context, line race.Field, t *result.Target, w bench.Workload, until time.Time) []result.Bench {
	rows, err := bench.Run(ctx, w, o.benchOptions(line, t, w, until))
	if err != nil && ctx.Err() == nil {
		o.warn(t, w.Name+": ended early: "+oneLine(err))
	}
	return rows
}

func (o *Options) benchOptions(line race.Field, t *result.Target, w bench.Workload, until time.Time) bench.Options {
	b := bench.Options{
		Line: line, Scope: t.Scope, Seed: o.Config.Seed, Trials: o.Config.Trials, Protocols: o.Protocols, Full: o.Full, Times: o.Times, Until: until, Draw: o.Draw,
	}
	if w.Name == "deaths" && len(b.Protocols) == 0 {
		b.Protocols = o.Config.DeathsOf
	}
	return b
}

// DecideBench looks at the rows of the required protocols only: a violation is unsafe, and a row without a
// trial that could be judged is unproven.
func DecideBench(f *result.File, require []string) Decision {
	d := Safe
	for i := range f.Targets {
		for _, name := range require {
			switch judged, violations := rowsOf(&f.Targets[i], name); {
			case violations > 0:
				return Unsafe
			case !judged:
				d = Unproven
			}
		}
	}
	if len(f.Targets) == 0 || f.Incomplete != "" {
		return Unproven
	}
	return d
}

// rowsOf reports whether there are rows of the protocol, and each has a trial that could be judged.
func rowsOf(t *result.Target, protocol string) (judged bool, violations int) {
	rows, empty := 0, 0
	for i := range t.Bench {
		if r := &t.Bench[i]; r.Protocol == protocol {
			rows++
			if r.Trials == 0 {
				empty++
			}
			violations += r.Violations()
		}
	}
	return rows > 0 && empty == 0, violations
}
