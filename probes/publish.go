package probes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var publish = Probe{
	Name:    "publish",
	Promise: "A claim written under a private name and published by link or by rename is never seen empty or torn.",
	Why: "Reading a claim that is still empty as malformed, and so as stale, is the commonest take-over bug: up to 5 owners " +
		"of 8 have been reported. Publishing the claim whole removes the state in which it can be misread.",
	How: "One contender publishes a file of 8 KiB that it wrote beforehand, the others open the name until they find it and " +
		"read it, all starting at the same instant. Once by link(2), once by rename(2). Only rounds in which a reader overlaps the publication count.",
	Control: "exclusive create, then write",
	Broken:  "A claim's content cannot be trusted at first sight here: judge a claim without readable content by its age, never as malformed.",
	Refused: "There is no atomic publication here: judge a claim without readable content by its age, never as malformed.",
	Ops: []race.Op{
		{Name: "publish-by-link", Meets: meets(), Prepare: prepareNew, Attempt: publishByLink, Settle: removeWritten, Close: removeOwn},
		{Name: "publish-by-rename", Meets: meets(), Prepare: prepareNew, Attempt: publishByRename, Settle: removeWritten, Close: removeOwn},
		{Name: "create-then-write", Meets: meets(), Prepare: prepareNew, Attempt: createThenWrite, Settle: removeWritten, Close: removeOwn},
	},
	Run: runPublish,
}

func runPublish(ctx context.Context, b *Bench, f *result.Finding) {
	b.Time /= 2
	refusals := []unix.Errno{unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EINVAL, unix.EACCES, unix.EMLINK}
	total, refused, control := newEvidence("publish"), newEvidence("publish"), newEvidence("create-then-write")
	ways := map[string]*evidence{}
	var err error
	for _, op := range []string{"publish-by-link", "publish-by-rename"} {
		w := watch{op: op, control: control.op, refusals: refusals}
		e, c, failed := w.race(ctx, b, f)
		control.merge(c)
		if err = failed; err != nil {
			break
		}
		if e.rounds > 0 && e.refused == e.rounds {
			f.Warnings = append(f.Warnings, op+" is refused here with "+countsOf(e.errnos))
			refused.merge(e)
			continue
		}
		ways[op] = e
		total.merge(e)
	}
	if len(ways) == 0 && err == nil {
		total = refused
	}
	decide(f, total, control, b.MinProof, err)
	for _, op := range slices.Sorted(maps.Keys(ways)) {
		unproved(f, op, ways[op], control, b.MinProof)
	}
	if f.Verdict == result.Holds {
		f.Reason = fmt.Sprintf("never empty or torn in %d contested rounds of %s", f.Contested, strings.Join(slices.Sorted(maps.Keys(ways)), " and "))
	}
}

// prepareNew lets the writer make the file that it will publish. Nothing has ever been under the round's name.
func prepareNew(e *race.Env) unix.Errno {
	if !e.First {
		return 0
	}
	if errno := e.MakeParent(); errno != 0 {
		return errno
	}
	removeOwn(e)
	return writeFile(e, e.Own(), uint64(e.Num)<<1)
}

// untilSeen is how often a reader looks for a name that is about to appear.
const untilSeen = 50

func publishByLink(e *race.Env, ev *race.Event) unix.Errno {
	if !e.First {
		return look(e, ev, untilSeen)
	}
	ev.Role = race.Writer
	return race.Link(e.Dir, e.Own(), e.Name())
}

func publishByRename(e *race.Env, ev *race.Event) unix.Errno {
	if !e.First {
		return look(e, ev, untilSeen)
	}
	ev.Role = race.Writer
	return race.Rename(e.Dir, e.Own(), e.Name(), 0)
}

func createThenWrite(e *race.Env, ev *race.Event) unix.Errno {
	if !e.First {
		return look(e, ev, untilSeen)
	}
	ev.Role = race.Writer
	fd, errno := race.Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
	if errno != 0 {
		return errno
	}
	errno = fill(e, fd, uint64(e.Num)<<1)
	if failed := race.Close(fd); errno == 0 {
		errno = failed
	}
	return errno
}
