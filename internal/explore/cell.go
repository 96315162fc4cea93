package explore

import (
	"slices"

	"github.com/claimbench/claimbench/engine"
)

// work is what one cell takes.
type work struct {
	cell       Cell
	touched    uint32
	clean      []explored // the scenarios in which nothing was found
	schedules  float64
	operations int
}

func (r *work) run(spec engine.Spec, contenders, preemptions int, perfect work) {
	weak, p := r.cell.Weakness, perfect.cell
	switch {
	case weak == Perfect:
		r.explore(spec, contenders, preemptions, nil)
	case p.happens(spec, contenders, preemptions, weak):
		r.cell = Cell{Protocol: p.Protocol, Weakness: weak, Kinds: p.Kinds[:1], Why: p.Why, Schedule: p.Schedule, Scenario: p.Scenario}
	case perfect.touched&(1<<weak) == 0:
		p.Weakness, p.States = weak, 0
		r.cell = p
	default:
		r.explore(spec, contenders, preemptions, perfect.clean)
	}
}

// happens says that what breaks a protocol on a perfect filesystem breaks it on
// a weak one step by step.
func (c Cell) happens(spec engine.Spec, contenders, preemptions int, weak Weakness) bool {
	if len(c.Kinds) == 0 || c.Kinds[0] != Duplicate {
		return false
	}
	sc, _ := FindScenario(c.Scenario, contenders, preemptions, weak)
	schedule, err := ParseSchedule(c.Schedule)
	if err != nil {
		return false
	}
	v, err := newExplorer(spec, sc).replay(schedule)
	return err == nil && v != nil && v.Kind == Duplicate
}

// An explored scenario is one in which nothing was found, with the weaknesses
// that would have made a difference to a step of it.
type explored struct {
	Scenario
	touched uint32
}

// covers says that the other scenario cannot find anything: its weakness makes
// no difference to any step of this one, and it allows nothing more than this
// one does. So all its schedules are among those of this one, step by step.
func (e explored) covers(sc Scenario) bool {
	return e.Name == sc.Name && e.touched&(1<<sc.Weakness) == 0 &&
		e.Params == sc.Params && e.Tick == sc.Tick && e.Deaths >= sc.Deaths &&
		(e.Preemptions == 0 || sc.Preemptions > 0 && e.Preemptions >= sc.Preemptions)
}

func (r *work) explore(spec engine.Spec, contenders, preemptions int, clean []explored) {
	var gravest Found
	var in Scenario
	found := map[Kind]bool{}
	for _, sc := range scenarios(contenders, preemptions, r.cell.Weakness) {
		if found[Duplicate] && sc.Weakness == Perfect && !sc.Apart {
			continue // nothing graver can be found, and other keys are another question
		}
		if !sc.concerns(spec) || slices.ContainsFunc(clean, func(e explored) bool { return e.covers(sc) }) {
			continue
		}
		sc.First = sc.Weakness != Perfect || sc.Reclaim
		report := Explore(spec, sc)
		r.add(sc, report)
		for _, f := range report.Found {
			found[f.Kind] = true
			if gravest.Kind == 0 || f.Kind < gravest.Kind {
				gravest, in = f, sc
			}
		}
		if report.Halted && sc.Weakness != Perfect {
			break
		}
	}
	for k := Duplicate; k <= Leftover; k++ {
		if found[k] && (in.Weakness == Perfect || !found[Duplicate] || k == Duplicate) {
			r.cell.Kinds = append(r.cell.Kinds, k)
		}
	}
	if gravest.Kind != 0 {
		f := Shortest(spec, in, gravest, 100_000)
		r.cell.Why, r.cell.Schedule, r.cell.Scenario = f.What, f.Schedule.String(), in.Name
	}
}

func (r *work) add(sc Scenario, report *Report) {
	if len(report.Found) == 0 && !report.Cut {
		r.clean = append(r.clean, explored{sc, report.Touched})
	}
	r.cell.States += report.States
	r.touched |= report.Touched
	r.schedules += report.Schedules
	r.operations += report.Operations
}
