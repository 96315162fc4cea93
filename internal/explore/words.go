package explore

import (
	"fmt"
	"io"
	"strings"

	"github.com/claimbench/claimbench/engine"
)

// A Line is one step in words.
type Line struct {
	Who  string // "" for the clock
	Text string
}

func (l Line) String() string { return strings.TrimSpace(l.Who + " " + l.Text) }

// Replay runs a schedule on the model and tells it step by step, up to the
// violation if there is one.
func Replay(spec engine.Spec, sc Scenario, schedule Schedule) ([]Line, *Violation, error) {
	x := newExplorer(spec, sc)
	s := &state{last: -1}
	s.fs = *newModel(x.w, sc.Weakness, epoch)
	if x.autos[before] != nil {
		x.enlist(s, before)
	}
	for who := range sc.Contenders {
		x.enlist(s, who)
	}
	t := &teller{x: x, seen: map[sight]uint32{}}
	for i, step := range schedule {
		if !step.Tick && (int(step.Who) >= places || s.actors[step.Who].life != alive) {
			return t.lines, nil, fmt.Errorf("replay step %d: %s has no next operation", i+1, letter(int(step.Who)))
		}
		if v := t.step(s, step); v != nil {
			return t.lines, v, nil
		}
	}
	for _, a := range s.actors[:sc.Contenders] {
		if a.life == alive {
			return t.lines, nil, nil
		}
	}
	return t.lines, x.end(s), nil
}

// WriteLines prints the steps numbered.
func WriteLines(w io.Writer, lines []Line) error {
	for i, l := range lines {
		if _, err := fmt.Fprintf(w, "%3d. %s\n", i+1, l); err != nil {
			return err
		}
	}
	return nil
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

func (t *teller) step(s *state, step Step) *Violation {
	who := int(step.Who)
	switch {
	case step.Tick:
		t.say("", "%v go by", t.x.sc.Tick)
		return t.x.do(s, step)
	case step.Dies:
		t.say(letter(who), "dies")
		return t.x.do(s, step)
	}
	op := t.x.op(s, who)
	was := t.whose(s, who, op)
	half := s.fs.half[who]
	text := t.words(s, who, op)
	v := t.x.do(s, step)
	switch {
	case s.fs.half[who] && !half:
		text += ": the first half"
	case half:
		text += ": the second half"
	}
	at := s.actors[who].at
	if p := t.x.autos[who].points[at]; s.actors[who].life == alive && !s.fs.half[who] {
		text += t.outcome(op, t.resultOf(who, at, op))
		for _, e := range p.events {
			if e.Note != Tries {
				text += "; " + e.Note.String()
			}
		}
	}
	t.say(letter(who), "%s", text+was)
	return v
}

// resultOf goes back over operations that were done in the same step.
func (t *teller) resultOf(who int, at int32, op Op) Result {
	a := t.x.autos[who]
	for at != start {
		p := a.points[at]
		if a.points[p.from].op == op {
			return p.result
		}
		at = p.from
	}
	return Result{}
}

func (t *teller) outcome(op Op, r Result) string {
	switch {
	case r.Errno != 0:
		return ": " + errnoName(r.Errno)
	case op.Verb == ReadAt && r.Data == 0:
		return ": it is empty"
	case op.Verb == ReadAt:
		line, _, _ := strings.Cut(t.x.w.contents[r.Data], "\n")
		return fmt.Sprintf(": %.20q", line)
	default:
		return ""
	}
}

func (t *teller) words(s *state, who int, op Op) string {
	switch op.Verb {
	case Begin, Finish:
		return op.Verb.String() + " key " + keyName(op.Key)
	case Now, ReadClock, Poll, End:
		return op.Verb.String()
	case Link, Rename:
		return op.Verb.String() + " " + t.short(op.Path) + " to " + t.short(op.To)
	case WriteAt, Touch, Fstat, Sync, Close, ReadAt, TryLock:
		return op.Verb.String() + " " + t.open(s, who, op.Handle)
	default:
		return op.Verb.String() + " " + t.short(op.Path)
	}
}

func keyName(key uint8) string { return string('k' + rune(key)) }

// short replaces signatures by k and l, and leaves the fan-out directory out.
func (t *teller) short(path uint16) string {
	text := t.x.w.paths[path].text
	for i, sig := range keys {
		text = strings.ReplaceAll(text, string(sig), keyName(uint8(i)))
	}
	return strings.TrimPrefix(text, string(keys[0][:3])+"/")
}

// open is a name of what is open, or whose file it is if it has none.
func (t *teller) open(s *state, who int, slot uint8) string {
	h := s.fs.handle(who, slot)
	if h == nil {
		return "what is closed"
	}
	for _, name := range s.fs.names() {
		if p := t.x.w.path(name); t.id(s, p) == h.id {
			return t.short(p)
		}
	}
	return "the nameless file that " + maker(h.id) + " made"
}

func (t *teller) id(s *state, p uint16) uint32 {
	spot, errno := s.fs.find(p)
	if errno != 0 || !spot.there() {
		return 0
	}
	return spot.id
}

func maker(id uint32) string { return letter(int(id>>16) - 1) }

// whose says so if a name stands for something else than when the contender
// last looked.
func (t *teller) whose(s *state, who int, op Op) string {
	if op.Path == 0 && op.Verb != Open && op.Verb != Unlink || op.Verb == List {
		return ""
	}
	switch op.Verb {
	case Open, Lstat, Unlink, Rename, Rmdir:
	default:
		return ""
	}
	key := sight{who, op.Path}
	now := t.id(s, op.Path)
	then, looked := t.seen[key]
	t.seen[key] = now
	if now == 0 {
		return ""
	}
	by := maker(now)
	switch {
	case looked && then != now && then != 0:
		return ", which is now " + by + "'s"
	case by != letter(who):
		return ", which is " + by + "'s"
	default:
		return ""
	}
}
