package probes

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
		"go, all contenders at once, with each kind of lock that is not refused. The values read must be the next ones, each once.",
	Control: "the same without the lock",
	Broken:  "Do not keep shared state under this lock here. On NFS compare with noac; or let each contender write files of its own, as generations does.",
	Refused: "No kind of lock exists here: let each contender write files of its own, as generations does.",
	Ops: []race.Op{
		countUnder(lockKinds[0]), countUnder(lockKinds[1]), countUnder(lockKinds[2]),
		countUnder(lockKind{name: "no", apply: func(*race.Env, int, lockHow) unix.Errno { return 0 }}),
	},
	Run: runCoherence,
}

func countUnder(k lockKind) race.Op {
	return race.Op{
		Name: "count-under-" + k.name, Meets: meets(), Open: openLocks, Close: closeLocks,
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
	return writeAll(e.FD[0], b, 0)
}

const lostUpdate = "lost-update"

// A counter is the value that the next contender must find, as far as the rounds before tell.
type counter struct {
	next  uint64
	known bool
}

// judge rules on one round. Its contenders must have found n values in a row, and the first of them must be the one
// that the round before left: two caches that each count for themselves show different values, too.
func (c *counter) judge(op string, r *race.Round) ruling {
	values := make([]uint64, 0, len(r.Events))
	for i := range r.Events {
		switch ev := &r.Events[i]; {
		case ev.Unready:
			c.known = false
			return ruling{failed: true}
		case refusedLock(ev.Errno):
			c.known = false
			return ruling{refused: true}
		case ev.Errno != 0:
			c.known = false
			return ruling{failed: true}
		default:
			values = append(values, ev.Saw)
		}
	}
	slices.Sort(values)
	n := uint64(len(values))
	wrong := c.known && values[0] != c.next || values[n-1] != values[0]+n-1
	expected := ""
	if c.known {
		expected = fmt.Sprintf(", beginning with %d", c.next)
	}
	c.next, c.known = values[n-1]+1, true
	if !wrong {
		for i := range values[1:] {
			wrong = wrong || values[i+1] != values[i]+1
		}
	}
	if wrong {
		return ruling{kind: lostUpdate, sentence: fmt.Sprintf("%d contenders found the values %v during %s, where they must be consecutive%s: updates are lost", n, values, op, expected)}
	}
	return ruling{}
}

func runCoherence(ctx context.Context, b *Bench, f *result.Finding) {
	control := newEvidence("count-under-no")
	var count counter
	if !b.withLocks(ctx, f) {
		return
	}
	err := b.control(ctx, control, func(r *race.Round) ruling { return count.judge(control.op, r) })
	total, refused := newEvidence("count-under-lock"), newEvidence("count-under-lock")
	b.Time /= time.Duration(len(lockKinds))
	held := map[string]*evidence{}
	for _, k := range lockKinds {
		if err != nil {
			break
		}
		e, count := newEvidence("count-under-"+k.name), counter{}
		err = b.raceAll(ctx, e, f, func(r *race.Round) ruling { return count.judge(e.op, r) })
		if e.rounds > 0 && e.refused == e.rounds {
			f.Warnings = append(f.Warnings, k.name+" is refused here with "+countsOf(e.errnos))
			refused.merge(e)
			continue
		}
		name := strings.ReplaceAll(k.name, "-", "_")
		f.Figures[name+"_contested_count"], f.Figures[name+"_lost_count"] = float64(e.contested), float64(e.violations)
		held[k.name] = e
		total.merge(e)
	}
	if len(held) == 0 && err == nil {
		total = refused
	}
	decide(f, total, control, b.MinProof, err)
	names := slices.Sorted(maps.Keys(held))
	for _, name := range names {
		unproved(f, name, held[name], control, b.MinProof)
	}
	if f.Verdict == result.Holds {
		f.Reason = fmt.Sprintf("no update lost in %d contested rounds under %s", f.Contested, strings.Join(names, ", "))
	}
}
