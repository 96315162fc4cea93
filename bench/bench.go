// Package bench runs claim protocols under contention: real processes, real deaths, the real directory.
//
// Contenders are processes on a race.Line. What they do they record in shared memory, never in the target, and a pure
// judge counts it. A trial that something else went wrong with is void: it is counted apart, with the reason, and
// is no pass.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// A Workload shows one thing about claim protocols.
type Workload struct {
	Name       string
	Shows      string
	Contenders int // that it needs on the line; scale makes do with fewer
	leases     bool
	run        func(*bencher) error
}

// All is every workload, in the order of the tables.
var All = []Workload{forty, storm, takeover, forced, deaths, stall, unrelated, scale, peersWork}

// Find returns the workload of that name.
func Find(name string) (Workload, bool) {
	for _, w := range All {
		if w.Name == name {
			return w, true
		}
	}
	return Workload{}, false
}

// Options say where and how much. The line's contenders stand in the directory already.
type Options struct {
	Line      race.Field
	Scope     result.Scope
	Seed      uint64
	Protocols []string // none is those that the workload is about
	Trials    int      // of each protocol; 0 is the workload's own number
	Full      bool     // the sizes that take minutes
	Times     bool     // keep when each trial was
	TTL       time.Duration
	Until     time.Time // when to begin no other trial; zero is never

	// Draw is given the first history of a row that no sequential order explains, as HTML; of protocols that are known to
	// be wrong only if they were asked for. Nil leaves it out.
	Draw func(workload, protocol string, html []byte)
}

// usualTTL is long beside what a claim takes, and short enough to be waited for.
const usualTTL = 500 * time.Millisecond

// Run runs one workload. After an error, or when the context ends, the rows hold what was counted until then.
func Run(ctx context.Context, w Workload, o Options) ([]result.Bench, error) {
	if n := o.Line.Contenders(); n < w.Contenders && w.Name != scale.Name {
		return nil, fmt.Errorf("%s needs %d contenders, and there are %d", w.Name, w.Contenders, n)
	}
	if o.TTL == 0 {
		o.TTL = usualTTL
	}
	b := &bencher{Options: o, ctx: ctx, rng: rand.New(rand.NewPCG(o.Seed, 1)), rows: map[string]*row{}, abandoned: o.Line.Abandoned()}
	err := b.run(w)
	rows := inOrder(b.rows)
	for i := range rows {
		rows[i].Scope = o.Scope
	}
	return rows, errors.Join(err, b.leave())
}

// A bencher is a workload under way.
type bencher struct {
	Options
	ctx       context.Context
	rng       *rand.Rand
	rows      map[string]*row
	dirs      []int64 // the claim directories that were made
	abandoned int     // contenders that were left behind before
}

func (b *bencher) run(w Workload) error {
	if w.leases {
		if err := b.fitTTL(); err != nil {
			return err
		}
	}
	return w.run(b)
}

// fitTTL makes leases long enough for the filesystem's clock and its distance (reserve, engine.Params).
func (b *bencher) fitTTL() error {
	b.give(0, order{Trial: b.newDir(), TTL: int64(b.TTL), Clock: 1})
	ev, err := b.Line.Do(b.ctx, 0, work, b.Line.Name(), 0)
	if err == nil {
		err = refusedBy(0, &ev)
	}
	b.TTL = max(b.TTL, 10*time.Duration(ev.Saw))
	return err
}

// protocols are those asked for, or else the engine's.
func (b *bencher) protocols() []string {
	if len(b.Protocols) > 0 {
		return b.Protocols
	}
	var all []string
	for _, s := range engine.Protocols {
		all = append(all, s.Name)
	}
	return all
}

func (b *bencher) trials(usual int) int {
	if b.Trials > 0 {
		return b.Trials
	}
	return usual
}

// row is made when it is first asked for.
func (b *bencher) row(workload, protocol, variant string, contenders, keys int) *row {
	name := workload + "\x00" + protocol + "\x00" + variant
	r := b.rows[name]
	if r == nil {
		r = newRow(workload, protocol, variant)
		r.Contenders, r.Keys, r.routes = contenders, keys, b.Line.Routes()
		b.rows[name] = r
	}
	return r
}

// order has the settings that all workloads share.
func (b *bencher) order(protocol string, trial int64, keys int) order {
	return order{
		Entrant: int64(entrantNamed(protocol)), Trial: trial, Keys: int64(keys),
		TTL: int64(b.TTL), Poll: int64(b.TTL / 20), Linger: int64(200 * time.Microsecond),
	}
}

// newDir is the number of a claim directory that was not used before.
func (b *bencher) newDir() int64 {
	n := b.Line.Name()
	b.dirs = append(b.dirs, n)
	return n
}

// give hands a contender its order, and clears what it recorded before.
func (b *bencher) give(who int, o order) {
	words := b.Line.Words(who)
	*orderIn(words) = o
	clear(recordsIn(words)[:max(o.Keys, 1)])
}

// together has the first n contenders carry out an order at the same instant. Of many keys each begins with another.
func (b *bencher) together(n int, o order) error {
	return b.each(n, func(i int) order {
		o.Start = o.Keys * int64(i) / int64(n)
		return o
	})
}

// each has the first n contenders carry out orders of their own at the same instant.
func (b *bencher) each(n int, of func(i int) order) error {
	for i := range n {
		b.give(i, of(i))
	}
	round, err := b.Line.Trial(b.ctx, work, n, 0)
	for i := range round.Events {
		if err == nil {
			err = refusedBy(i, &round.Events[i])
		}
	}
	return err
}

// refusedBy is what the directory refused a contender, beside claims.
func refusedBy(who int, ev *race.Event) error {
	switch {
	case ev.Errno == 0:
		return nil
	case ev.Unready:
		return fmt.Errorf("contender %d cannot enter the claim directory: %w", who, unix.Errno(ev.Errno))
	default:
		return fmt.Errorf("contender %d: %w", who, unix.Errno(ev.Errno))
	}
}

// alone has one contender carry out an order.
func (b *bencher) alone(who int, o order) error {
	b.give(who, o)
	return b.carriedOut(who)
}

// carriedOut has a contender carry out the order that it was given.
func (b *bencher) carriedOut(who int) error {
	ev, err := b.Line.Do(b.ctx, who, work, b.Line.Name(), 0)
	if err == nil {
		err = refusedBy(who, &ev)
	}
	return err
}

// leave has all contenders close what they have open, and removes the claim directories. What hangs is not asked twice.
func (b *bencher) leave() error {
	b.ctx = context.WithoutCancel(b.ctx)
	all := b.Line.Contenders()
	if err := b.each(all, func(int) order { return order{Leave: 1} }); err != nil {
		var hung *race.HungError
		if errors.As(err, &hung) {
			return err
		}
		for i := range all { // one is gone, with its host perhaps: what the others hold open must not stay
			_ = b.alone(i, order{Leave: 1})
		}
		return err
	}
	for left := b.dirs; len(left) > 0; {
		n := min(all, len(left))
		if err := b.each(n, func(i int) order { return order{Remove: 1, Trial: left[i]} }); b.hangs(err) {
			return err
		}
		left = left[n:]
	}
	return nil
}

// over says that no other trial is to begin.
func (b *bencher) over() bool { return !b.Until.IsZero() && time.Now().After(b.Until) }

// errLate ends a workload whose next step would end after Until.
var errLate = errors.New("the budget is used up")

// rest sleeps. Signals do not end it, but the context does; and what would last beyond Until is not begun.
func (b *bencher) rest(d time.Duration) error {
	if !b.Until.IsZero() && time.Now().Add(d).After(b.Until) {
		return errLate
	}
	select {
	case <-time.After(d):
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// shuffled is every protocol once, in a seeded order, and then once more, in another: a budget that ends early leaves all
// with the same number of trials, or one less.
func (b *bencher) shuffled(protocols []string, trials int) []string {
	var all []string
	for range trials {
		all = append(all, protocols...)
		shuffle(b, all[len(all)-len(protocols):])
	}
	return all
}

func shuffle[T any](b *bencher, all []T) {
	b.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

func upTo(n int) []int {
	var all []int
	for i := range n {
		all = append(all, i)
	}
	return all
}

func keysOf(o order) []int {
	keys := upTo(int(o.Keys))
	for i := range keys {
		keys[i] += int(o.First)
	}
	return keys
}

// Names are the protocols, controls and peers that a workload may be asked for.
func Names() []string {
	var all []string
	for i := range entrants {
		all = append(all, entrants[i].name)
	}
	return all
}

// Known says whether a name is one of a protocol, a control or a peer.
func Known(name string) bool { return slices.Contains(Names(), name) }
