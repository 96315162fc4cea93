package probes

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// A glance is one look, or one change, as its contender records it.
type glance struct {
	Invoke, Return int64
	Errno          uint32
	State          state
}

// A changeRecord is what a writer did at a spot. It lies in the writer's words, where watchers see the announcement
// without asking the filesystem.
type changeRecord struct {
	Announced atomic.Uint64 // 1 when the change has returned
	Change    glance
}

// A watchRecord is what a watcher saw at a spot. Looks count from the announcement on.
type watchRecord struct {
	Earlier glance // before the change
	First   glance
	Stale   glance // the last look that did not see the change
	Fresh   glance // the look that did
	Absent  glance // the first that found nothing where something must be
	Torn    glance // the first that found neither the old nor the new
	Looks   uint64
	Stales  uint64
	Failed  uint64 // looks with an errno that is no answer
	Over    uint64 // 1 when there is nothing more to look for
}

// recordsOf lays the records of all spots over a contender's words.
func recordsOf[T changeRecord | watchRecord](words []uint64) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&words[0])), len(spots))
}

// An errand is the argument of the operations of a writer and its watchers.
type errand struct {
	writer int
	slice  time.Duration // how long a watcher may look before it reports
	anew   bool          // a watcher forgets what it saw
	idle   bool          // the writer announces its changes and does not make them
}

// watchSlice is short enough for an interruption to be heard.
const watchSlice = 100 * time.Millisecond

func (r errand) arg() uint64 {
	arg := uint64(r.writer) | uint64(r.slice)<<8
	if r.anew {
		arg |= 1 << 62
	}
	if r.idle {
		arg |= 1 << 63
	}
	return arg
}

func errandOf(arg uint64) errand {
	return errand{int(arg & 0xff), time.Duration(arg << 2 >> 10), arg>>62&1 == 1, arg>>63 == 1}
}

// The operations of a writer and its watchers. A step of a writer does all its changes, one after the other; watchers
// look at each as soon as it is announced.
var watchOps = []race.Op{
	{Name: "visibility:prepare", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		mine := recordsOf[changeRecord](e.Words(e.ID))
		for i, p := range placesOf(e.Num) {
			mine[i].Announced.Store(0)
			mine[i].Change = glance{Errno: uint32(p.prepare(e))}
			e.Progress()
		}
		return 0
	}},
	{Name: "visibility:look-before", Attempt: lookBefore},
	{Name: "visibility:change", Announces: true, Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		for i, p := range placesOf(e.Num) {
			recordsOf[changeRecord](e.Words(e.ID))[i].make(e, &p, errandOf(e.Arg).idle)
			e.Progress()
		}
		return 0
	}},
	{Name: "visibility:watch", Attempt: watchChanges},
	{Name: "visibility:clean", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		for _, p := range placesOf(e.Num) {
			p.clean(e)
			e.Progress()
		}
		return 0
	}},
}

// make makes the change, unless it could not be prepared, and announces it.
func (c *changeRecord) make(e *race.Env, p *place, idle bool) {
	c.Change.Invoke = race.Now()
	if c.Change.Errno == 0 && !idle {
		c.Change.Errno = uint32(p.change(e))
	}
	c.Change.Return = race.Now()
	c.Announced.Store(1)
}

// lookBefore looks at what is to be known before the change, the directories of the other spots left untouched. EAGAIN
// says that something is not seen as the writer left it, yet.
func lookBefore(e *race.Env, _ *race.Event) (again unix.Errno) {
	do := errandOf(e.Arg)
	his, mine := recordsOf[changeRecord](e.Words(do.writer)), recordsOf[watchRecord](e.Words(e.ID))
	for i, p := range placesOf(e.Num) {
		r := &mine[i]
		if do.anew {
			*r = watchRecord{}
		}
		if !p.after || his[i].Change.Errno != 0 || r.Earlier.State == p.before() {
			continue
		}
		if race.Lstat(e.Dir, p.dir, &e.Stat) == 0 {
			r.Earlier = p.glance(e)
		}
		e.Progress()
		if r.Earlier.State != p.before() {
			again = unix.EAGAIN
		}
	}
	return again
}

func (p *place) glance(e *race.Env) (g glance) {
	g.Invoke = race.Now()
	saw, errno := p.look(e)
	g.Return = race.Now()
	g.State, g.Errno = saw, uint32(errno)
	return g
}

// watchChanges looks at all spots in turn, each from its announcement until its change is seen. EAGAIN says that some
// are not seen yet.
func watchChanges(e *race.Env, _ *race.Event) unix.Errno {
	do := errandOf(e.Arg)
	his, mine := recordsOf[changeRecord](e.Words(do.writer)), recordsOf[watchRecord](e.Words(e.ID))
	places := placesOf(e.Num)
	for began := race.Now(); ; {
		open := 0
		for i := range places {
			e.Progress()
			switch r := &mine[i]; {
			case r.Over == 1:
			case his[i].Announced.Load() == 0:
				open++
			case his[i].Change.Errno != 0:
				r.Over = 1
			case !r.note(places[i].glance(e), &places[i].spot):
				open++
			}
		}
		spent := race.Now() - began
		switch {
		case open == 0:
			return 0
		case spent > int64(do.slice):
			return unix.EAGAIN
		}
		race.Sleep(min(max(time.Duration(spent)/20, 50*time.Microsecond), 5*time.Millisecond))
	}
}

// note records a look, and reports whether it saw the change.
func (r *watchRecord) note(g glance, s *spot) bool {
	r.Looks++
	if r.First.Invoke == 0 {
		r.First = g
	}
	switch {
	case g.State == failing:
		r.Failed++
	case g.State == s.wanted():
		r.Fresh, r.Over = g, 1
		return true
	default:
		r.Stale = g
		r.Stales++
	}
	if g.State == absent && r.Absent.Invoke == 0 {
		r.Absent = g
	}
	if g.State == neither && r.Torn.Invoke == 0 {
		r.Torn = g
	}
	return false
}
