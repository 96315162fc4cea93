package explore

import "slices"

// steps lists what can happen next.
//
// A step that only depends on the time, like reading a clock, is tried in two
// places: right after the contender's step before it, and right after a tick.
// Anywhere between, it would come to the same. One that does not even depend
// on that is tried right away.
func (x *explorer) steps(s *state, to []Step) []Step {
	ticks := int(s.ticks) < x.sc.Ticks
	for i := range places {
		if s.actors[i].life != alive || !x.inTurn(s, i) {
			continue
		}
		if op := x.op(s, i); op.Verb == Finish || !ticks && x.local(s, i, op) {
			return x.stepsOf(s, i, op, to)
		}
	}
	for i := range places {
		if s.actors[i].life == alive && x.inTurn(s, i) {
			to = x.stepsOf(s, i, x.op(s, i), to)
		}
	}
	if ticks && s.waiting() && !x.landing(s) {
		to = append(to, Step{Tick: true, Who: -1})
	}
	return x.bounded(s, to)
}

func (x *explorer) stepsOf(s *state, who int, op Op, to []Step) []Step {
	if !s.actors[who].put {
		for c := range x.endings(s, who, op) {
			to = append(to, Step{Who: int8(who), Choice: int8(c)})
		}
	}
	if int(s.deaths) < x.sc.Deaths {
		to = append(to, Step{Who: int8(who), Dies: true})
	}
	return to
}

// local says that nothing but the passing of time makes a difference to the
// operation, and that it makes none to the others: it reads a clock, or is on
// a name or a file that only this contender ever uses.
func (x *explorer) local(s *state, who int, op Op) bool {
	switch op.Verb {
	case ReadClock, Now:
		return true
	case Create, Mkdir, Unlink, Rmdir, Open, Lstat:
		return !x.sc.Reclaim && x.w.paths[op.Path].owner == int8(who)
	case WriteAt, Fstat, ReadAt, Sync, Touch:
		return s.fs.private(who, op.Handle)
	default:
		return false
	}
}

// landing says that a rename has been under way for as long as it can be.
func (x *explorer) landing(s *state) bool {
	if x.sc.Flight == 0 {
		return false
	}
	for i := range s.actors {
		if a := &s.actors[i]; a.life == alive && x.op(s, i).Verb == Rename && int(a.flight)+1 >= x.sc.Flight {
			return true
		}
	}
	return false
}

func (s *state) waiting() bool {
	return slices.ContainsFunc(s.actors[:], func(a actor) bool { return a.life == alive })
}

// bounded leaves out the steps that would preempt a contender once too often.
func (x *explorer) bounded(s *state, all []Step) []Step {
	if x.sc.Preemptions == 0 || int(s.turns) < x.sc.Preemptions {
		return all
	}
	return slices.DeleteFunc(all, func(t Step) bool { return x.preempts(s, t) })
}

func (x *explorer) preempts(s *state, t Step) bool {
	return s.last >= 0 && t.Who != s.last && x.counts(s, t) && s.actors[s.last].life == alive && !s.actors[s.last].put
}

// counts says that a step is one that others may notice.
func (x *explorer) counts(s *state, t Step) bool {
	if t.Tick || t.Dies {
		return false
	}
	op := x.op(s, int(t.Who))
	return op.Verb != Finish && !x.local(s, int(t.Who), op)
}

func (x *explorer) op(s *state, who int) Op { return x.autos[who].ops[s.actors[who].at] }

func (x *explorer) endings(s *state, who int, op Op) int {
	if x.sc.Plain {
		return 1
	}
	return s.fs.endings(who, op)
}

// do takes one step.
func (x *explorer) do(s *state, t Step) *Violation {
	if x.sc.Preemptions > 0 {
		if x.preempts(s, t) {
			s.turns++
		}
		if x.counts(s, t) {
			s.last = t.Who
		}
		defer s.forgetLast()
	}
	switch {
	case t.Tick:
		x.tick(s)
		return nil
	case t.Dies:
		x.putOff(s, int(t.Who))
		s.fs.die(int(t.Who))
		s.actors[t.Who].finish(dead)
		return nil
	default:
		return x.act(s, int(t.Who), int(t.Choice))
	}
}

// forgetLast is for one that cannot be preempted any more.
func (s *state) forgetLast() {
	if s.last >= 0 && s.actors[s.last].life != alive {
		s.last = -1
	}
}

func (x *explorer) tick(s *state) {
	s.ticks++
	s.fs.now += int64(x.sc.Tick)
	for i := range s.actors {
		a := &s.actors[i]
		a.put = false
		if x.sc.Flight > 0 && a.life == alive && x.op(s, i).Verb == Rename {
			a.flight++
		}
	}
}

// putOff is called for a step after which the reading of a clock that the
// others are about to do can as well wait for the next tick.
func (x *explorer) putOff(s *state, who int) {
	if int(s.ticks) >= x.sc.Ticks {
		return
	}
	for i := range s.actors {
		if a := &s.actors[i]; i != who && a.life == alive && x.local(s, i, x.op(s, i)) {
			a.put = true
		}
	}
}

// act does the next operation of a contender, and after it those that make no
// difference to others.
func (x *explorer) act(s *state, who, choice int) *Violation {
	if x.sc.Apart && !s.ready && who < before {
		x.measure(s)
	}
	op := x.op(s, who)
	if !x.local(s, who, op) && op.Verb != Finish {
		x.putOff(s, who)
	}
	for {
		x.Operations++
		if v := x.began(s, who, op); v != nil {
			return v
		}
		r, more := s.fs.apply(who, op, choice)
		if more {
			return nil
		}
		if op.Verb == End {
			s.fs.leaveAll(who)
			s.actors[who].finish(ended)
			return nil
		}
		a := &s.actors[who]
		a.flight = 0
		a.at = x.autos[who].next(a.at, r)
		if v := x.learned(s, who); v != nil {
			return v
		}
		if op = x.op(s, who); !s.fs.quiet(who, op) && op.Verb != End {
			return nil
		}
		choice = 0
	}
}
