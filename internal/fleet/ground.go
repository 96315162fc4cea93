package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/survey"
)

// A Fleet is where a survey takes place when it is elsewhere: it implements survey.Elsewhere.

// Target is the routes of the one target there is, as the survey is to name them.
func (f *Fleet) Target() []string {
	var names []string
	for _, r := range f.routes() {
		names = append(names, r.name)
	}
	return names
}

// routes are those of the hosts that are not lost.
func (f *Fleet) routes() []route {
	var all []route
	for _, h := range f.living() {
		for way := range h.hello.Routes {
			all = append(all, route{h, way, h.name() + ":" + path.Clean(h.hello.Routes[way].Path)})
		}
	}
	return all
}

// Start has the hosts start their contenders.
func (f *Fleet) Start(ctx context.Context, cfg race.Config) (race.Field, error) {
	d := &field{f: f, cfg: cfg, ops: opsOf(cfg.Ops, nil)}
	d.words.publish = func(n news) {
		// That it did not arrive is seen by the order that waits for it.
		_ = f.point.nc.Publish(prefix+f.session+written, encode(n))
	}
	f.field = d
	return d, d.start(ctx)
}

// Regroup has the survey go on without the hosts that were lost, with new contenders on the ground that is there.
func (f *Fleet) Regroup(ctx context.Context) error {
	for {
		f.sendAway()
		routes := f.routes()
		if len(routes) == 0 || !slices.ContainsFunc(routes, func(r route) bool { return r.host != routes[0].host }) {
			return errors.New(f.Lost())
		}
		f.ground.handOver(ctx, routes)
		err := f.field.start(ctx)
		if !slices.ContainsFunc(routes, func(r route) bool { return r.host.lost() != nil }) {
			return err
		}
	}
}

// sendAway tells lost hosts to leave, as they may live. None is waited for.
func (f *Fleet) sendAway() {
	for _, h := range f.hosts {
		if h.lost() != nil {
			_ = f.point.nc.PublishRequest(errandAt(f.session, h.id), answerAt(f.session, h.id), encode(errand{Do: doLeave}))
		}
	}
}

// handOver has the work directory seen over these ways only, and owned by the host of the first.
func (w *ground) handOver(ctx context.Context, routes []route) {
	w.mu.Lock()
	w.routes = routes
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := w.do(ctx, &routes[0], errand{Do: doSign}); err != nil {
		w.f.Log("the work directory still bears the mark of a host that may be lost: " + err.Error())
	}
}

// Look is what the hosts that are there said of themselves and their ways to the directory.
func (f *Fleet) Look() (routes []result.Route, hosts []result.Host, warnings []string) {
	for _, h := range f.living() {
		host := h.hello.Host
		host.Name = h.name()
		hosts = append(hosts, host)
		for _, r := range h.hello.Routes {
			r.Host = h.name()
			routes = append(routes, r)
		}
		for _, w := range h.hello.Warnings {
			warnings = append(warnings, h.name()+": "+w)
		}
	}
	return routes, hosts, warnings
}

// Joined is what the result keeps of the hosts.
func (f *Fleet) Joined() []result.Joined {
	var all []result.Joined
	for _, h := range f.hosts {
		fit, now := h.kernel.current(), race.Now()
		j := result.Joined{Host: h.hello.Host, OwnKernel: h.kernel.own}
		j.Host.Name = h.name()
		if !h.kernel.own {
			unsure := float64(fit.doubt(now)) / 1e3
			j.OffsetS, j.UnsureUS, j.DriftPPM = float64(fit.clock.Offset)/1e9, &unsure, float64(fit.clock.Drift)/(1<<40)*1e6
		}
		h.mu.Lock()
		j.TripUS = float64(h.trip) / 1e3
		h.mu.Unlock()
		if err := h.lost(); err != nil {
			j.Lost, j.Held = err.Error(), h.held
		}
		all = append(all, j)
	}
	return all
}

// Lost names the hosts that were lost, and why; "" when all are there.
func (f *Fleet) Lost() string {
	var all []string
	for _, h := range f.hosts {
		if err := h.lost(); err != nil {
			all = append(all, err.Error())
		}
	}
	return strings.Join(all, "; ")
}

// Make removes what surveys that were killed have left, makes the work directory over the first way there is, and
// returns it.
func (f *Fleet) Make(ctx context.Context) (survey.Site, []string, error) {
	w := &ground{f: f, nonce: survey.NewNonce(), routes: f.routes()}
	if len(w.routes) == 0 {
		return nil, nil, errors.New(f.Lost())
	}
	f.ground = w
	first := &w.routes[0]
	a, err := f.errand(ctx, first.host, &errand{Do: doTidy, Way: first.way})
	if err != nil {
		return nil, nil, err
	}
	_, err = w.do(ctx, first, errand{Do: doMake})
	for i := range a.Notes {
		a.Notes[i] = plain(a.Notes[i])
	}
	return w, a.Notes, err
}

// A ground is a work directory seen over the routes of all hosts.
type ground struct {
	f     *Fleet
	nonce string

	mu     sync.Mutex
	routes []route
}

func (w *ground) ways() []route {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.routes
}

func (w *ground) do(ctx context.Context, r *route, e errand) (answer, error) {
	e.Way, e.Nonce = r.way, w.nonce
	return w.f.errand(ctx, r.host, &e)
}

// Paths are the names of the directory over the routes.
func (w *ground) Paths() []string { return w.under("") }

func (w *ground) under(sub string) []string {
	var all []string
	for _, r := range w.ways() {
		all = append(all, path.Join(r.name, dirPrefix+w.nonce, sub))
	}
	return all
}

// SameEverywhere proves that every route reaches the directory: the manifest that was written over the first is read
// over the others.
func (w *ground) SameEverywhere(ctx context.Context, patience time.Duration) error {
	err := w.f.each(w.f.living(), func(h *host) error {
		for _, r := range w.ways() {
			if r.host == h {
				if err := w.seen(ctx, &r, patience); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		w.keepVigil(ctx, patience/2)
	}
	return err
}

func (w *ground) seen(ctx context.Context, r *route, patience time.Duration) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		a, err := w.do(ctx, r, errand{Do: doSee})
		switch {
		case err != nil:
			return &survey.TargetError{Path: r.name, Entered: true, Err: err}
		case a.Seen, ctx.Err() != nil:
			return nil
		case time.Since(began) > patience:
			return fmt.Errorf("%s does not reach the directory of %s: a file made there is not seen here within %v; give both hosts the same directory with --dir", r.name, w.ways()[0].name, patience)
		}
	}
}

// Sub makes a fresh directory for one probe.
func (w *ground) Sub(ctx context.Context, name string) ([]string, error) {
	_, err := w.do(ctx, &w.ways()[0], errand{Do: doSub, Sub: name})
	return w.under(name), err
}

// Clear removes it again, over each route in turn until nothing is left: what was made over one may be hidden from
// another by its caches.
func (w *ground) Clear(ctx context.Context, name string) error {
	return w.overAny(ctx, errand{Do: doClear, Sub: name})
}

// Remove removes the work directory.
func (w *ground) Remove(ctx context.Context) error { return w.overAny(ctx, errand{Do: doRemove}) }

func (w *ground) overAny(ctx context.Context, e errand) error {
	var err error
	for range 5 {
		err = nil
		there := slices.DeleteFunc(slices.Clone(w.ways()), func(r route) bool { return r.host.lost() != nil })
		for i := range there {
			if _, bad := w.do(ctx, &there[i], e); !errors.Is(bad, os.ErrNotExist) && !errors.Is(bad, unix.ESTALE) {
				err = errors.Join(err, bad)
			}
		}
		if err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}
