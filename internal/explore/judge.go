package explore

import (
	"fmt"
	"math"
)

// measure finds out which contenders are refused their keys by what is there
// already, and not by each other.
func (x *explorer) measure(from *state) {
	for who := range x.sc.Contenders {
		s := new(state)
		s.set(from)
		s.ready, s.alone = true, 0
		for s.actors[who].life == alive {
			if v := x.act(s, who, 0); v != nil {
				from.alone |= 1 << who
				break
			}
		}
	}
	from.ready = true
}

// learned keeps the account of what the contender now knows.
func (x *explorer) learned(s *state, who int) *Violation {
	return x.learnedOf(s, who, x.autos[who].points[s.actors[who].at].events)
}

func (x *explorer) learnedOf(s *state, who int, events []Event) *Violation {
	a := &s.actors[who]
	for _, e := range events {
		switch e.Note {
		case Tries:
			a.trying, a.key = true, e.Key
		case Won, Renewed:
			a.won, a.key, a.gen, a.expires = true, e.Key, e.Generation, onModel(e.Expires, who)
			if v := x.overlaps(s, who); e.Note == Renewed && v != nil {
				return v
			}
		case GaveUp, Failed:
			a.release()
		case Held:
			a.release()
			if x.sc.Apart && s.ready && s.alone&(1<<who) == 0 {
				return &Violation{Blocked, fmt.Sprintf("%s is refused its key because of another key", letter(who))}
			}
		case SawDone:
			if !s.keys[e.Key].finished {
				return &Violation{Missed, fmt.Sprintf("%s hears that work is done which nobody finished", letter(who))}
			}
			s.keys[e.Key].known = who == after
			a.release()
		case DidDone:
			if v := x.recorded(s, who); v != nil {
				return v
			}
		}
	}
	return nil
}

// onModel turns a reading of a contender's clock into one of the model's.
func onModel(local int64, who int) int64 {
	if local == math.MaxInt64 {
		return local
	}
	return local - int64(who)*int64(offset)
}

// recorded is a contender's knowledge that it has recorded the end. Where its
// lease had run out by then, a successor that is claiming already need not
// have known of it.
func (x *explorer) recorded(s *state, who int) *Violation {
	a := &s.actors[who]
	k := &s.keys[a.key]
	if k.done != 0 {
		return &Violation{Duplicate, fmt.Sprintf("%s and %s have both recorded that they did the work", letter(int(k.done)-1), letter(who))}
	}
	k.done = int8(who) + 1
	if !a.holds(s.fs.now) {
		for i := range s.actors {
			b := &s.actors[i]
			b.late = b.late || i != who && (b.trying || b.won) && b.key == a.key
		}
	}
	a.release()
	return nil
}

// began judges the beginning of an execution, and notes the end of one.
func (x *explorer) began(s *state, who int, op Op) *Violation {
	a := &s.actors[who]
	k := &s.keys[op.Key]
	if op.Verb == Finish {
		k.finished = true
	}
	if op.Verb != Begin {
		return nil
	}
	if bit := uint64(1) << min(a.gen, 63); a.gen > 0 {
		if k.gens&bit != 0 {
			return &Violation{Duplicate, fmt.Sprintf("generation %d is executed twice, now by %s", a.gen, letter(who))}
		}
		k.gens |= bit
	}
	a.working = true
	holds := a.holds(s.fs.now)
	if k.done != 0 {
		if holds && !a.late {
			return &Violation{Duplicate, fmt.Sprintf("%s executes what %s has recorded as done", letter(who), letter(int(k.done)-1))}
		}
		x.Stalls++
	}
	return x.overlaps(s, who)
}

// overlaps judges an execution beside others of the same key.
func (x *explorer) overlaps(s *state, who int) *Violation {
	a := &s.actors[who]
	for i := range s.actors {
		b := &s.actors[i]
		if i == who || !a.working || !b.working || b.key != a.key {
			continue
		}
		if a.holds(s.fs.now) && b.holds(s.fs.now) {
			return &Violation{Duplicate, fmt.Sprintf("%s and %s both execute the work, and the lease of neither had run out", letter(min(who, i)), letter(max(who, i)))}
		}
		x.Stalls++
	}
	return nil
}
