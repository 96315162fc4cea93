package explore

// forerunner is the program of Z. Where each contender has a key of its own it
// claims them all.
func (x *explorer) forerunner() func(*seam) {
	t := task{protocol: x.spec.New, params: x.sc.Params, attempts: 1}
	if !x.sc.Apart {
		return t.run
	}
	return func(s *seam) {
		p := t.protocol(s.env(t.params))
		for _, key := range keys {
			// What it made of them is for the others to find.
			_, _ = p.Try(key)
		}
		s.do(Op{Verb: Poll})
	}
}

type beginning struct {
	state *state
	path  Schedule
}

// starts are an empty directory and, if asked for, what a contender left that
// died at any point before the others came.
func (x *explorer) starts() []beginning {
	s := x.empty()
	var all []beginning
	if !x.sc.Reclaim {
		all = x.begin(s, nil)
	}
	if x.sc.Stale && x.sc.Deaths > 0 {
		all = append(all, x.left(s)...)
	}
	if len(all) == 0 {
		panic("explore: there is nothing to begin with: Reclaim takes Stale, a death, and the ticks of Aged")
	}
	return all
}

// left is what Z leaves where it dies, at any point or, where it is to be reclaimed, right after its work.
func (x *explorer) left(s *state) (all []beginning) {
	x.enlist(s, before)
	var path Schedule
	for s.actors[before].life == alive {
		worked := x.op(s, before).Verb == Finish
		path = append(path, Step{Who: before})
		if v := x.act(s, before, 0); v != nil {
			panic("explore: a contender on its own: " + v.What)
		}
		if s.actors[before].life == alive && (!x.sc.Reclaim || worked) {
			all = append(all, x.abandoned(s, path)...)
		}
		if x.sc.Reclaim && worked {
			break
		}
	}
	return all
}

func (x *explorer) abandoned(from *state, path Schedule) []beginning {
	d := new(state)
	d.set(from)
	x.do(d, Step{Who: before, Dies: true})
	d.deaths++
	return x.begin(d, append(append(Schedule{}, path...), Step{Who: before, Dies: true}))
}

// begin lets what is there expire first where later ticks are not wanted: a
// contender that was stalled for long may refuse a key by itself, and where
// things are reclaimed the schedules are long already.
func (x *explorer) begin(s *state, path Schedule) []beginning {
	switch {
	case x.sc.Apart:
		return []beginning{x.aged(s, path, 1)}
	case x.sc.Reclaim:
		var all []beginning
		for n := max(1, x.sc.Aged); n <= x.sc.Ticks; n += max(1, x.sc.Aged) {
			all = append(all, x.aged(s, path, n))
		}
		return all
	default:
		return []beginning{{x.ready(s), path}}
	}
}

func (x *explorer) aged(from *state, path Schedule, ticks int) beginning {
	s := new(state)
	s.set(from)
	path = append(Schedule{}, path...)
	for range ticks {
		x.tick(s)
		path = append(path, Step{Tick: true, Who: -1})
	}
	return beginning{x.ready(s), path}
}

// ready is the state with the contenders in it.
func (x *explorer) ready(from *state) *state {
	s := new(state)
	s.set(from)
	s.last = -1
	for who := range x.sc.Contenders {
		x.enlist(s, who)
	}
	return s
}

func (x *explorer) enlist(s *state, who int) {
	s.actors[who] = actor{life: alive}
	if v := x.learned(s, who); v != nil {
		panic("explore: a contender at its start: " + v.What)
	}
}
