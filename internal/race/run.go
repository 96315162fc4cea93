package race

import (
	"context"
	"slices"
	"time"
)

// A Plan says how many rounds to run, and of which kind.
type Plan struct {
	Contenders int
	Rounds     int           // contested rounds wanted
	Time       time.Duration // at most, checked between batches
	AtLeast    int           // contested rounds without which the race proves nothing
	Extra      time.Duration // what may be added to Time to reach them
	ScanShare  float64       // of the rounds
	ColdRounds int
	ColdPause  time.Duration
	Arg        uint64 // handed to the operation
}

// Enough reports whether a race that took so long may end.
func (p *Plan) Enough(t *Tally, took time.Duration) bool {
	_, contested := t.Total()
	return contested >= p.Rounds || took >= p.Time+p.Extra || took >= p.Time && contested >= p.AtLeast
}

// Next is the phase of the next rounds. It keeps the shares of the phases in step with the progress of the race. Scans
// wait for the first tight batches, which tell how wide the operation is.
func (p *Plan) Next(t *Tally, took time.Duration) Phase {
	_, contested := t.Total()
	progress := max(float64(contested)/float64(p.Rounds), float64(took)/float64(p.Time))
	hot := t.Rounds[Tight] + t.Rounds[Scan]
	switch {
	case hot < 4*firstBatch:
		return Tight
	case float64(t.Rounds[Cold]) < progress*float64(p.ColdRounds):
		return Cold
	case float64(t.Rounds[Scan]) < float64(hot)*p.ScanShare:
		return Scan
	}
	return Tight
}

// A Tally is what a race amounted to.
type Tally struct {
	Rounds    [3]int // by phase
	Contested [3]int
	Wins      []int   // by contender
	Durations []int64 // of a sample of the attempts in tight rounds, ns
	Elapsed   time.Duration

	Unsure int // of several kernels: rounds that would be contested if the clocks were known exactly
}

// Total returns the rounds and the contested rounds of all phases.
func (t *Tally) Total() (rounds, contested int) {
	for p := range t.Rounds {
		rounds += t.Rounds[p]
		contested += t.Contested[p]
	}
	return rounds, contested
}

const (
	batchTime   = 15 * time.Millisecond
	firstBatch  = 16
	coldBatch   = 8
	durationCap = 1 << 14 // attempts whose duration is kept
)

// Race runs rounds of an operation until the plan is fulfilled, the time is up, or each returns false. The round
// that each sees is valid during the call only.
//
// After an error the tally holds what was counted until then.
func (l *Line) Race(ctx context.Context, op string, plan Plan, each func(*Round) bool) (Tally, error) {
	r := l.running(op, plan)
	err := r.all(ctx, each)
	r.tally.Elapsed = time.Since(r.began)
	return r.tally, err
}

// Trial runs one round of an operation, all contenders starting together. The caller may keep it.
func (l *Line) Trial(ctx context.Context, op string, contenders int, arg uint64) (Round, error) {
	var kept Round
	r := l.running(op, Plan{Contenders: contenders, Arg: arg})
	r.size = 1
	for i := range contenders {
		if err := r.ready(ctx, i); err != nil {
			return kept, err
		}
	}
	_, err := r.batch(ctx, Tight, func(round *Round) bool {
		kept = *round
		kept.Events = slices.Clone(round.Events)
		return true
	})
	return kept, err
}

func (l *Line) running(op string, plan Plan) *running {
	return &running{
		Line: l, op: l.op(op), name: op, plan: plan, began: time.Now(),
		offsets: make([]int64, plan.Contenders), width: 2000, size: firstBatch,
		tally: Tally{Wins: make([]int, plan.Contenders)},
	}
}

// running is a race under way.
type running struct {
	*Line
	op      uint32
	name    string
	plan    Plan
	began   time.Time
	offsets []int64
	width   int64 // of the operation, ns
	size    int   // rounds in the next tight or scan batch
	tally   Tally
}

func (r *running) all(ctx context.Context, each func(*Round) bool) error {
	for i := range r.plan.Contenders {
		if err := r.ready(ctx, i); err != nil {
			return err
		}
	}
	for {
		took := time.Since(r.began)
		if r.plan.Enough(&r.tally, took) {
			return nil
		}
		if more, err := r.batch(ctx, r.plan.Next(&r.tally, took), each); err != nil || !more {
			return err
		}
	}
}

func (r *running) batch(ctx context.Context, phase Phase, each func(*Round) bool) (more bool, err error) {
	n, rounds := r.plan.Contenders, r.size
	if phase == Cold {
		rounds = min(coldBatch, r.plan.ColdRounds)
	}
	first, ids := r.number, make([]int, n)
	r.number += int64(rounds)
	r.reset(rounds, n)
	began := time.Now()
	for i := range ids {
		ids[i] = i
		r.post(i, job{
			kind: jobRace, op: r.op, n: int32(n), lanes: int32(min(n, len(r.cpus))), first: first,
			rounds: int32(rounds), phase: phase, pause: int64(r.plan.ColdPause), width: r.width, jitter: r.width / 8,
			offset: r.offsets[i], seed: r.cfg.Seed, arg: r.plan.Arg,
		})
	}
	if err := r.await(ctx, r.name, ids...); err != nil {
		return false, err
	}
	if phase != Cold {
		per := max(time.Since(began)/time.Duration(rounds), 1)
		r.size = max(2, min(r.batchBound(), int(batchTime/per), 4*r.size))
	}
	return r.count(first, rounds, phase, each), nil
}

func (r *running) batchBound() int {
	if b := r.cfg.Ops[r.op].Batch; b > 0 {
		return b
	}
	return maxBatch
}

// reset empties the barrier and the records. No contender is in a batch now.
func (l *Line) reset(rounds, n int) {
	sh := l.sh
	sh.arrived.Store(0)
	sh.met.Store(0)
	sh.gen.reset()
	sh.agreed.reset()
	for i := range sh.lanes {
		sh.lanes[i].reset()
	}
	l.inBatch = rounds
	clear(sh.events[:rounds*n])
}

// count goes through the records of a batch.
func (r *running) count(first int64, rounds int, phase Phase, each func(*Round) bool) bool {
	n, more, contested := r.plan.Contenders, true, 0
	wins := make([]int, n)
	for i := 0; i < rounds && more; i++ {
		round := Round{Number: int(first) + i, Phase: phase, Events: r.sh.roundEvents(i, n), After: r.sh.after[i]}
		r.tally.Rounds[phase]++
		if round.Contested(len(r.dirs), r.cfg.Ops[r.op].Meets) {
			r.tally.Contested[phase]++
			contested++
		}
		for k := range round.Events {
			if ev := &round.Events[k]; ev.Won() {
				wins[k]++
				r.tally.Wins[k]++
			}
		}
		if phase == Tight {
			r.tally.Sample(&round)
		}
		more = each(&round)
	}
	if phase == Tight {
		steer(r.offsets, wins, r.width, float64(contested)/float64(rounds))
		r.measureWidth(rounds, n)
	}
	return more
}

// Sample keeps the duration of one attempt of the round.
func (t *Tally) Sample(round *Round) {
	ev := &round.Events[round.Number%len(round.Events)]
	if ev.Return != 0 && len(t.Durations) < durationCap {
		t.Durations = append(t.Durations, ev.Return-ev.Invoke)
	}
}

// measureWidth takes the width of the operation from the winners' shortest attempts: those that met nobody, which is
// what the first contender in a scan does. Longer ones waited for somebody, or lost their CPU.
func (r *running) measureWidth(rounds, n int) {
	var won []int64
	for i := range rounds * n {
		if ev := &r.sh.events[i]; ev.Won() {
			won = append(won, ev.Return-ev.Invoke)
		}
	}
	if len(won) > 0 {
		slices.Sort(won)
		r.width = max(leastWidth, won[len(won)/10])
	}
}

// leastWidth keeps a scan from standing still, ns.
const leastWidth = 100
