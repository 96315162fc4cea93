// Package race is the starting line: it makes processes attempt one operation at the same instant, many times,
// and records what each of them saw.
//
// Contenders are this binary, executed again. They share one memory mapping with the parent, which holds the
// barrier and one fixed-size event record per contender and round, so that what a contender did outlives a
// SIGKILL. Rounds run in batches, without a trip to the parent; cleaning up happens at the end of a batch.
//
// The package measures. It counts a round as contested when the winner's interval overlaps another's, and leaves
// every other judgement to its caller. Its one caveat: on a single CPU two processes are inside a system call at
// once only where the call blocks, so that on a local filesystem few rounds, or none, are contested there.
package race

import (
	"golang.org/x/sys/unix"
)

// MaxContenders is the largest number of contenders on one line.
const MaxContenders = 64

// An Op is what every contender attempts in a round. All functions but Attempt may be nil. They run in the
// contender's process; those called between the barrier's release and the system call must not allocate, and
// carry go:nosplit so that the scheduler has no point to intervene at.
type Op struct {
	Name string

	// Batch bounds the rounds of a batch, for operations whose objects take space until the batch is swept. 0 is no bound.
	Batch int

	// Announces says that others read, in this contender's words, how far it has come while it is at it.
	Announces bool

	// Meets reports whether an attempt took part: to overlap one that did not, such as one refused with EROFS, is no
	// contention. Nil takes every attempt.
	Meets func(*Event) bool

	// Open is called once per batch, before the first round.
	Open func(*Env) unix.Errno

	// Prepare is called before each round, off the critical path. After an error the contender stays away from
	// the round, and its event says so with Unready.
	Prepare func(*Env) unix.Errno

	// Attempt performs the operation. It returns 0 for success; it may fill the event's Role, Inode and Saw.
	Attempt func(*Env, *Event) unix.Errno

	// Observe is called after the attempt, with its times already taken.
	Observe func(*Env, *Event)

	// Settle is called when every contender has tried the round: a lock is let go here. It runs while the next
	// round is under way, so a winner lingers for a whole round.
	Settle func(*Env, *Event)

	// After is called by one contender per round, at the end of the batch: what is there now?
	After func(*Env, *After)

	// Clean is called by the same contender, and removes what the round left.
	Clean func(*Env)

	// Close is called once per batch, when the rounds are over.
	Close func(*Env)
}

// A Role tells apart the parts that contenders play in one round.
type Role uint8

// The roles. Racers compete for one success; a writer changes something while readers look.
const (
	Racer Role = iota
	Writer
	Reader
)

// An Event is the record of one attempt. Times are CLOCK_MONOTONIC in nanoseconds. Return is 0 while the
// attempt has not come back: it may have happened.
type Event struct {
	Invoke   int64
	Return   int64
	Released int64  // when a holder began to let go of what it held
	Inode    uint64 // of the object that the contender made or opened
	Saw      uint64 // what it read, as the operation defines it
	Errno    uint32
	Links    uint32
	Role     Role
	Unready  bool // the preparation failed; Errno is its errno
	_        [6]byte
}

// Won reports whether the attempt succeeded at what only one may do.
func (e *Event) Won() bool { return e.Return != 0 && e.Errno == 0 && e.Role != Reader && !e.Unready }

// An After is what one contender found under the round's name when every contender had tried.
type After struct {
	Inode uint64
	Size  int64
	Saw   uint64
	Errno uint32 // of the look
	Mode  uint32
	Links uint32
	By    int16 // the contender that looked; Nobody if the operation leaves nothing to look at
	Owner int16 // the contender whose mark the object carries; NoOwner if it carries none
}

// NoOwner is the Owner of an object that carries no contender's mark.
const NoOwner = -1

// Nobody looked.
const Nobody = -1

// A Phase says how the starts of a round were placed.
type Phase uint8

// The phases.
const (
	Tight Phase = iota // all start together; offsets adapt until wins are spread
	Scan               // the start of one CPU's contender sweeps the width of the operation
	Cold               // after a pause, in a fresh parent directory
	Step               // a single scripted attempt, not a race
)

func (p Phase) String() string { return [...]string{"tight", "scan", "cold", "step"}[p] }

// A Round is one synchronised attempt by all contenders.
type Round struct {
	Number int
	Phase  Phase
	Events []Event // by contender
	After  After

	// Unsure is how far the times of two contenders may be apart from how they are given, in ns: what is not known of
	// the clocks of two kernels. Nil is one clock.
	Unsure func(i, j int) int64
}

// Contested reports whether a winner's closed interval overlaps that of another contender that took part; in a round
// without a winner, whether any two overlap. With several routes the two must be on different ones (contender i is on
// route i % routes): an overlap within one route says nothing about the distance between routes.
func (r *Round) Contested(routes int, meets func(*Event) bool) bool {
	contested := false
	r.Meetings(routes, meets, func(_, _ int) { contested = true })
	return contested
}

// Meetings calls met for each pair of contenders that makes the round contested.
func (r *Round) Meetings(routes int, meets func(*Event) bool, met func(i, j int)) {
	won := len(r.Winners()) > 0
	for i := range r.Events {
		if won && !r.Events[i].Won() {
			continue
		}
		for j := range r.Events {
			if i != j && (routes < 2 || i%routes != j%routes) && r.overlap(i, j) && (meets == nil || meets(&r.Events[j])) {
				met(i, j)
			}
		}
	}
}

// overlap leaves out what may be due to the clocks.
func (r *Round) overlap(i, j int) bool {
	a, b, unsure := &r.Events[i], &r.Events[j], int64(0)
	if r.Unsure != nil {
		unsure = r.Unsure(i, j)
	}
	return a.Invoke != 0 && b.Invoke != 0 && a.Invoke <= b.end()-unsure && b.Invoke <= a.end()-unsure
}

// end is when the attempt was over; one that never came back is never over.
func (e *Event) end() int64 {
	if e.Return == 0 {
		return 1<<63 - 1
	}
	return e.Return
}

// Winners returns the indices of the contenders that won.
func (r *Round) Winners() []int {
	var w []int
	for i := range r.Events {
		if r.Events[i].Won() {
			w = append(w, i)
		}
	}
	return w
}
