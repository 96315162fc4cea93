package probes

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var errnoTable = Probe{
	Name: "errno-table",
	Promise: "A call on a name that is taken says EEXIST and leaves what is there alone, a call on one that is gone says " +
		"ENOENT, and whoever may rename a file away may remove it.",
	Why: "A claim is judged by an errno. EEXIST means that another was first: who is told EPERM in its place reports a fault " +
		"of the directory, or tries for ever. A create that empties the file in the way has destroyed another's claim. " +
		"Where a removal of what is gone succeeds, two programs both believe that they have taken a stale claim away.",
	How: "Create with O_EXCL, mkdir, symlink, link and rename onto nothing, a file, an empty and a non-empty directory, a " +
		"symlink, a dangling symlink and a fifo; unlink, rmdir and rename of what was never there and of what another has " +
		"just removed. The caller looks at the name before another process makes what is there. Where the survey runs as root " +
		"the calls are made by a second user, too, in a directory open to all, a closed one and a sticky one. The errnos are " +
		"compared with those of the man pages; where several are allowed, or where nothing rests on it, another is a note.",
	Control: "a create that truncates in place of O_EXCL, and a removal that calls ENOENT a success",
	Broken: "Programs that tell a taken name by EEXIST, or a removed one by ENOENT, fail here: read the kinds. Look for a file " +
		"server or a FUSE program that maps errnos, and at the directory's ACL. Where what exists was changed, do not use the directory.",
	Refused: "Nothing can be made here at all: look at the mount's options and at who may write.",
	Ops:     errnoOps(),
	Run:     runErrnos,
	Alone:   true,
}

// The kinds of violation, beside takenNameGiven and changedByLoser.
const (
	takenEmptied   = "taken-file-emptied"
	deniedForTaken = "denied-where-taken"    // EPERM or EACCES, and EEXIST is meant
	wrongForTaken  = "wrong-errno-for-taken" // any other
	goneRemoved    = "gone-thing-removed"
	doneAnyway     = "done-where-refused"
	unlinkDenied   = "unlink-denied-rename-allowed"
)

// A celling is what happened in one cell.
type celling struct {
	dir, set race.Event
	drop     race.Event // of what is gone
	did      race.Event
	after    race.Event // the look at the thing
	away     race.Event // the rename, where an unlink was denied
	tried    bool       // the rename was
	absent   unix.Errno // what the call says where nothing is in the way
}

// notToBeHad is how a filesystem says that it has no such call, or no such thing.
var notToBeHad = errnos(unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL, unix.EPERM, unix.EACCES, unix.EMLINK)

// judgeCell rules on one cell.
func judgeCell(c *cell, got *celling) ruling {
	errno := unix.Errno(got.did.Errno)
	switch {
	case got.dir.Errno != 0, got.drop.Errno != 0, got.set.Unready, got.did.Unready, trouble(got.set.Errno), trouble(got.did.Errno) && !slices.Contains(c.want, errno):
		return ruling{failed: true}
	case got.set.Errno != 0, c.taken() && slices.Contains(notToBeHad, got.absent):
		return ruling{refused: true}
	}
	if v := c.judgeAfter(errno, got); v.kind != "" || v.failed {
		return v
	}
	switch {
	case slices.Contains(c.want, errno):
		return ruling{}
	case c.taken() && errno == 0:
		return c.violates(takenNameGiven, "succeeded", errno)
	case c.taken() && (errno == unix.EPERM || errno == unix.EACCES):
		return c.violates(deniedForTaken, "was told that it may not", errno)
	case c.taken():
		return c.violates(wrongForTaken, "was told", errno)
	case c.gone() && errno == 0:
		return c.violates(goneRemoved, "succeeded", errno)
	case c.denies() && errno == 0:
		return ruling{note: "permissions are not enforced: a second user did what only the owner may"}
	case errno == 0:
		return c.violates(doneAnyway, "succeeded", errno)
	case c.call == callUnlink && c.thing == aFile && got.tried && got.away.Errno == 0:
		return c.violates(unlinkDenied, "was denied, and the file could be renamed away", errno)
	}
	return ruling{note: fmt.Sprintf("%s gave %s, where %s is meant", c, errnoName(uint32(errno)), told(c.want[0]))}
}

// judgeAfter rules on what is there after a call that must not have changed it.
func (c *cell) judgeAfter(errno unix.Errno, got *celling) ruling {
	if !slices.Contains(existing, c.thing) || errno == 0 && !c.taken() {
		return ruling{}
	}
	if got.after.Errno != 0 {
		return ruling{failed: true}
	}
	switch got.after.Saw {
	case thingEmptied:
		return c.violates(takenEmptied, "emptied it", errno)
	case thingAbsent, thingOther:
		return c.violates(changedByLoser, "changed it", errno)
	}
	return ruling{}
}

func (c *cell) violates(kind, what string, errno unix.Errno) ruling {
	return ruling{kind: kind, sentence: fmt.Sprintf("%s %s (%s), where %s is meant", c, what, told(errno), told(c.want[0]))}
}

func told(errno unix.Errno) string {
	if errno == 0 {
		return "success"
	}
	return errnoName(uint32(errno))
}

func (c *cell) String() string {
	where := map[bool]string{true: " onto ", false: " of "}[c.onto()]
	s := c.call + where + inWords[c.thing]
	if c.stranger {
		s += map[uint32]string{
			dirOpen: " by a second user in an open directory", dirClosed: " by a second user in a closed directory", dirSticky: " by a second user in a sticky directory",
		}[c.dir]
	}
	return s
}

// figure is the name of the errno that was seen.
func (c *cell) figure() string {
	s := c.call + "_" + c.thing
	if c.stranger {
		s += map[uint32]string{dirOpen: "_stranger_open", dirClosed: "_stranger_closed", dirSticky: "_stranger_sticky"}[c.dir]
	}
	return strings.ReplaceAll(s, "-", "_") + "_errno"
}

func runErrnos(ctx context.Context, b *Bench, f *result.Finding) {
	e, control := newEvidence("errno-table"), newEvidence("errno-control")
	pairs := b.pairs()
	if b.Routes < 2 {
		pairs = pairs[:1]
	}
	absent := map[string]unix.Errno{}
	err := b.cells(ctx, nil, control, pairs[0], absent, []cell{
		{call: callTruncate, thing: aFile, dir: dirOwn, want: errnos(unix.EEXIST)},
		{call: callUnlinkAnyway, thing: aGone, dir: dirOwn, want: errnos(unix.ENOENT)},
	})
	for _, p := range pairs {
		if err == nil {
			err = b.cells(ctx, f, e, p, absent, ownerCells())
		}
	}
	if err == nil {
		err = b.asStranger(ctx, f, e, pairs[0], absent)
	}
	if e.rounds > 0 && e.refused < e.rounds && e.refused > 0 {
		footnote(f, fmt.Sprintf("%d of %d cells were left out: links, symlinks or fifos cannot be made here", e.refused, e.rounds))
	}
	answer(f, e, control, err)
}

// asStranger adds the cells of a second user, where there can be one.
func (b *Bench) asStranger(ctx context.Context, f *result.Finding, e *evidence, p [2]int, absent map[string]unix.Errno) error {
	if os.Geteuid() != 0 {
		footnote(f, "calls by a second user were not tested: the survey does not run as root")
		return nil
	}
	s := b.script(ctx)
	dir := s.do(p[0], stepDir, dirSticky|asStranger)
	s.do(p[0], stepTidy, 0)
	if s.err != nil {
		return s.err
	}
	if dir.Errno != 0 || dir.Saw != dirSticky || dir.Inode != strangerUID {
		footnote(f, "calls by a second user were not tested: owners and permission bits are not kept here")
		return nil
	}
	return b.cells(ctx, f, e, p, absent, strangerCells())
}

// cells plays each cell and judges it. p[0] makes and looks, p[1] calls.
func (b *Bench) cells(ctx context.Context, f *result.Finding, e *evidence, p [2]int, absent map[string]unix.Errno, all []cell) error {
	for i := range all {
		c := &all[i]
		s, got := b.cell(ctx, p, c)
		if s.err != nil {
			return s.err
		}
		if c.thing == aNothing && !c.stranger {
			absent[c.call] = unix.Errno(got.did.Errno)
		}
		got.absent = absent[c.call]
		v := judgeCell(c, &got)
		e.check(s, v, e.op)
		if f != nil && !v.refused && !v.failed {
			f.Figures[c.figure()] = float64(got.did.Errno)
		}
	}
	return nil
}

func (b *Bench) cell(ctx context.Context, p [2]int, c *cell) (s *script, got celling) {
	maker, caller, arg := p[0], p[1], uint64(0)
	if c.stranger {
		arg = asStranger
	}
	thing := uint64(slices.Index(things, c.thing))
	s = b.script(ctx)
	s.round.Phase = race.Step
	got.dir = s.do(maker, stepDir, uint64(c.dir)|arg)
	if got.dir.Errno != 0 {
		s.do(maker, stepTidy, 0)
		return s, got
	}
	if c.onto() && b.Routes > 1 {
		s.do(caller, stepLook, thing) // nothing is there yet: what the caller remembers of that must not matter
	}
	if c.thing != aNothing {
		got.set = s.do(maker, stepSet, thing)
	}
	if c.thing == aGone && got.set.Errno == 0 {
		s.do(caller, stepLook, thing)
		got.drop = s.do(maker, stepDrop, thing)
	}
	got.did = s.do(caller, "errno-"+c.call, arg)
	if c.call != callUnlink || got.did.Errno == 0 {
		got.after = s.do(maker, stepLast, thing)
		return s, got
	}
	got.after = s.do(maker, stepLook, thing)
	got.away, got.tried = s.do(caller, "errno-"+callMoveAway, arg), true
	s.do(maker, stepTidy, 0)
	return s, got
}
