package explore

import (
	"time"

	"github.com/claimbench/claimbench/engine"
)

// A stand is a contender in a real directory. It runs one operation at a time.
type stand struct {
	who    int
	files  *performer
	dir    *engine.DirFS
	ask    chan Op
	answer chan Result
	events []Event
	op     Op
	over   bool
}

// perform does the operation that the contender is about to do, and runs it to the next.
func (c *stand) perform() {
	if c.op.Verb == ReadClock {
		c.next(Result{Time: time.Now().UnixNano() + int64(c.who)*int64(offset)})
		return
	}
	c.next(c.files.do(c.op))
}

// quiet says that the next operation makes no difference to others, like that of the model.
func (c *stand) quiet() bool { return !c.over && c.op.Verb == Close && !c.files.locks[c.op.Handle] }

// come starts the contender's program, and runs it to its first operation. What it has learned by then counts already.
func (x *explorer) come(s *state, who int, dir string) (*stand, error) {
	d, err := engine.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	c := begin(x.w, who, d, x.autos[who].run)
	s.actors[who].life = alive
	if v := x.heard(s, c); v != nil {
		panic("explore: a contender at its start: " + v.What)
	}
	return c, nil
}

// heard keeps the account of what the contender has learned since it was last asked.
func (x *explorer) heard(s *state, c *stand) *Violation {
	v := x.learnedOf(s, c.who, c.events)
	c.events = c.events[:0]
	return v
}

func begin(w *world, who int, d *engine.DirFS, run func(*seam)) *stand {
	c := &stand{who: who, files: newPerformer(w, d), dir: d, ask: make(chan Op), answer: make(chan Result)}
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
