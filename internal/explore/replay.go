package explore

import (
	"fmt"
	"slices"
)

// replay takes the steps of a schedule, up to the violation if there is one. Where they leave all contenders ended or
// dead, a fresh one comes.
func (x *explorer) replay(schedule Schedule) (*Violation, error) {
	s, v, err := x.follow(schedule, x.do)
	if v != nil || err != nil || s.waiting() {
		return v, err
	}
	return x.end(s), nil
}

// follow takes the steps of a schedule, each by do, and is left with the state after the last.
func (x *explorer) follow(schedule Schedule, do func(*state, Step) *Violation) (*state, *Violation, error) {
	s := x.empty()
	for who := range places {
		if x.takesPart(who, schedule) {
			x.enlist(s, who)
		}
	}
	for i, step := range schedule {
		if why := x.impossible(s, step); why != "" {
			return s, nil, fmt.Errorf("schedule: step %d, %v: %s", i+1, step, why)
		}
		if v := do(s, step); v != nil {
			return s, v, nil
		}
	}
	return s, nil, nil
}

// empty is a directory in which nothing is, and to which nobody has come.
func (x *explorer) empty() *state {
	s := &state{last: -1}
	s.fs = *newModel(x.w, x.sc.Weakness, epoch)
	return s
}

// takesPart says that the schedule is one of this contender's too. Z came only where it does a step.
func (x *explorer) takesPart(who int, schedule Schedule) bool {
	if who != before {
		return who < x.sc.Contenders
	}
	return x.sc.Stale && slices.ContainsFunc(schedule, func(step Step) bool { return int(step.Who) == before })
}

// impossible says why a step cannot be done, or "".
func (x *explorer) impossible(s *state, step Step) string {
	switch {
	case step.Tick && x.landing(s):
		return "a rename is under way that has to land first"
	case !step.Tick && s.actors[step.Who].life != alive:
		return letter(int(step.Who)) + " has no next operation"
	default:
		return ""
	}
}
