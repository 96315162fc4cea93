package explore

import (
	"slices"

	"github.com/claimbench/claimbench/engine"
)

// Shortest looks for the shortest schedule that ends in a violation of the kind, breadth first, and gives up after so
// many states. From what it found, or else from the schedule that it was given, it then leaves out whatever is not
// needed, like the death of one who does nothing more anyway.
func Shortest(spec engine.Spec, sc Scenario, found Found, states int) Found {
	x := newExplorer(spec, sc)
	x.w.dated = true
	if s, v := x.breadthFirst(found.Kind, states); v != nil {
		found = Found{*v, s}
	}
	return x.shorten(found)
}

// A trail leads back to the beginning.
type trail struct {
	step   Step
	before *trail
}

func (t *trail) schedule() Schedule {
	var s Schedule
	for ; t != nil; t = t.before {
		s = append(s, t.step)
	}
	slices.Reverse(s)
	return s
}

type arrival struct {
	state *state
	trail *trail
}

// breadthFirst visits states in the order of the lengths of their schedules.
func (x *explorer) breadthFirst(kind Kind, states int) (Schedule, *Violation) {
	byLength := map[int][]arrival{}
	longest := 0
	for _, b := range x.starts() {
		var t *trail
		for _, step := range b.path {
			t = &trail{step, t}
		}
		byLength[len(b.path)] = append(byLength[len(b.path)], arrival{b.state, t})
		longest = max(longest, len(b.path))
	}
	for n := 0; n <= longest; n++ {
		for _, a := range byLength[n] {
			if !x.visited.enter(x.key(a.state), a.state.turns) {
				continue
			}
			if x.visited.n > states {
				return nil, nil
			}
			more, s, v := x.spread(a, kind)
			if v != nil {
				return s, v
			}
			if len(more) > 0 {
				byLength[n+1] = append(byLength[n+1], more...)
				longest = max(longest, n+1)
			}
		}
		delete(byLength, n)
	}
	return nil, nil
}

// spread is what can come of one state by one step.
func (x *explorer) spread(a arrival, kind Kind) (more []arrival, s Schedule, v *Violation) {
	all := x.steps(a.state, nil)
	if len(all) == 0 {
		if v := x.end(a.state); v != nil && v.Kind == kind {
			return nil, a.trail.schedule(), v
		}
	}
	for _, t := range all {
		next := new(state)
		next.set(a.state)
		if t.Dies {
			next.deaths++
		}
		trail := &trail{t, a.trail}
		v := x.do(next, t)
		switch {
		case v == nil:
			more = append(more, arrival{next, trail})
		case v.Kind == kind:
			return nil, trail.schedule(), v
		}
	}
	return more, nil, nil
}

// shorten leaves out one step after the other, until none can be left out without the violation.
func (x *explorer) shorten(found Found) Found {
	for again := true; again; {
		again = false
		for i := len(found.Schedule) - 1; i >= 0; i-- {
			less := slices.Delete(slices.Clone(found.Schedule), i, i+1)
			if v, err := x.replay(less); err == nil && v != nil && v.Kind == found.Kind {
				found, again = Found{*v, less}, true
			}
		}
	}
	return found
}
