package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claimbench/claimbench/internal/race"
)

// A field is the contenders of all hosts: contender i races over route i % routes. It is a race.Field, whose methods
// become orders to the hosts. Words are kept here, and what changes in them is sent ahead of every order.
type field struct {
	f      *Fleet
	cfg    race.Config
	ops    map[string]*race.Op
	routes []route
	who    []race.Identity
	left   []int // processes left behind, by contender
	failed []error
	fits   []fit // that each contender goes by
	number int64
	words  words
}

// A route is one way of one host to the directory.
type route struct {
	host *host
	way  int
	name string // "host:path"
}

func (d *field) Contenders() int               { return d.cfg.Contenders }
func (d *field) Contender(i int) race.Identity { return d.who[i] }
func (d *field) Routes() int                   { return len(d.routes) }
func (d *field) Route(i int) int               { return i % len(d.routes) }
func (d *field) Words(i int) []uint64          { return d.words.of(i) }

func (d *field) Meets(op string) func(*race.Event) bool { return d.ops[op].Meets }

func (d *field) Name() int64 {
	d.number++
	return d.number
}

func (d *field) Abandoned() int {
	n := 0
	for _, k := range d.left {
		n += k
	}
	return n
}

func (d *field) host(i int) *host { return d.routes[d.Route(i)].host }

// homes are the ids of the first contenders' hosts.
func (d *field) homes(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = d.host(i).id
	}
	return ids
}

// start starts the contenders on the hosts that are there, in the place of any that are.
func (d *field) start(ctx context.Context) error {
	n := d.cfg.Contenders
	if d.routes = d.f.routes(); len(d.routes) == 0 {
		return errors.New(d.f.Lost())
	}
	d.words.forget()
	d.who, d.left, d.failed, d.fits = make([]race.Identity, n), make([]int, n), make([]error, n), make([]fit, n)
	for i := range n {
		d.setClock(i)
	}
	homes := d.homes(n)
	return d.f.each(d.f.living(), func(h *host) error {
		e := errand{Do: doStart, Homes: homes, HangAfter: int64(d.cfg.HangAfter), Seed: d.cfg.Seed, Seen: d.words.number()}
		for i := range n {
			if r := d.routes[d.Route(i)]; r.host == h {
				e.Contenders, e.Route = append(e.Contenders, i), append(e.Route, r.way)
			}
		}
		ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(len(e.Contenders))*time.Second)
		defer cancel()
		a, err := d.f.errand(ctx, h, &e)
		if err == nil && len(a.Whos) != len(e.Contenders) {
			err = fmt.Errorf("host %s started %d contenders of %d", h.name(), len(a.Whos), len(e.Contenders))
		}
		for k := range a.Whos {
			if k < len(e.Contenders) {
				d.who[e.Contenders[k]] = a.Whos[k]
				d.who[e.Contenders[k]].Host = h.name()
			}
		}
		return err
	})
}

// order has a contender do something, once the words that were written here are on their way.
func (d *field) order(ctx context.Context, i int, o order) (answer, error) {
	o.Seen = d.words.number()
	h := d.host(i)
	switch o.Do {
	case toEnter, toDo, toBegin:
		o.Clock = d.setClock(i)
	}
	a, err := d.f.ask(ctx, h, contenderAt(d.f.session, h.id, i), &o)
	if a.Who.PID != 0 {
		d.who[i], d.left[i] = a.Who, a.Left
		d.who[i].Host = h.name()
	}
	return a, errors.Join(err, d.words.take(i, a.Words))
}

// setClock is what a contender is to go by from now on, which is at nothing.
func (d *field) setClock(i int) *race.Clock {
	d.fits[i] = d.host(i).kernel.current()
	c := d.fits[i].clock
	return &c
}

// Clock is race.Line's. Two fits of one kernel's clock are two clocks.
func (d *field) Clock(i int) (which int, unsure int64) {
	f := &d.fits[i]
	return f.number, f.doubt(race.Now())
}

// bounded is for orders that nothing can keep from an answer but a hanging filesystem, which the host notices first.
func (d *field) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*d.cfg.HangAfter+patience)
}

// all gives contenders their orders at once. When one fails, the others, which may wait for it, are told to give up.
func (d *field) all(ctx context.Context, who []int, what func(i int) order, then func(i int, a answer) error) error {
	errs := make([]error, len(who))
	var wg sync.WaitGroup
	var once sync.Once
	for k, i := range who {
		wg.Go(func() {
			a, err := d.order(ctx, i, what(i))
			if err == nil && then != nil {
				err = then(i, a)
			}
			if errs[k] = err; err != nil {
				once.Do(func() { d.giveUp(ctx, who) })
			}
		})
	}
	wg.Wait()
	return firstOf(errs)
}

// giveUp has the contenders end what they are at.
func (d *field) giveUp(ctx context.Context, who []int) {
	bound, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	// A host that does not hear this is lost soon, and then nobody waits for it.
	_ = d.f.each(d.f.living(), func(h *host) error {
		there := slices.DeleteFunc(slices.Clone(who), func(i int) bool { return d.host(i) != h })
		_, err := d.f.errand(bound, h, &errand{Do: doCancel, Contenders: there, Heats: d.number})
		return err
	})
}

// firstOf is the error that says most: a host that is lost, or a filesystem that hangs, before what follows from it.
func firstOf(errs []error) error {
	rank := func(err error) int {
		var lost *LostError
		var hung *race.HungError
		switch {
		case errors.As(err, &lost):
			return 0
		case errors.As(err, &hung):
			return 1
		default:
			return 2
		}
	}
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return slices.MinFunc(errs, func(a, b error) int { return rank(a) - rank(b) })
}

func (d *field) everybody() []int {
	all := make([]int, d.cfg.Contenders)
	for i := range all {
		all[i] = i
	}
	return all
}

// Enter takes names that begin with those of the routes; "/" is where nobody stands in anything of ours.
func (d *field) Enter(ctx context.Context, dirs ...string) error {
	orders := make([]order, len(d.routes))
	for r := range d.routes {
		o, err := d.routes[r].enter(dirs[r%len(dirs)])
		if err != nil {
			return err
		}
		orders[r] = o
	}
	bound, cancel := d.bounded(ctx)
	defer cancel()
	who := d.everybody()
	if orders[0].Leave { // whoever is lost stands nowhere
		who = slices.DeleteFunc(who, func(i int) bool { return d.host(i).lost() != nil })
	}
	return d.all(bound, who, func(i int) order { return orders[d.Route(i)] }, nil)
}

func (r *route) enter(dir string) (order, error) {
	if dir == "/" {
		return order{Do: toEnter, Leave: true}, nil
	}
	rest, ok := strings.CutPrefix(dir, r.name)
	if !ok {
		return order{}, fmt.Errorf("%s is not in %s", dir, r.name)
	}
	o := order{Do: toEnter}
	if rest != "" {
		work, sub, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		o.Nonce, o.Sub = strings.TrimPrefix(work, dirPrefix), sub
	}
	return o, nil
}

// Do, Begin, Await and the rest are race.Line's.
func (d *field) Do(ctx context.Context, who int, op string, number int64, arg uint64) (race.Event, error) {
	d.words.send()
	return d.wait(ctx, who, order{Do: toDo, Op: op, Number: number, Arg: arg})
}

func (d *field) Begin(who int, op string, number int64, arg uint64) {
	d.words.send()
	bound, cancel := d.bounded(context.Background())
	defer cancel()
	_, d.failed[who] = d.order(bound, who, order{Do: toBegin, Op: op, Number: number, Arg: arg})
}

func (d *field) Await(ctx context.Context, who int, op string) (race.Event, error) {
	if err := d.failed[who]; err != nil {
		return race.Event{}, err
	}
	d.words.send()
	return d.wait(ctx, who, order{Do: toAwait, Op: op})
}

// wait is for orders that take as long as the contender does. When the context ends, the host ends the attempt.
func (d *field) wait(ctx context.Context, who int, o order) (race.Event, error) {
	a, err := d.order(ctx, who, o)
	if ctx.Err() != nil {
		d.cancel(ctx, who)
		return race.Event{}, ctx.Err()
	}
	if len(a.Events) == 0 {
		return race.Event{}, err
	}
	events, bad := unpack[race.Event](a.Events, 1)
	return events[0], errors.Join(err, bad)
}

// cancel returns when the contenders are at nothing any more, or were replaced.
func (d *field) cancel(ctx context.Context, who ...int) {
	d.giveUp(ctx, who)
	bound, stop := d.bounded(ctx)
	defer stop()
	for _, i := range who {
		// Orders are carried out one after the other: when this one is, the one before is over.
		_, _ = d.order(bound, i, order{Do: toPend})
	}
}

func (d *field) state(i int) (answer, error) {
	bound, cancel := d.bounded(context.Background())
	defer cancel()
	return d.order(bound, i, order{Do: toPend})
}

func (d *field) Pending(who int) (pending bool, invoke int64) {
	a, err := d.state(who)
	return err == nil && a.Pending, a.Invoke
}

func (d *field) Gone(i int) bool {
	a, err := d.state(i)
	return err != nil || a.Gone
}

func (d *field) Stopped(i int) bool {
	a, err := d.state(i)
	return err == nil && a.Stopped
}

func (d *field) Kill(i int) {
	bound, cancel := d.bounded(context.Background())
	defer cancel()
	_, _ = d.order(bound, i, order{Do: toKill}) // of a lost host everything is gone
}

func (d *field) Restart(ctx context.Context, i int) error {
	bound, cancel := d.bounded(ctx)
	defer cancel()
	d.failed[i] = nil
	_, err := d.order(bound, i, order{Do: toRestart})
	return err
}

func (d *field) Continue(i int) {
	bound, cancel := d.bounded(context.Background())
	defer cancel()
	_, _ = d.order(bound, i, order{Do: toContinue}) // what comes of it, Await tells
}

func (d *field) Became(i int) bool {
	bound, cancel := d.bounded(context.Background())
	defer cancel()
	a, err := d.order(bound, i, order{Do: toBecame})
	return err == nil && a.Became
}

func (d *field) EndChild(i int) {
	bound, cancel := d.bounded(context.Background())
	defer cancel()
	_, _ = d.order(bound, i, order{Do: toEndChild}) // of a lost host it ends by itself
}

// Close leaves the contenders to their hosts, which end them when they leave.
func (d *field) Close() error { return nil }
