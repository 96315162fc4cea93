package probes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var fullDisk = Probe{
	Name:    "full-disk",
	Promise: "On a full filesystem, or at the end of a quota, a claim is refused with an error, and none is left torn that its maker believes in.",
	Why: "A disk that fills up is the commonest fault of all. Where a write is accepted and later dropped, a claim or a " +
		"record of finished work is empty, and who finds it empty takes it for stale.",
	How: "Only on a target that the configuration names as disposable. The filesystem is filled through the work directory. " +
		"Then claims are made, by create and write and by a private file and link, each written, synced and closed with every " +
		"error looked at; another contender looks whether a claim that was made is whole and whether one that was refused is " +
		"absent. At last the space is given back: a claim from before must be whole, and a new one possible.",
	Control: "a maker that does not look at the errors of write, sync and close",
	Broken:  "Do not keep claims here without watching the free space: what its maker was told is written is not there, or the space does not come back.",
	Refused: "Nothing can be written here at all.",
	Ops:     fullOps,

	Alone:      true,
	Disposable: true,
	Run:        runFull,
}

// The kinds of violation, beside contentEmpty, contentTorn, objectVanished and successDenied.
const staysFull = "stays-full"

const (
	mostRoom   = 8 << 30 // a filesystem with more room is not filled
	fullClaims = 20      // of each way of claiming
)

// A fullClaim is one claim on a full filesystem.
type fullClaim struct {
	linked bool
	number int64
	did    race.Event
	look   race.Event
}

const leavesTorn = "a claim that was refused half-way is left behind empty or torn: publish claims by link, or remove what could not be written"

// judgeFull rules on one claim. refused says that it was, for want of space.
func judgeFull(c *fullClaim) (v ruling, refused bool) {
	errno := unix.Errno(c.did.Errno)
	absent := unix.Errno(c.look.Errno) == unix.ENOENT
	refused = noRoom(c.did.Errno)
	switch {
	case c.did.Unready, errno != 0 && !refused, c.look.Errno != 0 && !absent:
		return ruling{failed: true}, false
	case refused && absent:
		return ruling{}, true
	case refused && c.linked:
		return ruling{kind: successDenied, sentence: "a claim whose link was refused with " + errnoName(c.did.Errno) + " is there all the same"}, true
	case refused:
		return ruling{note: leavesTorn}, true
	case absent:
		return ruling{kind: objectVanished, sentence: "a claim was written, synced and closed without an error, and is not there"}, false
	case c.look.Saw == sawEmpty:
		return ruling{kind: contentEmpty, sentence: "a claim was written, synced and closed without an error, and is empty"}, false
	case c.look.Saw != uint64(claimByte(c.number)):
		return ruling{kind: contentTorn, sentence: "a claim was written, synced and closed without an error, and is torn"}, false
	}
	return ruling{}, false
}

func noRoom(errno uint32) bool {
	return unix.Errno(errno) == unix.ENOSPC || unix.Errno(errno) == unix.EDQUOT
}

func runFull(ctx context.Context, b *Bench, f *result.Finding) {
	e, control := newEvidence("full-disk"), newEvidence("full-control")
	before := b.script(ctx)
	before.round.Phase = race.Step
	early := before.do(0, "full-claim", 0)
	filled, full, err := b.fillUp(ctx, f, before)
	refused := 0
	if err == nil && full {
		refused, err = b.claimFull(ctx, e, control)
	}
	freed, failed := b.giveBack(ctx, filled)
	if err == nil {
		err = failed
	}
	if err == nil {
		err = b.afterwards(ctx, e, before, early, freed)
	}
	f.Figures["refused_count"] = float64(refused)
	answer(f, e, control, err)
	switch {
	case f.Verdict != result.Holds && f.Verdict != result.Unproven || err != nil:
	case early.Errno != 0:
		f.Verdict, f.Reason = result.Unproven, "no claim could be made before the filesystem was filled: "+errnoName(early.Errno)
	case !full && f.Figures["room_bytes"] > mostRoom:
		f.Verdict, f.Reason = result.Unproven, fmt.Sprintf("not filled: %.0f MiB are free, and no more than %d MiB are filled", f.Figures["room_bytes"]/(1<<20), mostRoom>>20)
	case !full:
		f.Verdict, f.Reason = result.Unproven, fmt.Sprintf("the filesystem could not be filled: %.0f MiB free at the beginning, %.0f MiB written", f.Figures["room_bytes"]/(1<<20), f.Figures["filled_bytes"]/(1<<20))
	case refused == 0:
		f.Verdict, f.Reason = result.Unproven, "no claim was refused on the full filesystem: it has room left for them"
	case f.Verdict == result.Holds:
		f.Reason = fmt.Sprintf("%d of %d claims on the full filesystem were refused with an error, and the other %d were whole", refused, 2*fullClaims, 2*fullClaims-refused)
	}
}

// fillUp fills the filesystem, and returns the numbers of the files that do.
func (b *Bench) fillUp(ctx context.Context, f *result.Finding, s *script) (filled []int64, full bool, err error) {
	room := s.do(0, "full-room", 0)
	f.Figures["room_bytes"] = float64(room.Saw)
	if s.err != nil || room.Errno != 0 || room.Saw > mostRoom {
		return nil, false, s.err
	}
	most := room.Saw + room.Saw/4 + 32<<20 // more than this does not fit, whatever is said
	for until := time.Now().Add(20 * b.Time); time.Now().Before(until); {
		number, left := b.Line.Name(), most-uint64(f.Figures["filled_bytes"])
		filled = append(filled, number)
		ev, err := b.Line.Do(ctx, 0, "full-fill", number, min(fillAtOnce, left))
		f.Figures["filled_bytes"] += float64(ev.Saw)
		switch {
		case err != nil:
			return filled, false, err
		case noRoom(ev.Errno):
			return filled, true, nil
		case ev.Errno == 0 && ev.Saw >= left:
			footnote(f, "more could be written than there was room for: what is written need not be kept")
			return filled, true, nil
		case ev.Errno != 0:
			return filled, false, nil
		}
	}
	return filled, false, nil
}

// claimFull makes claims on the full filesystem, and counts those that were refused.
func (b *Bench) claimFull(ctx context.Context, e, control *evidence) (refused int, err error) {
	for i := range 2 * fullClaims {
		op, into := "full-claim", e
		linked := i%2 == 1
		if linked {
			op = "full-claim-linked"
		}
		no, err := b.claimOnce(ctx, op, linked, into)
		if err != nil {
			return refused, err
		}
		if no {
			refused++
		}
	}
	_, err = b.claimOnce(ctx, "full-claim-careless", false, control)
	return refused, err
}

// claimOnce makes one claim, lets another contender look at it, and removes it.
func (b *Bench) claimOnce(ctx context.Context, op string, linked bool, e *evidence) (refused bool, err error) {
	s := b.script(ctx)
	s.round.Phase = race.Step
	c := fullClaim{linked: linked, number: s.name}
	c.did = s.do(0, op, 0)
	c.look = s.do(1, "full-look", 0)
	if c.look.Errno == 0 {
		s.do(0, "full-remove", 0)
	}
	if s.err != nil {
		return false, s.err
	}
	v, refused := judgeFull(&c)
	e.check(s, v, op)
	return refused, nil
}

// giveBack removes what fills the filesystem, and reports whether it could.
func (b *Bench) giveBack(ctx context.Context, filled []int64) (freed bool, err error) {
	ctx, freed = context.WithoutCancel(ctx), true // each step is bounded by itself
	for _, number := range filled {
		ev, failed := b.Line.Do(ctx, 0, "full-remove", number, 0)
		err = errors.Join(err, failed)
		freed = freed && (ev.Errno == 0 || unix.Errno(ev.Errno) == unix.ENOENT)
	}
	return freed, err
}

// afterwards looks at the claim from before, and makes another.
func (b *Bench) afterwards(ctx context.Context, e *evidence, before *script, early race.Event, freed bool) error {
	if early.Errno != 0 {
		before.do(0, "full-remove", 0)
		return before.err
	}
	kept := fullClaim{number: before.name, did: early, look: before.do(1, "full-look", 0)}
	before.do(0, "full-remove", 0)
	v, _ := judgeFull(&kept)
	e.check(before, v, "a claim from before")
	s := b.script(ctx)
	s.round.Phase = race.Step
	again := s.do(0, "full-claim", 0)
	for until := time.Now().Add(b.HoldWait); s.err == nil && again.Errno != 0 && time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		again = s.do(0, "full-claim", 0) // some give space back a moment later
	}
	s.do(0, "full-remove", 0)
	e.check(s, judgeFreed(freed, again), "a claim when the space was given back")
	return s.err
}

func judgeFreed(freed bool, again race.Event) ruling {
	switch {
	case !freed:
		return ruling{kind: staysFull, sentence: "files cannot be removed from the full filesystem"}
	case again.Errno == 0:
		return ruling{}
	case !noRoom(again.Errno):
		return ruling{failed: true}
	}
	return ruling{kind: staysFull, sentence: "the space was given back, and a claim is still refused with " + errnoName(again.Errno)}
}
