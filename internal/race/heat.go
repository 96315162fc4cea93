package race

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// A Heat is one contender's part of a batch of rounds in which contenders of several lines race, on one host or on many.
// The barrier of a line is replaced by whoever runs the race: each contender says when it has arrived, and is told at
// which instant to start. All else is as in a batch: everybody is prepared before anybody starts, and nobody lets go of
// what it won before all have tried.
type Heat struct {
	Op     string
	N      int   // contenders in the race
	Lanes  int   // routes, among which they take turns in a scan
	First  int64 // number of the first round
	Rounds int
	Phase  Phase
	Pause  int64 // before each cold round, ns
	Width  int64 // of the operation, ns
	Offset int64 // of this contender's start, ns
	Jitter int64 // of a tight round's start, at most, ns
	Seed   uint64
	Arg    uint64
}

func (h *Heat) job(kind jobKind, op uint32) job {
	return job{
		kind: kind, op: op, n: int32(h.N), lanes: int32(max(1, h.Lanes)), first: h.First, rounds: int32(h.Rounds), phase: h.Phase,
		pause: h.Pause, width: h.Width, offset: h.Offset, jitter: h.Jitter, seed: h.Seed, arg: h.Arg,
	}
}

func (j *job) offsetOf(who, i int) int64 {
	r := runner{id: who, lanes: int(j.lanes), lane: who % int(j.lanes)}
	return j.startOffset(&r, j.first+int64(i))
}

// Heat has the line's first contender run its part of a batch, and returns what it saw in each round, valid until the
// next call, and how often it heard of a start only when that was over. It calls arrived when the contender stands before
// the i'th round; Go lets it start. Arrived is called once more when the last round is over, and there Go lets it go on.
// LookAfter and Clean have to follow, each when all contenders of the race are done with what comes before.
func (l *Line) Heat(ctx context.Context, h Heat, arrived func(i int)) (events []Event, late int, err error) {
	if h.Rounds < 1 || h.Rounds > maxBatch || h.N < 1 || h.Phase > Cold {
		return nil, 0, unix.EINVAL
	}
	who := l.cfg.First
	if err := l.ready(ctx, who); err != nil {
		return nil, 0, err
	}
	l.reset(h.Rounds, 1)
	l.heat = h
	seen := uint32(0)
	l.look = func() bool {
		at := l.sh.arrived.Load()
		for ; seen < at; seen++ {
			arrived(int(seen))
		}
		return at > l.sh.agreed.at.Load()
	}
	defer func() { l.look = nil }()
	err = l.part(ctx, jobHeat)
	return l.sh.events[:h.Rounds], int(l.sh.met.Load()), err
}

// Go lets the contender start in the i'th round of its heat, at an instant; see SetClock. It may be called while Heat is
// under way.
func (l *Line) Go(i int, at int64) {
	l.sh.start.Store(at)
	l.sh.agreed.open(uint32(i + 1))
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

// heat runs the rounds, as rounds of a contender does.
func (c *contender) heat(op *Op, j *job) {
	// Without it the kernel may be 50 µs late (prctl(2)); where it refuses, contention suffers and nothing else.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if !c.allRounds(op, j, c.open(op, j)) && op.Close != nil {
		op.Close(c.env) // of a heat that is given up nobody asks for the rest
	}
}

// allRounds reports false when the heat is given up.
func (c *contender) allRounds(op *Op, j *job, opened unix.Errno) bool {
	for i := range int(j.rounds) {
		if !c.inHeat(op, j, i, opened) {
			return false
		}
		c.settle(op, j, i-1)
	}
	if !c.arrive(int(j.rounds)) {
		return false
	}
	c.settle(op, j, int(j.rounds)-1)
	return true
}

// inHeat runs the i'th round, and reports false when the heat is given up. Whoever hears too late when to start does so
// at once: its times tell.
func (c *contender) inHeat(op *Op, j *job, i int, ready unix.Errno) bool {
	e, ev, number := c.env, &c.sh.events[i], j.first+int64(i)
	if j.phase == Cold {
		Sleep(time.Duration(j.pause))
	}
	e.at(number, j.phase == Cold)
	e.First = int(number%int64(j.n)) == e.ID
	if ready == 0 && op.Prepare != nil {
		ready = op.Prepare(e)
	}
	if !c.arrive(i) {
		return false
	}
	if ready != 0 {
		ev.Unready, ev.Errno = true, uint32(ready)
		return true
	}
	at := c.sh.start.Load() + j.offsetOf(e.ID, i)
	if now() > at {
		c.sh.met.Add(1)
	}
	c.until(at)
	attempt(op, e, ev)
	if op.Observe != nil {
		op.Observe(e, ev)
	}
	return true
}

// arrive says that this contender stands before the i'th round, and waits to be let go.
func (c *contender) arrive(i int) bool {
	c.s.progress.Add(1)
	c.sh.arrived.Store(uint32(i + 1))
	c.sh.bell.Add(1)
	futexWake(&c.sh.bell)
	return c.sh.agreed.wait(c.sh, uint32(i+1), atOnce)
}

func (c *contender) settle(op *Op, j *job, i int) {
	if op.Settle != nil && i >= 0 {
		c.env.at(j.first+int64(i), j.phase == Cold)
		op.Settle(c.env, &c.sh.events[i])
	}
}

// wakeEarly is how long before an instant a contender wakes up, to spin: a sleep may end late.
const wakeEarly = 150 * time.Microsecond

// until returns at an instant, which is never far away.
func (c *contender) until(at int64) {
	if left := time.Duration(at-now()) - wakeEarly; left > 0 {
		Sleep(min(left, time.Second))
	}
	for now() < at && c.sh.stop.Load() == 0 {
	}
}

func (c *contender) endHeat(op *Op, j *job) {
	c.sweep(j, func(int) { c.clean(op) })
	if op.Close != nil {
		op.Close(c.env)
	}
}
