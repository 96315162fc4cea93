package probes

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// The kinds of violation, beside name-absent and stale-handle.
const (
	newNameLate      = "new-name-late"
	newEntryLate     = "new-entry-late"      // not in a listing, yet
	removedNameStays = "removed-name-stays"  // seen by a look-up
	removedInListing = "removed-entry-stays" // seen in a listing
	oldFileStays     = "replaced-file-stays" // the one that another was renamed over
	touchLate        = "touch-late"          // new times are not seen by who opens the file
	contentStale     = "content-stale"       // a read after open does not see what was written before close
)

// tolerable is how late a change may be seen: as late as the shortest cache time-out that NFS can be given, a second,
// and the time of a look. Content after close and open may not be late at all.
const tolerable = 1500 * time.Millisecond

// A watched is one change and one watcher of it, raw.
type watched struct {
	spot
	round           int
	writer, watcher int
	change          glance
	seen            watchRecord
	patience        time.Duration // how long the watcher was to look
}

// judge rules on one change. lag is how late it was seen at most, 0 if the first look saw it: a clock that runs on while
// nobody looks is no lateness, and so only a look that did not see the change shows that it is late. Of a change that was
// not seen, lag is how late the last such look was; a watcher that could not look on for most of its time says nothing.
func (w *watched) judge() (v ruling, lag time.Duration) {
	r := &w.seen
	unseen := time.Duration(r.Stale.Invoke - w.change.Return)
	switch {
	case slices.Contains(changeRefused, unix.Errno(w.change.Errno)):
		return ruling{refused: true}, 0
	case w.change.Errno != 0 || r.First.Invoke == 0 || w.after && r.Earlier.State != w.before():
		return ruling{failed: true}, 0
	case r.Fresh.Invoke == 0 && r.Stales == 0:
		return ruling{failed: true}, 0 // every look failed
	case r.Fresh.Invoke == 0:
		lag = max(1, unseen)
	case r.Stales > 0:
		lag = max(1, time.Duration(r.Fresh.Return-w.change.Return))
	}
	if v := w.wrong(); v.kind != "" {
		return v, lag
	}
	switch {
	case w.noted() || r.Fresh.Invoke != 0 && unseen <= tolerable:
		return ruling{}, lag
	case r.Fresh.Invoke == 0 && unseen < min(w.patience/2, tolerable):
		return ruling{failed: true}, 0
	}
	return ruling{kind: w.kind(), sentence: fmt.Sprintf("contender %d changed a name (%s), and contender %d %s", w.writer, w.spot, w.watcher, w.howLate(lag))}, lag
}

// changeRefused is what a writer is told where an operation does not exist.
var changeRefused = []unix.Errno{unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EINVAL}

// wrong is what is a violation at once, however soon the next look sees the change.
func (w *watched) wrong() ruling {
	r := &w.seen
	switch {
	case w.after && w.before() == old && w.what != removed && r.Absent.Invoke != 0:
		kind := nameAbsent
		if unix.Errno(r.Absent.Errno) == unix.ESTALE {
			kind = staleHandle
		}
		return ruling{kind: kind, sentence: fmt.Sprintf("contender %d found nothing under a name that it had seen and that was never removed (%s by contender %d)", w.watcher, w.spot, w.writer)}
	case w.by == byOpen && w.what != touched && (w.what == rewritten && r.Stales > 0 && r.Absent.Invoke == 0 || r.Torn.Invoke != 0):
		return ruling{kind: contentStale, sentence: fmt.Sprintf("contender %d opened a file after contender %d had written and closed it, and read %s", w.watcher, w.writer, w.readInstead())}
	}
	return ruling{}
}

func (w *watched) readInstead() string {
	if w.seen.Torn.Invoke != 0 {
		return "something else (" + w.spot.String() + ")"
	}
	return "what was there before (" + w.spot.String() + ")"
}

// noted says of a spot that it may be late as long as it likes: no filesystem promises a cached size to be the newest.
func (w *watched) noted() bool { return w.what == rewritten && w.by == byStat }

func (w *watched) kind() string {
	listed := w.by == byList
	switch {
	case w.what == removed && listed:
		return removedInListing
	case w.what == removed:
		return removedNameStays
	case listed:
		return newEntryLate
	case w.seen.Stale.State == absent:
		return newNameLate
	case w.what == touched:
		return touchLate
	}
	return oldFileStays
}

func (w *watched) howLate(lag time.Duration) string {
	if w.seen.Fresh.Invoke == 0 {
		return fmt.Sprintf("still did not see it %s later", seconds(lag))
	}
	return fmt.Sprintf("saw it %s later only", seconds(lag))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }

// watch counts one change and its watcher as a round, contested by construction: each look at it began after the change
// had returned. However often it was looked at, it is one: looks that do not see it yet are no evidence that it is seen.
func (e *evidence) watch(b *Bench, w *watched, v ruling) {
	e.rounds++
	switch {
	case v.refused:
		e.refused++
	case v.failed:
		e.failed++
	default:
		e.contested++
	}
	for _, errno := range w.unexpected() {
		if errno != 0 {
			e.errnos[errnoName(errno)]++
		}
	}
	e.accuse(v, func() result.Round { return w.raw(b) })
}

// unexpected is the errnos of what did not go as it should: that a name is absent before it is made is no news.
func (w *watched) unexpected() []uint32 {
	errnos := []uint32{w.change.Errno}
	if w.seen.Earlier.State != w.before() {
		errnos = append(errnos, w.seen.Earlier.Errno)
	}
	if w.seen.First.State != w.wanted() {
		errnos = append(errnos, w.seen.First.Errno)
	}
	return errnos
}

// raw is the record of a change and of the looks at it that matter.
func (w *watched) raw(b *Bench) result.Round {
	out := result.Round{Operation: "visibility", Number: w.round, Phase: race.Step.String()}
	add := func(who int, did string, g glance) {
		if g.Invoke != 0 && !slices.ContainsFunc(out.Events, func(ev result.Event) bool { return ev.Invoke == g.Invoke }) {
			ev := b.event(who, &race.Event{Invoke: g.Invoke, Return: g.Return, Errno: g.Errno})
			ev.Did = did
			out.Events = append(out.Events, ev)
		}
	}
	add(w.watcher, "look before: "+w.seen.Earlier.State.String(), w.seen.Earlier)
	add(w.writer, w.what.String(), w.change)
	for _, g := range []glance{w.seen.First, w.seen.Absent, w.seen.Torn, w.seen.Stale, w.seen.Fresh} {
		add(w.watcher, "look "+w.by.String()+": "+g.State.String(), g)
	}
	return out
}
