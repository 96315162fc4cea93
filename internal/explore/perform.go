package explore

import (
	"fmt"
	"time"

	"github.com/claimbench/claimbench/engine"
)

// realTTL is the TTL in a real directory, where a tick has to be waited for.
const realTTL = 400 * time.Millisecond

// A stand is a contender in a real directory. It runs one operation at a time.
type stand struct {
	files  *performer
	dir    *engine.DirFS
	ask    chan Op
	answer chan Result
	events []Event
	op     Op
	over   bool
}

// Perform runs a schedule in a real, empty directory, with a TTL of 0.4 s, and
// judges it as on the model. Endings that only a weak filesystem has are those
// that the directory gives.
func Perform(spec engine.Spec, sc Scenario, schedule Schedule, dir string) (*Violation, error) {
	sc.Params = scaled(sc.Params)
	x := newExplorer(spec, sc)
	s := &state{last: -1}
	s.fs = *newModel(x.w, Perfect, 0)
	stands := map[int]*stand{}
	defer func() {
		for _, c := range stands {
			c.stop()
		}
	}()
	for who := range places {
		if x.autos[who] == nil || who == after {
			continue
		}
		d, err := engine.OpenDir(dir)
		if err != nil {
			return nil, err
		}
		stands[who] = begin(x.w, who, d, x.autos[who].run)
	}
	return x.perform(s, stands, schedule)
}

func (x *explorer) perform(s *state, stands map[int]*stand, schedule Schedule) (*Violation, error) {
	for i, step := range schedule {
		if step.Tick {
			time.Sleep(x.sc.Tick / (ttl / realTTL))
			continue
		}
		c := stands[int(step.Who)]
		if c == nil || c.over {
			return nil, fmt.Errorf("perform step %d: %s has no next operation", i+1, letter(int(step.Who)))
		}
		if step.Dies {
			c.stop()
			s.actors[step.Who].finish(dead)
			continue
		}
		if v := x.stepReal(s, c, int(step.Who)); v != nil {
			return v, nil
		}
	}
	return nil, nil
}

// stepReal does one operation, and those that make no difference to others.
func (x *explorer) stepReal(s *state, c *stand, who int) *Violation {
	for {
		s.fs.now = time.Now().UnixNano()
		op := c.op
		if v := x.began(s, who, op); v != nil {
			return v
		}
		c.next(c.perform(op, who))
		s.actors[who].life = alive
		if v := x.learnedOf(s, who, c.events); v != nil {
			return v
		}
		c.events = c.events[:0]
		if c.over || c.op.Verb != Close || c.files.locks[c.op.Handle] {
			return nil
		}
	}
}

func (c *stand) perform(op Op, who int) Result {
	if op.Verb == ReadClock {
		return Result{Time: time.Now().UnixNano() + int64(who)*int64(offset)}
	}
	return c.files.do(op)
}

// begin starts the program and runs it to its first operation.
func begin(w *world, who int, d *engine.DirFS, run func(*seam)) *stand {
	c := &stand{files: newPerformer(w, d), dir: d, ask: make(chan Op), answer: make(chan Result)}
	sm := &seam{w: w, who: who, note: func(e Event) { c.events = append(c.events, e) }}
	stop := false
	sm.do = func(op Op) Result {
		if stop {
			return Result{Errno: errStopped}
		}
		c.ask <- op
		r, ok := <-c.answer
		if !ok {
			stop = true
			panic(stopped{})
		}
		return r
	}
	go func() {
		defer close(c.ask)
		defer func() {
			if e := recover(); e != nil && e != (stopped{}) {
				panic(e)
			}
		}()
		run(sm)
	}()
	c.wait()
	return c
}

func (c *stand) wait() {
	op, ok := <-c.ask
	c.op, c.over = op, !ok
}

func (c *stand) next(r Result) {
	c.answer <- r
	c.wait()
}

// stop is the death of the contender: the kernel closes what it has open.
func (c *stand) stop() {
	if !c.over {
		close(c.answer)
		for range c.ask {
		}
		c.over = true
	}
	c.files.closeAll()
	if c.dir != nil {
		// The directory is only read through it.
		_ = c.dir.Close()
		c.dir = nil
	}
}

func scaled(p engine.Params) engine.Params {
	if p == (engine.Params{}) {
		p = params
	}
	down := func(d time.Duration) time.Duration { return d / (ttl / realTTL) }
	return engine.Params{TTL: down(p.TTL), Deadline: down(p.Deadline), Margin: down(p.Margin), Slack: down(p.Slack), Sync: p.Sync}
}
