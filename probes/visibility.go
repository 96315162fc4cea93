package probes

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
)

var visibility = Probe{
	Name: "visibility",
	Promise: "What one contender changes is seen by every other at once: a new file and its content, a removal, a replacement, a new directory, " +
		"new times; and a name that always exists never looks absent.",
	Why: "A claim that is not seen is taken again, and one that is gone is waited for: attribute and negative-entry caches have hidden " +
		"files for 30 s, and for 420 s. An owner whose renewal is not seen is replaced while it lives.",
	How: "A contender changes names, each in a directory of its own, and announces each change when it has returned; contenders over every other " +
		"route, and another over its own, look from then on until they see it: by open, by stat, in a listing, by stat after a listing; with and " +
		"without a look before the change. Then a name is replaced by rename many times a second while the others look at it. Each change is a round for each who looks, and so is each look at the name that is replaced. " +
		"Content must be seen by the first open after the close; all else within a second or so. What is seen later than at once is in the figures.",
	Control: "changes that are announced and not made, and a replacement that unlinks first",
	Broken: "Make the client ask the server: on NFS mount with lookupcache=none and noac (or actimeo=0), on FUSE set the attribute, entry and negative " +
		"time-outs to 0, and survey again. Where content-stale was seen between two NFSv4 mounts of one client, they hold delegations that the server " +
		"does not recall for each other: survey between two clients, or set fs.leases-enable to 0 on the server. Otherwise use " +
		"generations, whose exclusive create decides, with a slack well above the slowest figure. Where touch-late was seen, a renewed claim looks " +
		"expired: no protocol that expires is safe here.",
	Refused: "Nothing can be changed here: see excl-create.",
	Ops:     append(watchOps, replaceOps...),
	Run:     runVisibility,
}

// maxWait is how long a change is waited for: see Bench.MaxWait.
const maxWait = 5 * time.Second

// enoughLooks must have shown nothing wrong.
const enoughLooks = 100

// idleWait is how long a change that is not made is waited for.
const idleWait = 10 * time.Millisecond

func runVisibility(ctx context.Context, b *Bench, f *result.Finding) {
	total, control, lags := newEvidence("visibility"), newEvidence("visibility"), newLateness()
	err := b.idleChanges(ctx, control, lags)
	if err == nil {
		err = b.allChanges(ctx, total, lags)
	}
	if err == nil {
		err = b.replacements(ctx, f, total, control, lags)
	}
	decide(f, total, control, enoughLooks, err)
	lags.conclude(f, total, control)
}

// wait is how long a change is waited for.
func (b *Bench) wait() time.Duration {
	if b.MaxWait > 0 {
		return b.MaxWait
	}
	return maxWait
}

// watchers are the contenders that look at what a writer does: one over every route, that of the writer included.
func (b *Bench) watchers(writer int) []int {
	routes := max(1, b.Routes)
	var all []int
	for route := range routes {
		who := route
		if who == writer {
			who += routes
		}
		if who < b.Line.Contenders() {
			all = append(all, who)
		}
	}
	return all
}

// idleChanges is the control: every spot must be flagged.
func (b *Bench) idleChanges(ctx context.Context, control *evidence, lags *lateness) error {
	began := time.Now()
	all, err := b.watchOnce(ctx, 0, true, idleWait)
	for i := range all {
		v, _ := all[i].judge()
		control.watch(b, &all[i], v)
		if !v.failed && !v.refused && !all[i].noted() {
			lags.controls++
		}
	}
	control.first = time.Since(began)
	return err
}

// allChanges makes passes, the contenders of the routes taking turns as the writer.
func (b *Bench) allChanges(ctx context.Context, e *evidence, lags *lateness) error {
	routes := max(1, b.Routes)
	until := time.Now().Add(b.Time / 20)
	for pass := 0; e.wantsMore(pass, routes, until); pass++ {
		all, err := b.watchOnce(ctx, pass%routes, false, b.wait())
		for i := range all {
			v, lag := all[i].judge()
			e.watch(b, &all[i], v)
			lags.add(b, &all[i], v, lag)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watchOnce lets one contender change every spot, and returns what each watcher saw of it.
func (b *Bench) watchOnce(ctx context.Context, writer int, idle bool, wait time.Duration) (all []watched, err error) {
	do := errand{writer: writer, slice: min(wait, watchSlice), idle: idle}
	name, watchers := b.Line.Name(), b.watchers(writer)
	defer func() { err = b.settle(ctx, err, append(watchers, writer), "visibility:clean", name) }()
	if _, err := b.Line.Do(ctx, writer, "visibility:prepare", name, do.arg()); err != nil {
		return nil, err
	}
	ready := time.Now().Add(wait)
	for _, who := range watchers {
		if err := b.lookBefore(ctx, who, name, do, ready); err != nil {
			return nil, err
		}
	}
	for _, who := range watchers {
		b.Line.Begin(who, "visibility:watch", name, do.arg())
	}
	if _, err := b.Line.Do(ctx, writer, "visibility:change", name, do.arg()); err != nil {
		return nil, err
	}
	if err := b.watchOn(ctx, watchers, name, do, time.Now().Add(wait)); err != nil {
		return nil, err
	}
	if idle {
		wait = 0 // one look at what was not made is enough
	}
	return b.watched(int(name), writer, watchers, wait), nil
}

// lookBefore lets a watcher look until it sees everything as the writer left it, or no longer waits for it.
func (b *Bench) lookBefore(ctx context.Context, who int, name int64, do errand, until time.Time) error {
	for do.anew = true; ; time.Sleep(time.Millisecond) {
		ev, err := b.Line.Do(ctx, who, "visibility:look-before", name, do.arg())
		if err != nil || ev.Errno != uint32(unix.EAGAIN) || time.Now().After(until) {
			return err
		}
		do.anew = false
	}
}

// watchOn waits for the watchers, which report from time to time, until each has seen everything or the time is up.
func (b *Bench) watchOn(ctx context.Context, watchers []int, name int64, do errand, until time.Time) error {
	for open := slices.Clone(watchers); len(open) > 0; {
		var again []int
		for _, who := range open {
			ev, err := b.Line.Await(ctx, who, "visibility:watch")
			if err != nil {
				return err
			}
			if ev.Errno == uint32(unix.EAGAIN) && time.Now().Before(until) {
				again = append(again, who)
			}
		}
		for _, who := range again {
			b.Line.Begin(who, "visibility:watch", name, do.arg())
		}
		open = again
	}
	return nil
}

// watched copies the records out of the words.
func (b *Bench) watched(round, writer int, watchers []int, wait time.Duration) (all []watched) {
	his := recordsOf[changeRecord](b.Line.Words(writer))
	for _, who := range watchers {
		for i, seen := range recordsOf[watchRecord](b.Line.Words(who))[:len(spots)] {
			all = append(all, watched{spots[i], round, writer, who, his[i].Change, seen, wait})
		}
	}
	return all
}

// settle lets the last of the contenders clean up. After an error it replaces those that are still at something instead.
func (b *Bench) settle(ctx context.Context, err error, involved []int, clean string, name int64) error {
	ctx = context.WithoutCancel(ctx) // each step is bounded by itself
	if err == nil {
		_, err = b.Line.Do(ctx, involved[len(involved)-1], clean, name, 0)
		return err
	}
	for _, who := range involved {
		if pending, _ := b.Line.Pending(who); pending {
			err = errors.Join(err, b.Line.Restart(ctx, who))
		}
	}
	return err
}
