package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claimbench/claimbench/internal/facts"
	"github.com/claimbench/claimbench/internal/result"
)

// A Run is some targets, to be made, surveyed and taken down. A local filesystem and several kernels take the whole
// machine, and have a turn to themselves. FUSE programs and guests, which have one CPU each, wait much of the time, and
// are surveyed side by side.
type Run struct {
	Targets  []Target
	Where    Where
	Jobs     int                               // how many are surveyed side by side
	Out      string                            // the directory of the results
	Tool     result.Tool                       // this program
	BuiltIn  bool                              // targets and settings are the built-in ones: a target's name is enough to repeat its result
	Hide     bool                              // host names, paths and addresses are left out of the results
	Again    bool                              // a target that too little was seen of is surveyed once more, in the end, alone
	Settings func(name string) ([]byte, error) // the YAML of a survey, by its name in a target
	Begin    func(t Target)                    // a target's turn has come
	End      func(t Target, outcome Outcome)   // it is over

	ending sync.Mutex
	thin   []first
}

// A first is what became of a target that is to be surveyed once more.
type first struct {
	target  Target
	outcome Outcome
}

// An Outcome is what became of a target.
type Outcome struct {
	File       *result.File // nil if there is none
	Saved      string       // where it is
	Deviations []string     // from what is expected
	Unproven   []string     // too little evidence to tell whether it is as expected
	AtFirst    []string     // unproven the first time, if there was a second
	Took       time.Duration
	Err        error // why the target could not be made or surveyed, or not be taken down
}

// All runs the targets, whatever becomes of each, until ctx is done. End is called for one target at a time.
func (r *Run) All(ctx context.Context) error {
	var local, shared, kernels []Target
	for _, t := range r.Targets {
		switch {
		case t.UML != nil && t.UML.Hosts > 0:
			kernels = append(kernels, t)
		case t.UML != nil || t.FUSE != nil:
			shared = append(shared, t)
		default:
			local = append(local, t)
		}
	}
	slices.Reverse(shared) // guests take longest
	r.sideBySide(ctx, 1, local)
	r.sideBySide(ctx, max(1, r.Jobs), shared)
	r.sideBySide(ctx, 1, kernels)
	r.onceMore(ctx, r.one)
	return ctx.Err()
}

func (r *Run) sideBySide(ctx context.Context, jobs int, targets []Target) {
	var all sync.WaitGroup
	queue := make(chan Target)
	for range jobs {
		all.Go(func() {
			for t := range queue {
				r.turn(ctx, t, r.one)
			}
		})
	}
	for _, t := range targets {
		queue <- t
	}
	close(queue)
	all.Wait()
}

// turn surveys a target. If that was too little, it is put off, if that is wanted.
func (r *Run) turn(ctx context.Context, t Target, one func(context.Context, Target) Outcome) {
	if ctx.Err() != nil {
		return
	}
	o := r.timed(ctx, t, one)
	r.ending.Lock()
	defer r.ending.Unlock()
	if r.Again && o.thin() && ctx.Err() == nil {
		r.thin = append(r.thin, first{t, o})
		return
	}
	r.End(t, o)
}

// onceMore surveys what was put off, each target with the machine to itself.
func (r *Run) onceMore(ctx context.Context, one func(context.Context, Target) Outcome) {
	for _, before := range r.thin {
		o := before.outcome
		if ctx.Err() == nil {
			o = r.timed(ctx, before.target, one)
			o.AtFirst, o.Took = before.outcome.Unproven, o.Took+before.outcome.Took
		}
		r.End(before.target, o)
	}
}

func (r *Run) timed(ctx context.Context, t Target, one func(context.Context, Target) Outcome) Outcome {
	r.Begin(t)
	began := time.Now()
	o := one(ctx, t)
	o.Took = time.Since(began)
	return o
}

// thin says that nothing is known to be wrong, and something is not known to be right.
func (o *Outcome) thin() bool { return o.Err == nil && len(o.Deviations) == 0 && len(o.Unproven) > 0 }

func (r *Run) one(ctx context.Context, t Target) (o Outcome) {
	if o.Err = t.Lacks(); o.Err != nil {
		return o
	}
	settings, err := r.Settings(t.Survey)
	if err != nil {
		o.Err = err
		return o
	}
	s, err := Make(ctx, t, r.Where)
	if err != nil {
		o.Err = err
		return o
	}
	began := time.Now().UTC()
	o.File, o.Err = s.Survey(ctx, settings)
	if o.Err == nil && len(o.File.Targets) != 1 {
		o.File, o.Err = nil, errors.New("the survey has not surveyed the target; see its log")
	}
	if t.Refuse != "" && o.Err != nil && strings.Contains(o.Err.Error(), t.Refuse) {
		o.File, o.Err = r.refusal(t, began, strings.ReplaceAll(o.Err.Error(), s.Dir, ""))
	}
	if o.File != nil && o.Err == nil {
		o.Err = errors.Join(r.judge(t, &o), t.complete(o.File))
	}
	r.keepLogs(s)
	o.Err = errors.Join(o.Err, s.TakeDown())
	return o
}

// judge compares what was found with what is expected, and saves it.
func (r *Run) judge(t Target, o *Outcome) error {
	for i := range o.File.Targets {
		o.File.Targets[i].Name = t.Name
	}
	if r.BuiltIn {
		o.File.Lab = t.Name
	}
	if o.Deviations, o.Unproven = t.CompareFile(o.File); r.Hide {
		o.File.Anonymize()
	}
	o.Saved = filepath.Join(r.Out, t.Name+".json")
	return o.File.Save(o.Saved)
}

// dies says that a host is to be lost on the way.
func (t *Target) dies() bool {
	return t.UML != nil && slices.ContainsFunc(t.UML.Faults, func(f Fault) bool { return f.Kind == "death" })
}

// complete objects to a survey that ended early, unless it was to refuse the routes or a host was to be lost on the way.
func (t *Target) complete(f *result.File) error {
	switch {
	case t.Refuse != "":
		return nil
	case f.Incomplete != "" && !t.dies():
		return fmt.Errorf("the survey is incomplete: %s", f.Incomplete)
	case f.Incomplete == "" && t.dies():
		return errors.New("a host was to be lost, and the survey does not say so; was it over before?")
	}
	return nil
}

// refusal is the result of a survey that has refused the routes: what it said, and where. Of a guest nothing else is known.
func (r *Run) refusal(t Target, began time.Time, said string) (*result.File, error) {
	host, err := facts.ReadHost()
	if t.UML != nil {
		host = result.Host{OS: host.OS, Arch: host.Arch, Virtualization: "uml"}
	}
	return &result.File{
		Schema: result.Schema, Tool: r.Tool, Started: began, Host: host, Targets: []result.Target{},
		Incomplete: "the survey has refused the routes: " + said,
	}, err
}

// keepLogs saves what the survey and the guest said beside the result.
func (r *Run) keepLogs(s *Stand) {
	logs := []string{surveyLog, consoleName, faultLog}
	if u := s.Target.UML; u != nil && u.Hosts > 0 {
		logs = append(logs, filepath.Join(u.nodeName(0), faultLog))
		for node := range u.Hosts + 1 {
			logs = append(logs, filepath.Join(u.nodeName(node), consoleName), filepath.Join(u.nodeName(node), joinLog))
		}
	}
	for _, name := range logs {
		if data, err := os.ReadFile(filepath.Join(s.Dir, name)); err == nil && len(data) > 0 {
			os.WriteFile(filepath.Join(r.Out, s.Target.Name+"-"+strings.ReplaceAll(name, "/", "-")), data, 0o644)
		}
	}
}
