package probes

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var lockCoherence = Probe{
	Name:    "lock-coherence",
	Promise: "A value written under a lock is read by the next holder.",
	Why: "A lock that excludes does not help if the next holder reads its own cache: counters and indexes lose updates " +
		"under a lock that works.",
	How: "Each contender waits for the lock, reads a counter in the locked file, writes it back increased by one, and lets " +
		"go, all contenders at once, with each kind of lock that is not refused. No two contenders of a round may read the same value.",
	Control: "the same without the lock",
	Broken:  "Do not keep shared state under this lock here. On NFS compare with noac; or let each contender write files of its own, as generations does.",
	Refused: "No kind of lock exists here: let each contender write files of its own, as generations does.",
	Ops: []race.Op{
		countUnder(lockKinds[0]), countUnder(lockKinds[1]), countUnder(lockKinds[2]),
		countUnder(lockKind{"no", func(*race.Env, int, lockHow) unix.Errno { return 0 }}),
	},
	Run: runCoherence,
}

func countUnder(k lockKind) race.Op {
	return race.Op{
		Name: "count-under-" + k.name, Open: openLocks, Close: closeLocks,
		Attempt: func(e *race.Env, ev *race.Event) unix.Errno {
			if errno := k.apply(e, e.FD[0], lockHow{wait: true}); errno != 0 {
				return errno
			}
			errno := increase(e, ev)
			if failed := k.apply(e, e.FD[0], lockHow{unlock: true}); errno == 0 {
				errno = failed
			}
			return errno
		},
	}
}

// increase adds one to the counter; Saw is the value it found.
func increase(e *race.Env, ev *race.Event) unix.Errno {
	b := e.Buf[:8]
	n, errno := race.Pread(e.FD[0], b, 0)
	if errno != 0 {
		return errno
	}
	if n == 8 {
		ev.Saw = binary.LittleEndian.Uint64(b)
	}
	binary.LittleEndian.PutUint64(b, ev.Saw+1)
	_, errno = race.Pwrite(e.FD[0], b, 0)
	return errno
}

const lostUpdate = "lost-update"

// judgeCount rules on one round: each contender must have found another value. All of them succeed, so the round
// is contested if any two overlap.
func judgeCount(op string, r *race.Round) ruling {
	seen := map[uint64]int{}
	for i := range r.Events {
		ev := &r.Events[i]
		switch {
		case ev.Unready:
			return ruling{failed: true}
		case refusedLock(ev.Errno):
			return ruling{refused: true}
		case ev.Errno != 0:
			return ruling{failed: true}
		}
		if j, ok := seen[ev.Saw]; ok {
			return ruling{kind: lostUpdate, sentence: fmt.Sprintf("contenders %d and %d both read %d during %s: one update is lost", j, i, ev.Saw, op)}
		}
		seen[ev.Saw] = i
	}
	return ruling{}
}

func runCoherence(ctx context.Context, b *Bench, f *result.Finding) {
	control := newEvidence("count-under-no")
	err := b.control(ctx, control, func(r *race.Round) ruling { return judgeCount("count-under-no", r) })
	total, refused := newEvidence("count-under-lock"), newEvidence("")
	b.Time /= time3
	var held []string
	for _, k := range lockKinds {
		if err != nil {
			break
		}
		e := newEvidence("count-under-" + k.name)
		err = b.raceAll(ctx, e, f, func(r *race.Round) ruling { return judgeCount(e.op, r) })
		if e.rounds > 0 && e.refused == e.rounds {
			f.Warnings = append(f.Warnings, k.name+" is refused here with "+countsOf(e.errnos))
			refused.merge(e)
			continue
		}
		f.Figures[strings.ReplaceAll(k.name, "-", "_")+"_contested_count"] = float64(e.contested)
		f.Figures[strings.ReplaceAll(k.name, "-", "_")+"_lost_count"] = float64(e.violations)
		held = append(held, k.name)
		total.merge(e)
	}
	if total.rounds == 0 {
		total = refused
	}
	decide(f, total, control, "the same without the lock", b.MinProof, err)
	if f.Verdict == result.Holds {
		f.Reason = fmt.Sprintf("no update lost in %d contested rounds under %s", f.Contested, strings.Join(held, ", "))
	}
	slices.Sort(f.Warnings)
}

const time3 = 3 // kinds of lock share the probe's time
