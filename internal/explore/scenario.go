package explore

import (
	"time"

	"github.com/claimbench/claimbench/engine"
)

// A Kind is what is wrong with a schedule.
type Kind uint8

// The kinds, gravest first.
const (
	Duplicate Kind = iota + 1
	Missed
	Stuck
	Blocked
	Leftover
)

var kinds = [...]string{"safe", "duplicate", "missed", "stuck", "blocked", "leftover"}

func (k Kind) String() string { return kinds[k] }

// A Violation is what went wrong.
type Violation struct {
	Kind Kind
	What string
}

// A Scenario bounds an exploration.
type Scenario struct {
	Name        string
	Contenders  int
	Deaths      int
	Ticks       int
	Tick        time.Duration // 0 is more than one TTL
	Attempts    int           // of each contender; 0 is 1
	Weakness    Weakness
	Params      engine.Params // the zero value is the engine's defaults
	Preemptions int           // 0 is no bound
	Unlike      bool          // contenders have different programs or parameters
	Apart       bool          // each contender has a key of its own, and they differ
	Plain       bool          // steps have their ordinary ending only
	Stale       bool          // Z tried first, and died anywhere
	Renew       bool          // contenders renew once
	Fail        bool          // A's work fails, and it drops its claim
	Reclaim     bool          // contenders reclaim before they begin the work
	Flight      int           // a rename lands within one tick less than this; 0 is no limit
	Aged        int           // ticks before contenders come, and that many more at a time up to Ticks; 0 is 1
	States      int           // stop after so many; 0 is no limit
	First       bool          // stop at the first duplicate
}

// A Found is the first violation of a kind that was come upon.
type Found struct {
	Violation
	Schedule Schedule
}

// A Report is what an exploration found.
type Report struct {
	States     int
	Schedules  float64 // that the states stand for; with a bound of preemptions, at most
	Operations int
	Stalls     int // executions that overlapped because one was stalled past its TTL
	Found      []Found
	Cut        bool // the limit of states was reached
	Halted     bool // at the first duplicate
	Touched    uint32
}

// Of finds the violation of a kind.
func (r *Report) Of(k Kind) (Found, bool) {
	for _, f := range r.Found {
		if f.Kind == k {
			return f, true
		}
	}
	return Found{}, false
}
