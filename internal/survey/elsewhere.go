package survey

import (
	"context"
	"slices"
	"time"

	"github.com/claimbench/claimbench/internal/facts"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// Elsewhere is other hosts, on which the contenders are. A survey of them has one target.
type Elsewhere interface {
	// Start starts the contenders there.
	Start(context.Context, race.Config) (race.Field, error)

	// Look says what the routes are, which name their hosts, what those are, and what endangers claims there.
	Look() (routes []result.Route, hosts []result.Host, warnings []string)

	// Make makes a work directory in the target. notes are for a person.
	Make(context.Context) (site Site, notes []string, err error)

	// Regroup has the same field and site go on without the hosts that were lost. It is an error if too few are left.
	Regroup(context.Context) error

	// Aftermath waits for what there is to learn of lost hosts, and releases what the hosts hold in the site.
	Aftermath(context.Context) []result.Bench

	// Joined is what the result keeps of the hosts; Lost names those that are no longer there, or is "".
	Joined() []result.Joined
	Lost() string
}

// A Site is the one directory of claimbench's own inside a target, seen over each of its routes.
type Site interface {
	// Paths are its names over the routes.
	Paths() []string

	// SameEverywhere proves that each route reaches it and can write there, which may take a moment.
	SameEverywhere(ctx context.Context, patience time.Duration) error

	// Sub makes a fresh directory in it, and returns its name over each route; Clear removes that, and Remove everything.
	Sub(ctx context.Context, name string) ([]string, error)
	Clear(ctx context.Context, name string) error
	Remove(ctx context.Context) error
}

func (o *Options) start(ctx context.Context, c race.Config) (race.Field, error) {
	if o.Elsewhere != nil {
		return o.Elsewhere.Start(ctx, c)
	}
	line, err := race.Start(c)
	if err != nil {
		return nil, err
	}
	return line, nil
}

func (o *Options) prepareElsewhere(ctx context.Context, t *result.Target, host result.Host) (Site, error) {
	routes, hosts, warnings := o.Elsewhere.Look()
	t.Routes = routes
	t.Scope, t.ScopeWhy = facts.Scope(host, t.Routes, hosts...)
	for _, w := range warnings {
		if !slices.Contains(t.Warnings, w) {
			o.warn(t, w)
		}
	}
	site, notes, err := o.Elsewhere.Make(ctx)
	for _, note := range notes {
		o.Progress.Note(note)
	}
	return site, err
}

// lostMore says that a host was lost of which nobody has been told yet.
func (o *Options) lostMore() bool { return o.Elsewhere != nil && o.Elsewhere.Lost() != o.lost }

// goesOn regroups the hosts when some were lost, and says so. It is false when too few are left to learn anything.
func (o *Options) goesOn(ctx context.Context, t *result.Target, next string) bool {
	if o.tooFew || !o.lostMore() {
		return !o.tooFew
	}
	lost := o.Elsewhere.Lost()
	if err := o.Elsewhere.Regroup(ctx); err != nil {
		o.tooFew = true
		o.warn(t, "from "+next+" on nothing was measured: "+oneLine(err))
		return false
	}
	o.lost = lost
	routes, hosts, _ := o.Elsewhere.Look()
	t.Scope, t.ScopeWhy = facts.Scope(result.Host{}, routes, hosts...)
	o.warn(t, "from "+next+" on the others are alone: "+o.lost)
	return true
}

// aftermath adds what became of the claims of lost hosts.
func (o *Options) aftermath(ctx context.Context, t *result.Target) {
	if o.Elsewhere == nil {
		return
	}
	rows := o.Elsewhere.Aftermath(ctx)
	for i := range rows {
		rows[i].Scope = t.Scope
	}
	if len(rows) > 0 {
		t.Bench = append(t.Bench, rows...)
		o.Progress.Benched(t.Name, rows)
	}
}
