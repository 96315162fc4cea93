package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// A desk carries out the orders for one contender of this host, one after the other. Each contender has a line of its
// own: contenders of one race share no barrier, so that one that waits keeps none from being asked.
type desk struct {
	who  int
	root string // the directory that it never leaves
	line *race.Line
	ops  map[string]*race.Op
	tell func(patches []byte) // what others are to read at once

	orders  *nats.Subscription
	arrived func(arrival) // tells the coordinator
	ahead   int64         // by how much this kernel's clock is pretended to be ahead, ns

	busy   sync.Mutex // while an order is carried out
	mu     sync.Mutex // over what follows: words come in while an order is carried out
	cancel context.CancelFunc
	told   []uint64 // the contender's words as the coordinator has them
	shown  []uint64 // and as the other hosts do
	over   int64    // heats that began by this round were given up
	inHeat int64    // the first round of the heat under way
	closed bool
}

func newDesk(who int, root string, line *race.Line, ops map[string]*race.Op) *desk {
	return &desk{who: who, root: root, line: line, ops: ops, told: make([]uint64, race.Words), shown: make([]uint64, race.Words)}
}

// carryOut does what an order says. What it refuses it answers with an error.
func (d *desk) carryOut(ctx context.Context, o *order) answer {
	d.busy.Lock()
	defer d.busy.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.mu.Lock()
	d.cancel = cancel
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return answer{Failure: failureOf(errors.New("the contenders here are no more"))}
	}
	if o.Clock != nil {
		// Correct(t + ahead), as one correction.
		d.line.SetClock(race.Clock{At: o.Clock.At - d.ahead, Offset: o.Clock.Offset + d.ahead, Drift: o.Clock.Drift})
	}
	var a answer
	err := d.do(ctx, o, &a)
	a.Failure, a.Words = failureOf(err), d.news()
	a.Who = d.line.Contender(d.who)
	a.Gone, a.Stopped, a.Left = d.line.Gone(d.who), d.line.Stopped(d.who), d.line.Abandoned()
	return a
}

func (d *desk) do(ctx context.Context, o *order, a *answer) (err error) {
	switch o.Do {
	case toEnter:
		return d.enter(ctx, o)
	case toBegin:
		if err := d.known(o.Op); err != nil {
			return err
		}
		return d.begin(o)
	case toDo:
		return d.attempt(o, a, func() (race.Event, error) { return d.line.Do(ctx, d.who, o.Op, o.Number, o.Arg) })
	case toAwait:
		return d.attempt(o, a, func() (race.Event, error) { return d.line.Await(ctx, d.who, o.Op) })
	case toPend:
		a.Pending, a.Invoke = d.line.Pending(d.who)
	case toHeat:
		return d.heat(ctx, o, a)
	case toLook:
		after, err := d.line.LookAfter(ctx)
		a.After = pack(after)
		return err
	case toClean:
		return d.line.Clean(ctx)
	case toKill:
		d.line.Kill(d.who)
	case toRestart:
		return d.line.Restart(ctx, d.who)
	case toContinue:
		d.line.Continue(d.who)
	case toBecame:
		a.Became = d.line.Became(d.who)
	case toEndChild:
		d.line.EndChild(d.who)
	default:
		return fmt.Errorf("%.40q is no order", o.Do)
	}
	return nil
}

func (d *desk) enter(ctx context.Context, o *order) error {
	if o.Leave {
		return d.line.Enter(ctx, "/")
	}
	dir, err := where(o.Nonce, o.Sub)
	if err != nil {
		return err
	}
	return d.line.Enter(ctx, race.Beneath(d.root, dir))
}

// known objects to an operation that does not exist, or that this host does not do.
func (d *desk) known(op string) error {
	if d.ops[op] == nil {
		return fmt.Errorf("operation %.80q: refused: not known, or not allowed here", op)
	}
	return nil
}

func (d *desk) begin(o *order) error {
	if pending, _ := d.line.Pending(d.who); pending {
		return d.stillBusy()
	}
	d.line.Begin(d.who, o.Op, o.Number, o.Arg)
	return nil
}

func (d *desk) stillBusy() error {
	return fmt.Errorf("contender %d is still at something: refused", d.who)
}

// attempt returns when the contender's attempt is over. What it is to announce goes to the others meanwhile.
func (d *desk) attempt(o *order, a *answer, do func() (race.Event, error)) error {
	if err := d.known(o.Op); err != nil {
		return err
	}
	if pending, _ := d.line.Pending(d.who); pending && o.Do == toDo {
		return d.stillBusy()
	}
	stop := func() {}
	if d.ops[o.Op].Announces {
		stop = d.announce()
	}
	ev, err := do()
	stop()
	a.Events = pack([]race.Event{ev})
	return err
}

// announce shows the others the contender's words, over and over, until it is stopped.
func (d *desk) announce() (stop func()) {
	const every = 100 * time.Microsecond
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for last := false; !last; time.Sleep(every) {
			last = over.Load()
			if patches := d.changed(d.shown); len(patches) > 0 {
				d.tell(patches)
			}
		}
	}()
	return func() { over.Store(true); <-done }
}

func (d *desk) heat(ctx context.Context, o *order, a *answer) error {
	if o.Heat == nil {
		return errors.New("an order for a heat without one")
	}
	if err := d.known(o.Heat.Op); err != nil {
		return err
	}
	d.mu.Lock()
	d.inHeat = o.Heat.First
	over := d.inHeat <= d.over
	d.mu.Unlock()
	if over {
		return context.Canceled
	}
	events, late, err := d.line.Heat(ctx, *o.Heat, func(i int) { d.arrived(arrival{Who: d.who, First: o.Heat.First, Round: i}) })
	a.Events, a.Late = pack(events), late
	return err
}

// start lets the contender start, if that is meant for the heat it is in.
func (d *desk) start(s *start) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed && s.First == d.inHeat {
		d.line.Go(s.Round, s.At)
	}
}

// news is what changed in the contender's words since the coordinator heard of them.
func (d *desk) news() []byte { return d.changed(d.told) }

func (d *desk) changed(since []uint64) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	return changes(nil, d.who, d.line.Words(d.who), since)
}

// write puts others' words, and those that the coordinator wrote, where the contender reads them. An echo is what the
// contender may have written itself.
func (d *desk) write(patches []byte, echo bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	return patched(patches, func(who, i int, w uint64) {
		mine := who == d.who
		if mine && echo {
			return
		}
		atomic.StoreUint64(&d.line.Words(who)[i], w)
		if mine {
			d.told[i], d.shown[i] = w, w
		}
	})
}

// interrupt ends what the contender is waited for. Heats that began by a round are over, also those that it has not heard
// of yet.
func (d *desk) interrupt(heats int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = max(d.over, heats)
	if d.cancel != nil {
		d.cancel()
	}
}

func (d *desk) close() error {
	d.interrupt(0)
	d.busy.Lock()
	defer d.busy.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	if err := d.line.Close(); err != nil && !errors.Is(err, unix.EBADF) {
		return err
	}
	return nil
}
