package explore

// An automaton is a program taken apart into what it does after each history
// of results. A program has no other input than the results of its steps, so
// each history has to be run only once: after that, exploring is looking up.
type automaton struct {
	w      *world
	who    int
	run    func(*seam)
	points []point
	ops    []Op // of the points, close together
}

// A point is a program that is about to do a step, with what it learned on
// the way from the step before.
type point struct {
	op     Op
	events []Event
	from   int32
	result Result // of the operation of from
	next   []edge // few: a look at each is faster than a map
}

type edge struct {
	result Result
	to     int32
}

const start int32 = 0

func newAutomaton(w *world, who int, run func(*seam)) *automaton {
	a := &automaton{w: w, who: who, run: run}
	a.add(a.after(nil))
	return a
}

// next is the point at which the program is once it got the result.
func (a *automaton) next(from int32, r Result) int32 {
	known := a.points[from].next
	for i := range known {
		if known[i].result == r {
			return known[i].to
		}
	}
	p := a.after(append(a.history(from), r))
	p.from, p.result = from, r
	a.add(p)
	to := int32(len(a.points) - 1)
	a.points[from].next = append(a.points[from].next, edge{r, to})
	return to
}

func (a *automaton) add(p point) {
	a.points, a.ops = append(a.points, p), append(a.ops, p.op)
}

func (a *automaton) history(at int32) []Result {
	n := 0
	for i := at; i != start; i = a.points[i].from {
		n++
	}
	all := make([]Result, n, n+1)
	for i := at; i != start; i = a.points[i].from {
		n--
		all[n] = a.points[i].result
	}
	return all
}

// stopped unwinds a program that reached the step to be found out.
type stopped struct{}

// after runs the program on a history, up to the step that follows it.
func (a *automaton) after(history []Result) (p point) {
	given, stop := 0, false
	s := &seam{w: a.w, who: a.who}
	s.note = func(e Event) {
		if !stop {
			p.events = append(p.events, e)
		}
	}
	s.do = func(op Op) Result {
		if stop {
			return Result{Errno: errStopped}
		}
		if given < len(history) {
			given++
			p.events = p.events[:0]
			return history[given-1]
		}
		stop, p.op = true, op
		panic(stopped{})
	}
	defer func() {
		if e := recover(); e != nil {
			if _, ok := e.(stopped); !ok {
				panic(e)
			}
		}
	}()
	a.run(s)
	p.op = Op{Verb: End}
	return p
}
