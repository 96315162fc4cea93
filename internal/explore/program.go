package explore

import (
	"errors"

	"github.com/claimbench/claimbench/engine"
)

// A Note is what a contender learned between two steps.
type Note uint8

// The notes.
const (
	Tries Note = iota + 1
	Won
	Renewed
	GaveUp
	Held
	SawDone
	DidDone
	Failed
)

var notes = [...]string{"", "makes an attempt", "holds the claim", "holds the claim for longer", "gives the claim up",
	"hears that another holds it", "hears that it is done", "has recorded that it is done", "does not know the outcome"}

func (n Note) String() string { return notes[n] }

// An Event is a note with its particulars.
type Event struct {
	Note       Note
	Key        uint8
	Generation uint64
	Expires    int64
}

// A task is what a contender is to do.
type task struct {
	protocol func(engine.Env) engine.Protocol
	params   engine.Params
	key      uint8
	attempts int
	renew    bool // while it works
	fail     bool // the work fails, and the claim is dropped
	reclaim  bool // before it works
	patient  bool // wait one TTL after each attempt
}

// keys have the same fan-out directory: if keys can get in each other's way,
// then these.
var keys = [...]engine.Signature{
	"5e00000000000000000000000000000000000000000000000000000000000001",
	"5e00000000000000000000000000000000000000000000000000000000000002",
}

// run is the program of a contender.
func (t task) run(s *seam) {
	p := t.protocol(s.env(t.params))
	for i := range t.attempts {
		if i > 0 && t.patient {
			s.do(Op{Verb: Poll})
		}
		if t.attempt(s, p) {
			return
		}
	}
}

// attempt reports whether the key needs no other attempt.
func (t task) attempt(s *seam, p engine.Protocol) bool {
	s.note(Event{Note: Tries, Key: t.key})
	out, err := p.Try(keys[t.key])
	switch {
	case err != nil:
		s.note(Event{Note: Failed, Key: t.key})
	case out.State == engine.Held:
		s.note(Event{Note: Held, Key: t.key})
	case out.State == engine.Done:
		s.note(Event{Note: SawDone, Key: t.key})
		return true
	case out.State == engine.Won:
		return t.work(s, p, out)
	}
	return false
}

// work keeps to the contract of a lease: it looks at the clock before it
// begins, and stops when it hears that the lease is lost.
func (t task) work(s *seam, p engine.Protocol, out engine.Outcome) bool {
	s.note(Event{Won, t.key, out.Generation, int64(out.Lease.Expires())})
	if r, ok := p.(engine.Reclaimer); ok && t.reclaim {
		// What could not be removed stays.
		_, _ = r.Reclaim(1000)
	}
	if e := out.Lease.Expires(); e != engine.Never && (seamClock{s}).Now() >= e {
		return t.drop(s, out.Lease)
	}
	s.do(Op{Verb: Begin, Key: t.key})
	if t.renew {
		if err := out.Lease.Renew(); errors.Is(err, engine.ErrLost) {
			return t.drop(s, out.Lease)
		}
		s.note(Event{Renewed, t.key, out.Generation, int64(out.Lease.Expires())})
	}
	if t.fail {
		return t.drop(s, out.Lease)
	}
	s.do(Op{Verb: Finish, Key: t.key})
	return t.done(s, out.Lease)
}

func (t task) drop(s *seam, l engine.Lease) bool {
	s.note(Event{Note: GaveUp, Key: t.key})
	// A claim that could not be dropped expires.
	_ = l.Drop()
	return false
}

// done tries once more where the answer was no answer.
func (t task) done(s *seam, l engine.Lease) bool {
	err := l.Done([]byte("by " + letter(s.who)))
	if err != nil && !errors.Is(err, engine.ErrLost) {
		err = l.Done([]byte("by " + letter(s.who)))
	}
	if err != nil {
		s.note(Event{Note: Failed, Key: t.key})
		return false
	}
	s.note(Event{Note: DidDone, Key: t.key})
	return true
}
