package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// A contest is a race under way over several hosts.
type contest struct {
	*field
	op    *race.Op
	plan  race.Plan
	who   []int // the contenders
	pace  *pace
	tally race.Tally
	doubt func(i, j int) int64 // about the clocks of two contenders in this batch, ns
	late  int                  // rounds of this batch in which somebody started, or was prepared, too late
	size  int                  // rounds in it
}

func (d *field) contest(op string, plan race.Plan) (*contest, error) {
	if d.ops[op] == nil {
		panic("fleet: no operation " + op)
	}
	if plan.Contenders > d.cfg.Contenders {
		return nil, fmt.Errorf("%s: %d contenders asked for, and there are %d", op, plan.Contenders, d.cfg.Contenders)
	}
	return &contest{
		field: d, op: d.ops[op], plan: plan, who: d.everybody()[:plan.Contenders], pace: newPace(len(d.routes)),
		tally: race.Tally{Wins: make([]int, plan.Contenders)},
	}, nil
}

// Race is race.Line's. Rounds in which somebody was prepared only after another had started are left out: what they
// show may be the preparation's doing.
func (d *field) Race(ctx context.Context, op string, plan race.Plan, each func(*race.Round) bool) (race.Tally, error) {
	c, err := d.contest(op, plan)
	if err != nil {
		return race.Tally{}, err
	}
	began := time.Now()
	for err == nil && !c.plan.Enough(&c.tally, time.Since(began)) {
		var rounds []race.Round
		phase := c.plan.Next(&c.tally, time.Since(began))
		if rounds, err = c.batch(ctx, c.heat(phase)); err != nil || !c.count(rounds, phase, each) {
			break
		}
	}
	c.tally.Elapsed = time.Since(began)
	return c.tally, err
}

// Trial is race.Line's.
func (d *field) Trial(ctx context.Context, op string, contenders int, arg uint64) (race.Round, error) {
	c, err := d.contest(op, race.Plan{Contenders: contenders, Arg: arg})
	if err != nil {
		return race.Round{}, err
	}
	h := c.heat(race.Tight)
	h.Rounds, h.Jitter = 1, 0
	rounds, err := c.batch(ctx, h)
	if len(rounds) == 0 {
		return race.Round{Number: int(h.First), Unsure: c.doubt, Events: make([]race.Event, contenders)}, err
	}
	return rounds[0], err
}

// heat places the next batch.
func (c *contest) heat(phase race.Phase) race.Heat {
	p, rounds := c.pace, c.pace.size
	h := race.Heat{
		Op: c.op.Name, N: c.plan.Contenders, Lanes: len(c.routes), Phase: phase, Step: p.step, Width: p.width, Jitter: p.width / 2,
		Seed: c.cfg.Seed, Arg: c.plan.Arg,
	}
	if phase == race.Cold {
		rounds = min(coldBatch, c.plan.ColdRounds)
		h.Pause = int64(c.plan.ColdPause)
		h.Step = h.Pause + max(2*p.step, int64(2*time.Millisecond))
	}
	if c.op.Batch > 0 {
		rounds = min(rounds, c.op.Batch)
	}
	h.First, h.Rounds = c.number+1, rounds
	c.number += int64(rounds)
	return h
}

// lead is how long orders take to reach everybody.
func (c *contest) lead() int64 {
	slowest := time.Duration(0)
	for _, i := range c.who {
		h := c.host(i)
		h.mu.Lock()
		slowest = max(slowest, h.trip)
		h.mu.Unlock()
	}
	return int64(2*time.Millisecond + 3*slowest + time.Duration(len(c.who))*100*time.Microsecond)
}

// batch runs the rounds, then has each looked after and removed, each step when all are done with the one before.
func (c *contest) batch(ctx context.Context, h race.Heat) ([]race.Round, error) {
	c.words.send()
	n := len(c.who)
	clocks := c.clocks()
	c.late, c.size = 0, h.Rounds
	events, ready, after := make([][]race.Event, n), make([][]int64, n), make([]race.After, h.Rounds)
	h.At = race.Now() + c.lead()
	err := c.together(ctx, func(i int) order {
		mine := h
		mine.Offset = c.pace.offsets[c.Route(i)]
		return order{Do: toHeat, Heat: &mine, Clock: &clocks[i]}
	}, func(i int, a answer) (err error) {
		if len(a.Ready) != h.Rounds {
			return fmt.Errorf("contender %d answers for %d rounds of %d", i, len(a.Ready), h.Rounds)
		}
		ready[i] = a.Ready
		events[i], err = unpack[race.Event](a.Events, h.Rounds)
		return err
	})
	if err != nil {
		return c.what(&h, events), err
	}
	if c.op.After != nil {
		err = c.together(ctx, func(int) order { return order{Do: toLook} }, func(i int, a answer) error {
			found, err := unpack[race.After](a.After, h.Rounds)
			for k := range found {
				if int(h.First+int64(k))%n == i {
					after[k] = found[k]
				}
			}
			return err
		})
	}
	if err == nil && (c.op.Clean != nil || c.op.Close != nil || h.Phase == race.Cold) {
		err = c.together(ctx, func(int) order { return order{Do: toClean} }, nil)
	}
	rounds := c.rounds(&h, events, after)
	if c.op.After == nil {
		for k := range rounds {
			rounds[k].After = race.After{By: race.Nobody, Owner: race.NoOwner}
		}
	}
	return c.prepared(&h, rounds, ready), err
}

// together gives all contenders of the race their orders, and ends what they are at when the context ends.
func (c *contest) together(ctx context.Context, what func(int) order, then func(int, answer) error) error {
	err := c.all(ctx, c.who, what, then)
	if ctx.Err() != nil {
		c.cancel(ctx, c.who...)
		return ctx.Err()
	}
	return err
}

// what is left of a batch that failed: a single round may be kept, with what is known of it.
func (c *contest) what(h *race.Heat, events [][]race.Event) []race.Round {
	for i := range events {
		if len(events[i]) != h.Rounds {
			events[i] = make([]race.Event, h.Rounds)
		}
	}
	return c.rounds(h, events, make([]race.After, h.Rounds))
}

func (c *contest) rounds(h *race.Heat, events [][]race.Event, after []race.After) []race.Round {
	rounds := make([]race.Round, h.Rounds)
	for k := range rounds {
		r := &rounds[k]
		r.Number, r.Phase, r.After, r.Unsure = int(h.First)+k, h.Phase, after[k], c.doubt
		for i := range events {
			r.Events = append(r.Events, events[i][k])
		}
		if c.op.Settle != nil {
			excuse(r)
		}
	}
	return rounds
}

// excuse takes out of a round whoever came by what is to be held only after another had let go of it: hosts have no
// barrier in common, and one that is late finds the lock free.
func excuse(r *race.Round) {
	for i := range r.Events {
		for j := range r.Events {
			a, b := &r.Events[i], &r.Events[j]
			if i != j && a.Won() && b.Won() && a.Released != 0 && b.Return >= a.Released-r.Unsure(i, j) {
				b.Unready, b.Errno = true, uint32(unix.ETIME)
			}
		}
	}
}

// clocks are what the contenders are to go by in the next batch. Those of one kernel go by one clock, and nothing about
// it is in doubt between them.
func (c *contest) clocks() []race.Clock {
	clocks, doubts, now := make([]race.Clock, len(c.who)), make([]int64, len(c.who)), race.Now()
	for i := range clocks {
		f := c.host(i).kernel.current()
		clocks[i], doubts[i] = f.clock, f.unsure(now-f.clock.Offset)
	}
	c.doubt = func(i, j int) int64 {
		if c.host(i).kernel == c.host(j).kernel {
			return 0
		}
		return doubts[i] + doubts[j]
	}
	return clocks
}

// prepared leaves out the rounds that somebody was not prepared for when another started, and notes who was late.
func (c *contest) prepared(h *race.Heat, rounds []race.Round, ready [][]int64) []race.Round {
	k := -1
	return slices.DeleteFunc(rounds, func(r race.Round) bool {
		k++
		unprepared := c.op.Prepare != nil && h.Rounds > 1 && c.unprepared(&r, ready, k)
		if unprepared {
			c.tally.Unprepared++
		}
		if unprepared || c.isLate(h, &r, k) {
			c.late++
		}
		return unprepared
	})
}

func (c *contest) unprepared(r *race.Round, ready [][]int64, k int) bool {
	for i := range r.Events {
		for j := range r.Events {
			if at := r.Events[j].Invoke; i != j && at != 0 && ready[i][k] > at-c.doubt(i, j) {
				return true
			}
		}
	}
	return false
}

func (c *contest) isLate(h *race.Heat, r *race.Round, k int) bool {
	for i := range r.Events {
		mine := *h
		mine.Offset = c.pace.offsets[c.Route(i)]
		if at := r.Events[i].Invoke; at != 0 && at-mine.Start(i, k) > max(h.Step/4, 2*h.Width) {
			return true
		}
	}
	return false
}

// count goes through the rounds of a batch, and adapts to them.
func (c *contest) count(rounds []race.Round, phase race.Phase, each func(*race.Round) bool) bool {
	h := report{rounds: c.size, late: c.late, wins: make([]int, len(c.routes))}
	more := true
	for k := 0; k < len(rounds) && more; k++ {
		r := &rounds[k]
		c.tally.Rounds[phase]++
		switch {
		case r.Contested(len(c.routes), c.op.Meets):
			c.tally.Contested[phase]++
		case (&race.Round{Events: r.Events}).Contested(len(c.routes), c.op.Meets):
			c.tally.Unsure++
		}
		if phase == race.Tight {
			c.tally.Sample(r)
		}
		c.note(r, &h)
		more = each(r)
	}
	if phase == race.Tight {
		bound := mostRounds
		if c.op.Batch > 0 {
			bound = c.op.Batch
		}
		c.pace.after(&h, bound)
	}
	return more
}

func (c *contest) note(r *race.Round, h *report) {
	for i := range r.Events {
		if ev := &r.Events[i]; ev.Won() {
			c.tally.Wins[i]++
			h.wins[c.Route(i)]++
			h.widths = append(h.widths, ev.Return-ev.Invoke)
		}
	}
}
