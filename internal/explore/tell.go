package explore

import (
	"fmt"
	"strings"

	"github.com/claimbench/claimbench/engine"
)

// A Line is one step in words.
type Line struct {
	Who  string // "" for the clock
	Text string
}

func (l Line) String() string { return strings.TrimSpace(l.Who + " " + l.Text) }

// Tell runs a schedule on the model, up to the violation if there is one, and tells it for a reader who does not know
// the code: with what each operation came back, and what its contender made of it.
func Tell(spec engine.Spec, sc Scenario, schedule Schedule) ([]Line, *Violation, error) {
	t := &teller{x: newExplorer(spec, sc), seen: map[sight]uint32{}}
	s, v, err := t.x.follow(schedule, t.tell)
	if v != nil || err != nil || s.waiting() {
		return t.lines, v, err
	}
	if v = t.x.end(s); v != nil {
		t.say(letter(after), "comes when all others have ended or died: %s", v.What)
	}
	return t.lines, v, nil
}

type teller struct {
	x     *explorer
	lines []Line
	seen  map[sight]uint32 // what a contender last saw under a name
}

type sight struct {
	who  int
	path uint16
}

func (t *teller) say(who string, format string, args ...any) {
	t.lines = append(t.lines, Line{who, fmt.Sprintf(format, args...)})
}

// tell takes a step and tells it.
func (t *teller) tell(s *state, step Step) *Violation {
	who := int(step.Who)
	switch {
	case step.Tick:
		t.say("", "%v go by; the TTL is %v", t.x.sc.Tick, t.x.sc.Params.TTL)
		return t.x.do(s, step)
	case step.Dies:
		t.say(letter(who), "dies")
		return t.x.do(s, step)
	}
	op := t.x.op(s, who)
	text := t.words(s, who, op)
	answer, notes := t.foresee(s, who, op, int(step.Choice))
	v := t.x.do(s, step)
	if v != nil && op.Verb == Begin {
		answer, notes = "", nil // it was judged before it was done
	}
	for _, e := range notes {
		if e.Note != Tries {
			answer += "; " + e.Note.String()
		}
	}
	t.say(letter(who), "%s", unsecret.Replace(text+answer))
	return v
}

// foresee is what an operation will come back with, and what the contender learns from it. It is found out on a copy:
// a contender that ends with this step leaves no trace of it.
func (t *teller) foresee(s *state, who int, op Op, choice int) (answer string, notes []Event) {
	fs, a := new(model), t.x.autos[who]
	fs.set(&s.fs)
	half := fs.half[who]
	there := op.Verb == Create && t.id(s, op.Path) != 0
	r, more := fs.apply(who, op, choice)
	answer = t.answer(op, r, choice) + halves(op, half, more, there)
	for at := s.actors[who].at; !more; {
		at = a.next(at, r)
		notes = append(notes, a.points[at].events...)
		next := a.points[at].op
		if !fs.quiet(who, next) {
			break
		}
		r, more = fs.apply(who, next, 0)
	}
	return answer, notes
}

func (t *teller) answer(op Op, r Result, choice int) string {
	switch {
	case r.Errno != 0 && choice > 0 && (op.Verb == Open || op.Verb == Lstat):
		return ": " + errnoWords(r.Errno) + ", although it is there"
	case r.Errno != 0 && choice > 0:
		return ": " + errnoWords(r.Errno) + ", although this call has just made it"
	case r.Errno != 0:
		return ": " + errnoWords(r.Errno)
	case op.Verb == WriteAt:
		return ": " + written(t.x.w.contents[op.Data])
	case op.Verb == ReadAt:
		return ": " + content(t.x.w.contents[r.Data])
	case op.Verb == List && choice > 0:
		return ": " + listing(t.x.w.contents[r.Data]) + ", without the newest"
	case op.Verb == List:
		return ": " + listing(t.x.w.contents[r.Data])
	default:
		return ""
	}
}

// halves is for what a weak filesystem does in two steps.
func halves(op Op, half, more, there bool) string {
	switch {
	case !half && !more:
		return ""
	case op.Verb == Create && more:
		return ": finds that it is not there, and is about to make it"
	case op.Verb == Create && there:
		return ": opens what has come between"
	case op.Verb == Create:
		return ": makes it"
	case more:
		return ": others can see the first half of what was written"
	default:
		return ": others can see all of what was written"
	}
}
