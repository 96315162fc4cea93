// Package survey puts a survey together: it looks at host and routes, makes a work directory in each target, runs
// the probes there, and removes what it made. The judging is the probes' own.
package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/claimbench/claimbench/bench"
	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/facts"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// Options says what to survey and how.
type Options struct {
	Targets   [][]string // the routes of each target; the first is what the target is called by
	Config    config.Config
	Version   string
	Progress  Progress
	Elsewhere Elsewhere // where the contenders are; nil is here

	BenchOnly bool     // no probes, and no verdict on protocols
	Protocols []string // that take part in the bench; none is those that each workload is about
	Full      bool     // the bench's sizes that take minutes
	Times     bool     // of the bench: keep when each trial was
	Draw      func(workload, protocol string, html []byte)

	lost   string // the hosts without which it goes on
	tooFew bool   // are left to go on
}

// Progress is told what happens. Nil functions are left out.
type Progress struct {
	Target  func(target string, steps int)           // a target begins: so many probes and workloads
	Probe   func(target, probe string)               // a probe or a workload begins
	Found   func(target string, f *result.Finding)   // a probe has ended
	Benched func(target string, rows []result.Bench) // a workload has ended
	Note    func(message string)                     // something that a person should know
	Ended   func(target string, t *result.Target)    // a target is done
}

// A TargetError is a target that could not be surveyed, or not to the end.
type TargetError struct {
	Path    string // the target, or the route to it that is at fault
	Entered bool   // every route was a directory when the survey began
	Err     error
}

func (e *TargetError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *TargetError) Unwrap() error { return e.Err }

// Run surveys the targets one after the other. The file holds what was found until then, whatever the error, which
// joins one TargetError for each target that failed. After an interruption the file says that it is incomplete.
func Run(ctx context.Context, o Options) (*result.File, error) {
	o.Progress.fill()
	host, err := facts.ReadHost()
	if err != nil {
		return nil, err
	}
	if o.Config.Seed == 0 {
		o.Config.Seed = rand.Uint64N(1<<53-1) + 1 // exact in every JSON reader
	}
	f := &result.File{
		Schema: result.Schema, Tool: Tool(o.Version), Started: time.Now().UTC(), Seed: o.Config.Seed,
		Conditions: o.Config.Conditions(), Host: host, Targets: []result.Target{},
	}
	began := time.Now()
	err = o.targets(ctx, f)
	f.DurationS = time.Since(began).Seconds()
	if ctx.Err() != nil {
		f.Incomplete = "interrupted"
	}
	if o.Elsewhere != nil {
		f.Hosts = o.Elsewhere.Joined()
		f.Incomplete = cmp.Or(f.Incomplete, o.Elsewhere.Lost())
	}
	return f, err
}

// Tool is this program.
func Tool(version string) result.Tool {
	t := result.Tool{Version: version, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				t.Commit = s.Value
			}
		}
	}
	return t
}

func (o *Options) targets(ctx context.Context, f *result.File) error {
	line, err := o.start(ctx, o.lineOf(o.processes()))
	if err != nil {
		return err
	}
	defer line.Close()
	var failed []error
	until := time.Now().Add(o.Config.Budget)
	for i, routes := range o.Targets {
		if ctx.Err() != nil {
			break
		}
		share := time.Until(until) / time.Duration(len(o.Targets)-i)
		t, err := o.target(ctx, line, f.Host, routes, share)
		if err != nil {
			failed = append(failed, targetError(routes[0], err))
		}
		if t != nil && (err == nil || len(t.Findings)+len(t.Bench) > 0) {
			f.Targets = append(f.Targets, *t)
			o.Progress.Ended(t.Name, t)
		}
	}
	return errors.Join(failed...)
}

func (o *Options) lineOf(contenders int) race.Config {
	return race.Config{Ops: Ops(), Contenders: contenders, HangAfter: o.Config.HangAfter, Seed: o.Config.Seed}
}

// Ops is the table of operations that contenders must be given.
func Ops() []race.Op { return slices.Concat(probes.Ops(), bench.Ops()) }

// processes is how many contenders to keep ready: scripts need three. Those of a workload come for it alone, since idle
// ones are no rest for a machine with one CPU; but on other hosts there is one line for all.
func (o *Options) processes() int {
	n := max(3, slices.Max(o.Config.Contenders))
	for _, routes := range o.Targets {
		n = max(n, 2*len(routes))
	}
	if o.Elsewhere != nil {
		for _, w := range o.workloads() {
			n = max(n, w.Contenders)
		}
	}
	return min(n, race.MaxContenders)
}

func targetError(path string, err error) error {
	var t *TargetError
	if errors.As(err, &t) {
		return t
	}
	return &TargetError{path, true, err}
}

// target surveys one target; it returns neither a target nor an error when it was interrupted before there was
// anything to tell. The contenders are the first to touch the target: should it hang, they can be abandoned.
func (o *Options) target(ctx context.Context, line race.Field, host result.Host, routes []string, share time.Duration) (*result.Target, error) {
	if err := line.Enter(ctx, routes...); ctx.Err() != nil {
		return nil, nil
	} else if err != nil {
		return nil, &TargetError{routeOf(err, routes), false, err}
	}
	t := &result.Target{Name: routes[0], Findings: []result.Finding{}}
	var w Site
	err := within(o.Config.HangAfter, "prepare", func() (err error) {
		w, err = o.prepare(ctx, t, host, routes)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = within(2*o.Config.HangAfter, "compare the routes", func() error { return w.SameEverywhere(ctx, o.Config.HangAfter) })
	if err == nil {
		err = o.all(ctx, line, w, t, time.Now().Add(share))
	}
	t.Sentence = sentence(t)
	// Contenders still have the last probe's directory open: on NFS its removal would leave .nfs files behind.
	err = errors.Join(err, line.Enter(context.WithoutCancel(ctx), "/"))
	removal := func() error { return w.Remove(context.WithoutCancel(ctx)) }
	if failed := within(o.removal(), "remove", removal); failed != nil {
		o.warn(t, "left behind: "+w.Paths()[0]+": "+oneLine(failed))
	}
	return t, err
}

// prepare learns what the routes are, and makes the work directory.
func (o *Options) prepare(ctx context.Context, t *result.Target, host result.Host, routes []string) (Site, error) {
	if o.Elsewhere != nil {
		return o.prepareElsewhere(ctx, t, host)
	}
	for _, r := range routes {
		route, err := facts.ReadRoute(r)
		if err != nil {
			return nil, err
		}
		t.Routes = append(t.Routes, route)
	}
	t.Scope, t.ScopeWhy = facts.Scope(host, t.Routes)
	o.surroundings(t, &host)
	for _, note := range RemoveLeftOvers(routes[0]) {
		o.Progress.Note(note)
	}
	w, err := makeWorkdir(absolute(routes))
	if err != nil {
		return nil, err
	}
	return w, nil
}

// surroundings warns of what endangers claims in a place, whatever its filesystem keeps.
func (o *Options) surroundings(t *result.Target, host *result.Host) {
	for i := range t.Routes {
		for _, w := range facts.Warnings(&t.Routes[i], host) {
			if !slices.Contains(t.Warnings, w) {
				o.warn(t, w)
			}
		}
	}
}

// within bounds what this process itself does in the target. A call that hangs is left behind with its thread.
func within(d time.Duration, what string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		return fmt.Errorf("%s: no answer within %v: the filesystem hangs; look at its server, and at dmesg", what, d)
	}
}

// removal is how long a removal may take: network filesystems were seen to need 20 s for a few thousand names.
func (o *Options) removal() time.Duration { return 6 * o.Config.HangAfter }

// warn tells a person now, and the reader of the result later.
func (o *Options) warn(t *result.Target, message string) {
	t.Warnings = append(t.Warnings, message)
	o.Progress.Note(message)
}

// routeOf is the route that an error names, or else the first.
func routeOf(err error, routes []string) string {
	var p *os.PathError
	if errors.As(err, &p) && slices.Contains(routes, p.Path) {
		return p.Path
	}
	return routes[0]
}

func absolute(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p
		if abs, err := filepath.Abs(p); err == nil {
			out[i] = abs
		}
	}
	return out
}

// all runs the probes and then the bench, which has a third of the time at least, and joins what they found. Some probes
// alone are no ground for a verdict on a protocol.
func (o *Options) all(ctx context.Context, line race.Field, w Site, t *result.Target, until time.Time) error {
	o.Progress.Target(t.Name, len(o.chosen(t))+len(o.workloads()))
	var probed error
	if !o.BenchOnly {
		probing := until
		if len(o.workloads()) > 0 {
			probing = probing.Add(-time.Until(until) / 3)
		}
		probed = o.probe(ctx, line, w, t, probing)
	}
	err := probed
	if err == nil {
		err = o.bench(ctx, line, w, t, until)
	}
	o.aftermath(ctx, t)
	if probed == nil && !o.BenchOnly && len(o.Config.Probes) == 0 {
		t.Protocols = Join(t)
	}
	return err
}

// probe runs the probes in their order.
func (o *Options) probe(ctx context.Context, line race.Field, w Site, t *result.Target, until time.Time) error {
	all := o.chosen(t)
	weights := 0
	for _, p := range all {
		weights += max(1, p.Weight)
	}
	for _, p := range all {
		if ctx.Err() != nil || !o.goesOn(ctx, t, p.Name) {
			return nil
		}
		o.Progress.Probe(t.Name, p.Name)
		per := min(o.Config.ProbeTime, time.Until(until)/time.Duration(weights))
		spare := max(0, time.Until(until)-per*time.Duration(weights))
		weights -= max(1, p.Weight)
		f, err := o.one(ctx, line, w, t, p, per, spare)
		if f.Promise != "" {
			t.Findings = append(t.Findings, f)
			o.Progress.Found(t.Name, &f)
		}
		if err != nil && ctx.Err() == nil && !o.lostMore() {
			return err
		}
	}
	return nil
}

// one runs a probe in a directory of its own.
func (o *Options) one(ctx context.Context, line race.Field, w Site, t *result.Target, p probes.Probe, per, spare time.Duration) (result.Finding, error) {
	if per <= 0 {
		return result.Finding{Promise: p.Name, Verdict: result.Unproven, Scope: t.Scope, Reason: "the budget was used up before this probe", Advice: "Repeat with a larger --budget."}, nil
	}
	var f result.Finding
	err := o.inside(ctx, line, w, t, p.Name, func(dirs []string) {
		c := &o.Config
		f = probes.Run(ctx, p, probes.Bench{
			Line: line, Routes: len(dirs), Scope: t.Scope, Contenders: o.contenders(len(dirs)), Rounds: c.Rounds, Time: per, Spare: spare,
			ScanShare: c.ScanShare, ColdRounds: c.ColdRounds, ColdPause: c.ColdPause, MinProof: c.MinContested, HoldWait: c.ReleaseWait, MaxWait: c.MaxWait, Disposable: o.disposable(t),
		})
	})
	return f, err
}

// inside runs something in a directory of its own, with the contenders in it, and removes the directory.
func (o *Options) inside(ctx context.Context, line race.Field, w Site, t *result.Target, name string, run func(dirs []string)) error {
	var dirs []string
	err := within(o.Config.HangAfter, "mkdir "+name, func() (err error) {
		dirs, err = w.Sub(ctx, name)
		return err
	})
	if err != nil {
		return err
	}
	if err := o.enter(ctx, line, dirs); err != nil {
		return err
	}
	run(dirs)
	if err := line.Enter(context.WithoutCancel(ctx), w.Paths()...); err != nil {
		return err
	}
	if err := within(o.removal(), "remove", func() error { return w.Clear(context.WithoutCancel(ctx), name) }); err != nil {
		o.warn(t, "clean-up after "+name+": "+oneLine(err)) // the target's own clean-up tries again
	}
	return nil
}

func oneLine(err error) string {
	return strings.Join(slices.Compact(strings.Split(err.Error(), "\n")), "; ")
}

// contenders are the numbers that race: with several routes, at least two on each, so that what happens within a
// route is told from what happens between them.
func (o *Options) contenders(routes int) []int {
	var out []int
	for _, n := range o.Config.Contenders {
		if routes > 1 {
			n = min(max(n, 2*routes), race.MaxContenders)
		}
		out = append(out, n)
	}
	return slices.Compact(out)
}

// enter takes the contenders to a directory that was just made over the first route, and that the others may be
// late to show.
func (o *Options) enter(ctx context.Context, line race.Field, dirs []string) error {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := line.Enter(ctx, dirs...)
		if !errors.Is(err, os.ErrNotExist) || ctx.Err() != nil || time.Since(began) > o.Config.HangAfter {
			return err
		}
	}
}

func (p *Progress) fill() {
	if p.Target == nil {
		p.Target = func(string, int) {}
	}
	if p.Probe == nil {
		p.Probe = func(string, string) {}
	}
	if p.Found == nil {
		p.Found = func(string, *result.Finding) {}
	}
	if p.Benched == nil {
		p.Benched = func(string, []result.Bench) {}
	}
	if p.Note == nil {
		p.Note = func(string) {}
	}
	if p.Ended == nil {
		p.Ended = func(string, *result.Target) {}
	}
}
