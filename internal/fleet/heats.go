package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	last  report               // of this batch
}

func (d *field) contest(op string, plan race.Plan) (*contest, error) {
	if d.ops[op] == nil {
		panic("fleet: no operation " + op)
	}
	if plan.Contenders > d.cfg.Contenders {
		return nil, fmt.Errorf("%s: %d contenders asked for, and there are %d", op, plan.Contenders, d.cfg.Contenders)
	}
	return &contest{
		field: d, op: d.ops[op], plan: plan, who: d.everybody()[:plan.Contenders], pace: newPace(len(d.routes), d.slowest()),
		tally: race.Tally{Wins: make([]int, plan.Contenders)},
	}, nil
}

// Race is race.Line's.
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

// slowest is the longest of the hosts' shortest round trips.
func (d *field) slowest() time.Duration {
	most := time.Duration(0)
	for _, h := range d.f.living() {
		h.mu.Lock()
		most = max(most, h.trip)
		h.mu.Unlock()
	}
	return most
}

// heat places the next batch.
func (c *contest) heat(phase race.Phase) race.Heat {
	h := race.Heat{
		Op: c.op.Name, N: c.plan.Contenders, Lanes: len(c.routes), Phase: phase, Width: c.pace.width, Jitter: c.pace.width / 2,
		Seed: c.cfg.Seed, Arg: c.plan.Arg, Rounds: c.pace.size,
	}
	if phase == race.Cold {
		h.Rounds, h.Pause = min(coldBatch, c.plan.ColdRounds), int64(c.plan.ColdPause)
	}
	if c.op.Batch > 0 {
		h.Rounds = min(h.Rounds, c.op.Batch)
	}
	h.First = c.number + 1
	c.number += int64(h.Rounds)
	return h
}

// batch runs the rounds, then has each looked after and removed, each step when all are done with the one before.
func (c *contest) batch(ctx context.Context, h race.Heat) ([]race.Round, error) {
	c.words.send()
	began, from, clocks := time.Now(), race.Now(), c.clocks()
	events, late := make([][]race.Event, len(c.who)), make([]int, len(c.who))
	c.f.starter.begin(h.First, h.Rounds, c.homes(len(c.who)), c.pace.lead)
	err := c.together(ctx, func(i int) order {
		mine := h
		mine.Offset = c.pace.offsets[c.Route(i)]
		return order{Do: toHeat, Heat: &mine, Clock: clocks[i]}
	}, func(i int, a answer) (err error) {
		late[i] = a.Late
		events[i], err = unpack[race.Event](a.Events, h.Rounds)
		return err
	})
	after := make([]race.After, h.Rounds)
	for k := range after {
		after[k] = race.After{By: race.Nobody, Owner: race.NoOwner}
	}
	if err == nil && c.op.After != nil {
		err = c.lookAfter(ctx, &h, after)
	}
	if err == nil && (c.op.Clean != nil || c.op.Close != nil || h.Phase == race.Cold) {
		err = c.together(ctx, func(int) order { return order{Do: toClean} }, nil)
	}
	until := race.Now()
	c.doubt = c.doubts(from, until, c.stepped(until))
	rounds := c.rounds(&h, events, after)
	c.last = report{rounds: len(rounds), took: time.Since(began), late: slices.Max(late), wins: make([]int, len(c.routes))}
	return rounds, err
}

// lookAfter has each round's object looked at by one contender.
func (c *contest) lookAfter(ctx context.Context, h *race.Heat, after []race.After) error {
	return c.together(ctx, func(int) order { return order{Do: toLook} }, func(i int, a answer) error {
		found, err := unpack[race.After](a.After, h.Rounds)
		for k := range found {
			if int(h.First+int64(k))%len(c.who) == i {
				after[k] = found[k]
			}
		}
		return err
	})
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

// rounds puts together what each contender saw. One that failed saw nothing.
func (c *contest) rounds(h *race.Heat, events [][]race.Event, after []race.After) []race.Round {
	rounds := make([]race.Round, h.Rounds)
	for k := range rounds {
		r := &rounds[k]
		r.Number, r.Phase, r.After, r.Unsure = int(h.First)+k, h.Phase, after[k], c.doubt
		r.Events = make([]race.Event, len(events))
		for i := range events {
			if k < len(events[i]) {
				r.Events[i] = events[i][k]
			}
		}
	}
	return rounds
}

// clocks are what the contenders are to go by in the next batch.
func (c *contest) clocks() []*race.Clock {
	clocks := make([]*race.Clock, len(c.who))
	for i := range clocks {
		clocks[i] = c.setClock(i)
	}
	return clocks
}

// stepped says of each contender whether its clock is no longer the one that it went by: its host was suspended, say.
func (c *contest) stepped(until int64) []bool {
	_ = c.f.each(c.f.living(), c.f.ping) // a host that does not answer is lost elsewhere, and has no rounds to count
	moved, fresh := make([]bool, len(c.who)), map[*kernel]fit{}
	for i := range moved {
		k := c.host(i).kernel
		if k.own {
			continue // the coordinator's clock is what all go by
		}
		now, known := fresh[k]
		if !known {
			now = k.fresh()
			fresh[k] = now
		}
		moved[i] = c.fits[i].contradicts(&now, until)
	}
	return moved
}

// doubts are about a batch that lasted from one instant to another. Those of one kernel go by one clock, and nothing about
// it is in doubt between them, unless it moved meanwhile.
func (c *contest) doubts(from, until int64, moved []bool) func(i, j int) int64 {
	doubts, of := make([]int64, len(c.who)), make([]int, len(c.who))
	for i := range doubts {
		f := &c.fits[i]
		doubts[i], of[i] = max(f.doubt(from), f.doubt(until)), f.number
		if moved[i] {
			doubts[i] = unknown
		}
	}
	return func(i, j int) int64 {
		if of[i] == of[j] {
			return 0
		}
		return doubts[i] + doubts[j]
	}
}

// count goes through the rounds of a batch, and adapts to them.
func (c *contest) count(rounds []race.Round, phase race.Phase, each func(*race.Round) bool) bool {
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
		c.note(r)
		more = each(r)
	}
	if phase == race.Tight {
		bound := mostRounds
		if c.op.Batch > 0 {
			bound = c.op.Batch
		}
		c.pace.after(&c.last, bound)
	}
	return more
}

func (c *contest) note(r *race.Round) {
	for i := range r.Events {
		if ev := &r.Events[i]; ev.Won() {
			c.tally.Wins[i]++
			c.last.wins[c.Route(i)]++
			c.last.widths = append(c.last.widths, ev.Return-ev.Invoke)
		}
	}
}
