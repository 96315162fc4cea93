package race

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// A Heat is one contender's part of a batch of rounds whose starts are agreed beforehand: contenders on several kernels
// have no barrier in common, but a clock.
type Heat struct {
	Op     string
	N      int   // contenders in the race
	Lanes  int   // routes, among which they take turns in a scan
	First  int64 // number of the first round
	Rounds int
	Phase  Phase
	At     int64 // when the first round starts; see SetClock
	Step   int64 // from one start to the next, ns
	Pause  int64 // before each cold round, ns
	Width  int64 // of the operation, ns
	Offset int64 // of this contender's start, ns
	Jitter int64 // of a tight round's start, at most, ns
	Seed   uint64
	Arg    uint64
}

// Start is when a contender is to start in the i'th round.
func (h *Heat) Start(who, i int) int64 {
	j := h.job(0, 0)
	return j.startAt(who, i)
}

func (h *Heat) job(kind jobKind, op uint32) job {
	return job{
		kind: kind, op: op, n: int32(h.N), lanes: int32(max(1, h.Lanes)), first: h.First, rounds: int32(h.Rounds), phase: h.Phase,
		pause: h.Pause, width: h.Width, offset: h.Offset, jitter: h.Jitter, at: h.At, step: h.Step, seed: h.Seed, arg: h.Arg,
	}
}

func (j *job) startAt(who, i int) int64 {
	r := runner{id: who, lanes: int(j.lanes), lane: who % int(j.lanes)}
	return j.at + int64(i)*j.step + j.startOffset(&r, j.first+int64(i))
}

// Heat has the line's first contender run its part of a batch. It returns, for each round, what the contender saw and
// when it was prepared; both are valid until the next call. LookAfter and Clean have to follow, each when all contenders
// of the race are done with what comes before.
func (l *Line) Heat(ctx context.Context, h Heat) (events []Event, ready []int64, err error) {
	if h.Rounds < 1 || h.Rounds > maxBatch || h.N < 1 || h.Step < 0 {
		return nil, nil, unix.EINVAL
	}
	who := l.cfg.First
	if err := l.ready(ctx, who); err != nil {
		return nil, nil, err
	}
	clear(l.sh.events[:h.Rounds])
	l.inBatch = h.Rounds
	l.heat = h
	err = l.part(ctx, jobHeat)
	return l.sh.events[:h.Rounds], l.sh.ready[:h.Rounds], err
}

// LookAfter returns what the contender found of the heat's rounds that are its to look at; By is Nobody in the others.
func (l *Line) LookAfter(ctx context.Context) ([]After, error) {
	after := l.sh.after[:l.heat.Rounds]
	for i := range after {
		after[i] = After{By: Nobody, Owner: NoOwner}
	}
	return after, l.part(ctx, jobLook)
}

// Clean has the contender remove what those rounds left, and close what it has open.
func (l *Line) Clean(ctx context.Context) error { return l.part(ctx, jobClean) }

func (l *Line) part(ctx context.Context, kind jobKind) error {
	l.post(l.cfg.First, l.heat.job(kind, l.op(l.heat.Op)))
	return l.await(ctx, l.heat.Op, l.cfg.First)
}

// heat runs the rounds. Nobody can be late to look at another's round: whoever is to look waits for all.
func (c *contender) heat(op *Op, j *job) {
	// Without it the kernel may be 50 µs late (prctl(2)); where it refuses, contention suffers and nothing else.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	e := c.env
	e.N, e.Arg, e.Made = int(j.n), j.arg, false
	var opened unix.Errno
	if op.Open != nil {
		e.at(j.first, j.phase == Cold)
		opened = op.Open(e)
	}
	for i := range int(j.rounds) {
		c.inHeat(op, j, i, opened)
		c.settle(op, j, i-1)
		c.s.progress.Add(1)
		if c.sh.stop.Load() != 0 {
			return
		}
	}
	if op.Settle != nil {
		c.until(j.at + int64(j.rounds)*j.step) // the others may still be at the last round
	}
	c.settle(op, j, int(j.rounds)-1)
}

// inHeat runs the i'th round. Whoever is late starts at once: its times tell.
func (c *contender) inHeat(op *Op, j *job, i int, ready unix.Errno) {
	e, ev, number := c.env, &c.sh.events[i], j.first+int64(i)
	if j.phase == Cold {
		Sleep(time.Duration(j.pause))
	}
	e.at(number, j.phase == Cold)
	e.First = int(number%int64(j.n)) == e.ID
	if ready == 0 && op.Prepare != nil {
		ready = op.Prepare(e)
	}
	c.sh.ready[i] = now()
	c.until(j.startAt(e.ID, i))
	if ready != 0 {
		ev.Unready, ev.Errno = true, uint32(ready)
		return
	}
	attempt(op, e, ev)
	if op.Observe != nil {
		op.Observe(e, ev)
	}
}

func (c *contender) settle(op *Op, j *job, i int) {
	if op.Settle != nil && i >= 0 {
		c.env.at(j.first+int64(i), j.phase == Cold)
		op.Settle(c.env, &c.sh.events[i])
	}
}

// wakeEarly is how long before an instant a contender wakes up, to spin: a sleep may end late.
const wakeEarly = 150 * time.Microsecond

// until returns at an instant, or when the heat is given up.
func (c *contender) until(at int64) {
	for {
		left := time.Duration(at-now()) - wakeEarly
		if left <= 0 || c.sh.stop.Load() != 0 {
			break
		}
		Sleep(min(left, nap))
	}
	for now() < at {
	}
}

func (c *contender) endHeat(op *Op, j *job) {
	c.sweep(j, func(int) { c.clean(op) })
	if op.Close != nil {
		op.Close(c.env)
	}
}
