// Package explore runs real claim protocols through every order of their
// contenders' operations.
//
// A contender is a program over the engine's filesystem seam. The scheduler
// decides whose next operation happens, on a filesystem in memory that keeps
// all promises but one. Contenders may die, and stall for longer than the TTL.
// What it says holds for the numbers of contenders, deaths and ticks that were
// explored, and for that model of a filesystem; the model is compared with
// real ones by test.
package explore

import (
	"fmt"

	"github.com/claimbench/claimbench/engine"
)

type explorer struct {
	Report
	spec    engine.Spec
	sc      Scenario
	w       *world
	autos   [places]*automaton
	visited memo
	ends    map[hash]*Violation
	depth   []*state // one for each depth, to be used again
	steps_  [][]Step
	path    Schedule
	buf     []byte
	plain   bool // two states are one only if they are equal; for comparison
}

// Explore runs a protocol through all schedules of the scenario.
func Explore(spec engine.Spec, sc Scenario) *Report {
	x := newExplorer(spec, sc)
	x.walkAll()
	if x.w.dated {
		x = newExplorer(spec, sc)
		x.w.dated = true
		x.walkAll()
	}
	x.States, x.Touched = x.visited.n, x.w.touched
	return &x.Report
}

func (x *explorer) walkAll() {
	for _, s := range x.starts() {
		x.path = append(x.path[:0], s.path...)
		x.Schedules += x.walk(s.state, len(x.path))
	}
}

func newExplorer(spec engine.Spec, sc Scenario) *explorer {
	if sc.Tick == 0 {
		sc.Tick = tick
	}
	if sc.Params == (engine.Params{}) {
		sc.Params = params
	}
	x := &explorer{spec: spec, sc: sc, w: newWorld(sc.Weakness == CaseFolding)}
	x.ends = map[hash]*Violation{}
	for who := range sc.Contenders {
		x.autos[who] = newAutomaton(x.w, who, x.task(who).run)
	}
	if sc.Stale {
		x.autos[before] = newAutomaton(x.w, before, x.forerunner())
	}
	fresh := task{protocol: spec.New, params: sc.Params, attempts: 4, patient: true}
	x.autos[after] = newAutomaton(x.w, after, fresh.run)
	return x
}

func (x *explorer) task(who int) task {
	t := task{protocol: x.spec.New, params: x.sc.Params, attempts: max(1, x.sc.Attempts), renew: x.sc.Renew, reclaim: x.sc.Reclaim}
	if x.sc.Apart {
		t.key = uint8(who % len(keys))
	}
	t.fail = x.sc.Fail && who == 0
	return t
}

// walk visits what can come of a state, and counts the schedules.
func (x *explorer) walk(s *state, depth int) float64 {
	key := x.key(s)
	if x.sc.States > 0 && x.visited.n >= x.sc.States && !x.visited.has(key) {
		x.Cut = true
		return 0
	}
	if !x.visited.enter(key, s.turns) {
		return float64(x.visited.find(key).schedules)
	}
	n := x.branch(s, depth)
	x.visited.find(key).schedules = float32(n)
	return n
}

func (x *explorer) key(s *state) hash {
	x.buf = s.encode(x.buf[:0])
	if x.plain {
		x.buf = append(x.buf, s.turns)
	}
	return hashOf(x.buf)
}

func (x *explorer) branch(s *state, depth int) float64 {
	next, all := x.room(depth)
	all = x.steps(s, all[:0])
	x.steps_[depth] = all
	if len(all) == 0 {
		if x.sc.Preemptions == 0 && s.waiting() {
			panic("explore: nobody can go on at " + x.path.String())
		}
		x.report(x.end(s))
		return 1
	}
	var n float64
	for _, t := range all {
		if x.Halted {
			break
		}
		next.set(s)
		x.path = append(x.path[:depth], t)
		if t.Dies {
			next.deaths++
		}
		if v := x.do(next, t); v != nil {
			x.report(v)
			n++
			continue
		}
		n += x.walk(next, depth+1)
	}
	return n
}

func (x *explorer) room(depth int) (*state, []Step) {
	for len(x.depth) <= depth {
		x.depth = append(x.depth, new(state))
		x.steps_ = append(x.steps_, nil)
	}
	return x.depth[depth], x.steps_[depth]
}

func (x *explorer) report(v *Violation) {
	if v == nil {
		return
	}
	x.Halted = x.sc.First && v.Kind == Duplicate
	for i, f := range x.Found {
		if f.Kind != v.Kind {
			continue
		}
		if len(x.path) < len(f.Schedule) {
			x.Found[i] = Found{*v, append(Schedule{}, x.path...)}
		}
		return
	}
	x.Found = append(x.Found, Found{*v, append(Schedule{}, x.path...)})
}

// end has a fresh contender come to a state in which all others have ended or
// died. It must get each key done within one TTL.
func (x *explorer) end(s *state) *Violation {
	x.buf = s.encodeEnd(x.buf[:0])
	key := hashOf(x.buf)
	if v, ok := x.ends[key]; ok {
		return v
	}
	v := x.fresh(s)
	x.ends[key] = v
	return v
}

func (x *explorer) fresh(from *state) *Violation {
	if x.sc.Apart {
		return nil
	}
	s := new(state)
	s.set(from)
	x.enlist(s, after)
	waits := 0
	for s.actors[after].life == alive {
		if x.op(s, after).Verb == Poll {
			waits++
			s.fs.now += int64(tick)
			if x.sc.Weakness == CoarseTimes {
				s.fs.now += int64(coarse)
			}
		}
		if v := x.act(s, after, 0); v != nil {
			return v
		}
	}
	if v := s.overdue(waits); v != nil {
		return v
	}
	if name := s.fs.undocumented(); name != "" {
		return &Violation{Leftover, name + " is left"}
	}
	return nil
}

// overdue judges for how long the fresh contender had to wait for the key.
func (s *state) overdue(waits int) *Violation {
	switch {
	case s.keys[0].done == 0 && !s.keys[0].known:
		return &Violation{Stuck, fmt.Sprintf("the key is not to be had, %d TTLs after all have ended", waits)}
	case waits > 1:
		return &Violation{Missed, fmt.Sprintf("the key is to be had only %d TTLs after all have ended", waits)}
	default:
		return nil
	}
}
