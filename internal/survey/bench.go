package survey

import (
	"context"
	"errors"
	"time"

	"github.com/claimbench/claimbench/bench"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// bench runs the workloads in their order.
func (o *Options) bench(ctx context.Context, line race.Field, w Site, t *result.Target, until time.Time) error {
	left := o.workloads()
	for i, workload := range left {
		if ctx.Err() != nil || !o.goesOn(ctx, t, workload.Name) {
			return nil
		}
		o.Progress.Probe(t.Name, workload.Name)
		share := time.Until(until) / time.Duration(len(left)-i)
		var rows []result.Bench
		err := o.inside(ctx, line, w, t, workload.Name, func(dirs []string) {
			rows = o.workload(ctx, line, dirs, t, workload, time.Now().Add(share))
		})
		t.Bench = append(t.Bench, rows...)
		o.Progress.Benched(t.Name, rows)
		if err != nil && ctx.Err() == nil && !o.lostMore() {
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
func (o *Options) workload(ctx context.Context, line race.Field, dirs []string, t *result.Target, w bench.Workload, until time.Time) (rows []result.Bench) {
	crowd, end, err := o.crowd(ctx, line, dirs, w.Contenders)
	if err == nil {
		rows, err = bench.Run(ctx, w, o.benchOptions(crowd, t, w, until))
		err = errors.Join(err, end())
	}
	if err != nil && ctx.Err() == nil {
		o.warn(t, w.Name+": ended early: "+oneLine(err))
	}
	return rows
}

// crowd is a line of at least n contenders in the directories: the given one, or else one that ends with its workload.
func (o *Options) crowd(ctx context.Context, line race.Field, dirs []string, n int) (crowd race.Field, end func() error, err error) {
	if line.Contenders() >= n {
		return line, func() error { return nil }, nil
	}
	if crowd, err = o.start(ctx, o.lineOf(n)); err != nil {
		return nil, nil, err
	}
	if err := crowd.Enter(ctx, dirs...); err != nil {
		return nil, nil, errors.Join(err, crowd.Close())
	}
	return crowd, crowd.Close, nil
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
