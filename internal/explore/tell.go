package explore

import (
	"encoding/hex"
	"fmt"
	"strings"
	"syscall"

	"github.com/claimbench/claimbench/engine"
)

// Tell runs a schedule on the model, as Replay does, and tells it for a reader who does not know the code: with what
// each operation came back, and what its contender made of it.
func Tell(spec engine.Spec, sc Scenario, schedule Schedule) ([]Line, *Violation, error) {
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
			return t.lines, nil, fmt.Errorf("schedule: step %d, %v: %s has no next operation", i+1, step, letter(int(step.Who)))
		}
		if v := t.tell(s, step); v != nil {
			return t.lines, v, nil
		}
	}
	for _, a := range s.actors[:sc.Contenders] {
		if a.life == alive {
			return t.lines, nil, nil
		}
	}
	v := x.end(s)
	if v != nil {
		t.say(letter(after), "comes when all others have ended or died: %s", v.What)
	}
	return t.lines, v, nil
}

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
	text, whose := t.words(s, who, op), t.whose(s, who, op)
	if from, to, ok := strings.Cut(text, " to "); ok && op.Verb == Rename {
		text = from + whose + " to " + to
	} else {
		text += whose
	}
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

// errnoWords is strerror(3) with the name, but for a lock, where strerror says nothing.
func errnoWords(e syscall.Errno) string {
	if e == syscall.EWOULDBLOCK {
		return "another holds the lock (EWOULDBLOCK)"
	}
	return fmt.Sprintf("%v (%s)", e, errnoName(e))
}

func listing(names string) string {
	if names == "" {
		return "nothing is there"
	}
	for i, sig := range keys {
		names = strings.ReplaceAll(names, string(sig), keyName(uint8(i)))
	}
	return strings.ReplaceAll(names, "\n", ", ")
}

// content says of a record what state it is in and whose it is; engine/record.go has the format.
func content(text string) string {
	states := map[string]string{"c1": "claimed by", "x1": "given up by", "f1": "finished by", "d1": "done by"}
	fields := strings.Fields(text)
	if text == "" {
		return "it is empty"
	}
	if len(fields) >= 5 {
		if state, ok := states[fields[0]]; ok {
			return state + " " + fields[1]
		}
	}
	return fmt.Sprintf("%.20q", text)
}

// unsecret writes A-1 for A's first nonce, and so on.
var unsecret = func() *strings.Replacer {
	var pairs []string
	for who := range places {
		for n := range 10 {
			nonce := nonceStart(who) + string('0'+rune(n))
			pairs = append(pairs, hex.EncodeToString([]byte(nonce)), fmt.Sprintf("%s-%d", letter(who), n))
		}
	}
	return strings.NewReplacer(pairs...)
}()
