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
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// A Workload shows one thing about claim protocols.
type Workload struct {
	Name  string
	Shows string
	run   func(*bencher) ([]result.Bench, error)
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
	Line      *race.Line
	Scope     result.Scope
	Seed      uint64
	Protocols []string // none is those that the workload is about
	Trials    int      // of each protocol; 0 is the workload's own number
	Full      bool     // the sizes that take minutes
	TTL       time.Duration
	Until     time.Time // when to begin no other trial; zero is never

	// Draw is given the first history of a row that no sequential order explains, as HTML. Nil leaves it out.
	Draw func(workload, protocol string, html []byte)
}

// MostContenders is how many contenders the workloads need on the line.
const MostContenders = 40

// Run runs one workload. After an error, or when the context ends, the rows hold what was counted until then.
func Run(ctx context.Context, w Workload, o Options) ([]result.Bench, error) {
	if o.TTL == 0 {
		o.TTL = 500 * time.Millisecond
	}
	b := &bencher{Options: o, ctx: ctx, rng: rand.New(rand.NewPCG(o.Seed, 1)), rows: map[string]*row{}}
	rows, err := w.run(b)
	if rows == nil {
		rows = inOrder(b.rows)
	}
	for i := range rows {
		rows[i].Scope = o.Scope
	}
	return rows, errors.Join(err, b.leave())
}

// A bencher is a workload under way.
type bencher struct {
	Options
	ctx  context.Context
	rng  *rand.Rand
	rows map[string]*row
}

// protocols are those asked for, or else the engine's.
func (b *bencher) protocols(extra ...string) []string {
	if len(b.Protocols) > 0 {
		return b.Protocols
	}
	var all []string
	for _, s := range engine.Protocols {
		all = append(all, s.Name)
	}
	return append(all, extra...)
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
		r.Contenders, r.Keys = contenders, keys
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
func (b *bencher) newDir() int64 { return b.Line.Name() }

// give hands a contender its order, and clears what it recorded before.
func (b *bencher) give(who int, o order) {
	words := b.Line.Words(who)
	*orderIn(words) = o
	clear(recordsIn(words)[:max(o.Keys, 1)])
}

// together has the first n contenders carry out an order at the same instant. Of many keys each begins with another.
func (b *bencher) together(n int, o order) error {
	for i := range n {
		o.Start = o.Keys * int64(i) / int64(n)
		b.give(i, o)
	}
	round, err := b.Line.Trial(b.ctx, work, n, 0)
	if err == nil {
		err = unready(round.Events)
	}
	return err
}

func unready(events []race.Event) error {
	for i := range events {
		if events[i].Unready {
			return fmt.Errorf("contender %d cannot enter the claim directory: %w", i, unix.Errno(events[i].Errno))
		}
	}
	return nil
}

// alone has one contender carry out an order.
func (b *bencher) alone(who int, o order) error {
	b.give(who, o)
	ev, err := b.Line.Do(b.ctx, who, work, b.Line.Name(), 0)
	if err == nil {
		err = unready([]race.Event{ev})
	}
	return err
}

// abandon has a contender claim keys and keep quiet; bury ends it, and the claims expire a TTL later.
func (b *bencher) abandon(who int, o order) error {
	o.Abandon = 1
	return b.alone(who, o)
}

func (b *bencher) bury(who int) error {
	b.Line.Kill(who)
	return b.Line.Restart(b.ctx, who)
}

// leave has all contenders close what they have open, so that it can be removed.
func (b *bencher) leave() error {
	b.ctx = context.WithoutCancel(b.ctx)
	var err error
	for i := range b.Line.Contenders() {
		err = errors.Join(err, b.alone(i, order{Leave: 1}))
	}
	return err
}

// attempts are what the contenders recorded about the keys of a trial.
func (b *bencher) attempts(o order, who ...int) []attempted {
	var all []attempted
	for _, i := range who {
		pid, _, _ := b.Line.Contender(i)
		for k, r := range recordsIn(b.Line.Words(i))[:o.Keys] {
			if r.Tries == 0 {
				continue
			}
			all = append(all, attempted{
				Attempt: result.Attempt{
					Contender: i, Route: b.Line.Route(i), PID: pid, Key: int(o.First) + k, Invoke: r.Invoke, Return: r.Return,
					Outcome: outcomes[r.Outcome], Generation: uint64(r.Generation), Expires: r.Expires,
					Began: r.Began, Ended: r.Ended, Done: r.Done, Died: r.Died,
				},
				tries: r.Tries, firstInvoke: r.FirstInvoke, firstReturn: r.FirstReturn, sink: r.Sink, errno: unix.Errno(r.Errno),
			})
		}
	}
	return all
}

// unanswered is why a trial is void though its contenders came back: some got no answer.
func unanswered(all []attempted) string {
	for i := range all {
		if a := &all[i]; a.Outcome == outcomes[outcomeUnknown] || a.errno != 0 && a.Done == 0 && a.Expires > a.Ended {
			return fmt.Sprintf("contender %d got no answer: %v", a.Contender, a.errno)
		}
	}
	return ""
}

// harness tells errors that void a trial from those that end the workload.
func (b *bencher) harness(err error) (void string, end error) {
	var died *race.DiedError
	var hung *race.HungError
	switch {
	case b.ctx.Err() != nil:
		return "", b.ctx.Err()
	case errors.As(err, &died), errors.As(err, &hung), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return strings.ReplaceAll(err.Error(), "\n", "; "), nil
	default:
		return "", err
	}
}

// over says that no other trial is to begin.
func (b *bencher) over() bool { return !b.Until.IsZero() && time.Now().After(b.Until) }

// shuffled is a seeded order of protocols and trials.
func (b *bencher) shuffled(protocols []string, trials int) []string {
	var all []string
	for range trials {
		all = append(all, protocols...)
	}
	b.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
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
