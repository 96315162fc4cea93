package calibrate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/claimbench/claimbench/bench"
	"github.com/claimbench/claimbench/internal/museum"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/survey"
	"github.com/claimbench/claimbench/probes"
)

// A plot is a filesystem with faults, whoever sees them.
type plot struct {
	faults string
	mounts int
}

// plots are the distinct faults of the exhibits on which something must be found.
func plots(all []museum.Exhibit) (some []plot) {
	for _, x := range all {
		p := plot{x.Faults, max(1, x.Mounts)}
		if (x.Verdict == result.Broken || x.Verdict == result.Unsupported) && !slices.Contains(some, p) {
			some = append(some, p)
		}
	}
	return some
}

// engine runs the claim protocols on filesystems with faults.
func (r *run) engine() error {
	for _, p := range spread(plots(r.Exhibits), r.size.EngineMost) {
		e := Engine{Faults: p.faults, Mounts: p.mounts}
		if err := r.plot(&e); err != nil {
			return fmt.Errorf("%s over %d: %w", e.Faults, e.Mounts, err)
		}
		if r.ctx.Err() != nil {
			return nil
		}
		if len(e.Protocols) == 0 {
			r.lack(fmt.Sprintf("engine on %s over %s", e.Faults, mountsOf(e.Mounts)), e.Failed)
			continue
		}
		r.file.Engine = append(r.file.Engine, e)
		r.say("engine: %s over %d: %s", e.Faults, e.Mounts, e.summary())
	}
	return nil
}

// plot surveys one of them, and lets storm loose on it.
func (r *run) plot(e *Engine) error {
	g, err := r.faulty("256m", e.Mounts, e.Faults)
	if err != nil {
		return err
	}
	t := &result.Target{Name: e.Faults, Scope: scopeOf(e.Mounts)}
	for _, name := range survey.Needed() {
		if err = r.find(g, name, t); err != nil || r.ctx.Err() != nil {
			break
		}
	}
	if err == nil && r.ctx.Err() == nil {
		err = r.storm(g, t, e)
	}
	if err != nil {
		e.Failed = firstLine(err.Error())
	}
	return r.close(g)
}

// room is a fresh directory, made behind the faults, seen over each mount.
func (r *run) room(g *ground, name string) (dirs []string, err error) {
	for _, d := range g.dirs {
		dirs = append(dirs, filepath.Join(d, name))
	}
	return dirs, os.Mkdir(filepath.Join(g.back, name), 0o777)
}

func (r *run) find(g *ground, name string, t *result.Target) error {
	p, _ := probes.Find(name)
	dirs, err := r.room(g, name)
	if err != nil {
		return err
	}
	if err := r.line.Enter(r.ctx, dirs...); err != nil {
		return err
	}
	p.Weight = 1
	b := smallBench(4)
	b.Line, b.Routes, b.Scope = r.line, len(dirs), t.Scope
	b.Time, b.MinProof = 120*time.Millisecond, 40
	b.HoldWait, b.MaxWait = 200*time.Millisecond, 200*time.Millisecond
	t.Findings = append(t.Findings, probes.Run(r.ctx, p, b))
	return nil
}

// storm has the verdicts, from the promises alone, compared with what the protocols do: those that were called safe
// most of all, the others to show that something can be seen there.
func (r *run) storm(g *ground, t *result.Target, e *Engine) error {
	var safe, others []string
	for _, p := range survey.Join(t) {
		e.Protocols = append(e.Protocols, EngineProtocol{Name: p.Name, Verdict: p.Verdict, Because: firstOf(p.Because)})
		if p.Verdict == result.ProtocolSafe {
			safe = append(safe, p.Name)
		} else {
			others = append(others, p.Name)
		}
	}
	dirs, err := r.room(g, "storm")
	if err != nil {
		return err
	}
	if err := r.claimDirs(filepath.Join(g.back, "storm")); err != nil {
		return err
	}
	if err := r.line.Enter(r.ctx, dirs...); err != nil {
		return err
	}
	r.trials(t, e, safe, r.size.StormTrials, stormTime)
	r.trials(t, e, others, 1, stormTime/4)
	return nil
}

// claimDirs makes the directories of the trials behind the faults: where a mount goes on saying that a name is absent,
// half of the contenders would never find them, and every trial would be void. They are called after the line's numbers.
func (r *run) claimDirs(in string) error {
	first := r.line.Name()
	for n := range int64(enoughDirs) {
		if err := os.Mkdir(filepath.Join(in, fmt.Sprintf("t%d", first+n)), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// enoughDirs are more than the numbers that the trials on one filesystem take.
const enoughDirs = 400

// trials runs storm with some protocols. What ends it early is kept beside what it counted until then.
func (r *run) trials(t *result.Target, e *Engine, protocols []string, n int, most time.Duration) {
	if len(protocols) == 0 || r.ctx.Err() != nil {
		return
	}
	w, _ := bench.Find("storm")
	rows, err := bench.Run(r.ctx, w, bench.Options{
		Line: r.line, Scope: t.Scope, Seed: r.Seed, Protocols: protocols, Trials: n, Until: time.Now().Add(most),
	})
	if err != nil {
		e.Failed = firstLine(err.Error())
	}
	e.count(rows)
}

// stormTime is when no other trial is begun: those of a key that nobody can claim last 4 s each.
const stormTime = 12 * time.Second

// count puts what storm saw beside the verdicts.
func (e *Engine) count(rows []result.Bench) {
	for i := range rows {
		k := slices.IndexFunc(e.Protocols, func(p EngineProtocol) bool { return p.Name == rows[i].Protocol })
		if k < 0 {
			continue
		}
		p := &e.Protocols[k]
		p.Trials += rows[i].Trials
		p.Void, p.Voided = p.Void+rows[i].Void, firstOf(rows[i].Voided)
		p.Duplicates += rows[i].Duplicates
		p.Missed += rows[i].Missed
	}
}

func (e *Engine) summary() string {
	safe, wrong, escaped := 0, 0, 0
	for i := range e.Protocols {
		p := &e.Protocols[i]
		if p.Verdict == result.ProtocolSafe {
			safe++
		}
		if p.Duplicates+p.Missed > 0 {
			wrong++
		}
		if p.Escaped() {
			escaped++
		}
	}
	return fmt.Sprintf("%d protocols called safe, %d seen to fail, %d escaped", safe, wrong, escaped)
}

func firstOf(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}
