package probes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var lockRelease = Probe{
	Name:    "lock-release",
	Promise: "A lock is free soon after its holder closes it, is killed or executes another program, and a waiter wakes.",
	Why: "A lock is only a claim if death ends it. Some servers keep the lock of a dead client for minutes, for a day, or " +
		"until somebody removes it by hand.",
	How: "One contender takes the lock, shared or exclusive; another is refused it (a second shared holder is not), then " +
		"waits for it. The holder closes the file, is killed with SIGKILL, or executes another program with the descriptor " +
		"marked close-on-exec. The seconds until the waiter has the lock are measured, for each kind of lock that is not refused.",
	Control: "a holder that stays alive and holds on",
	Broken:  "A crash blocks the work here until somebody intervenes: use a protocol that expires by itself, such as generations, or shorten the server's lease.",
	Refused: "No kind of lock exists here: use a protocol that expires by itself, such as generations.",
	Ops: []race.Op{
		{Name: "close-held", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
			errno := race.Close(e.FD[heldFd])
			e.FD[heldFd] = -1
			return errno
		}},
		{Name: "exec", Attempt: func(*race.Env, *race.Event) unix.Errno { return race.ExecPause() }},
	},
	Run: runRelease,
}

// A release is one experiment: a kind of lock, held in one mode, let go in one way.
type release struct {
	kind   lockKind
	shared bool
	way    string // close, kill, exec, or stay: the control
}

func (r release) String() string {
	return fmt.Sprintf("%s %s, %s", r.mode(), r.kind.name, map[string]string{
		"close": "closed", "kill": "holder killed", "exec": "holder executed another program", "stay": "holder held on",
	}[r.way])
}

func (r release) mode() string {
	if r.shared {
		return "shared"
	}
	return "exclusive"
}

// figure is the name of the slowest release in seconds.
func (r release) figure() string {
	return strings.ReplaceAll(fmt.Sprintf("%s_%s_%s_slowest_s", r.kind.name, r.mode(), r.way), "-", "_")
}

// The kinds of violation.
const (
	lockOutlives  = "lock-outlives-holder"
	waiterAsleep  = "waiter-not-woken"
	sharedRefused = "shared-refused"
)

// A releaseEvent is what one experiment saw, raw.
type releaseEvent struct {
	hold    race.Event // the holder's attempt
	second  race.Event // another's, without waiting: must be refused
	peer    race.Event // another's shared attempt while the holder has a shared lock: must succeed
	blocked bool       // the waiter was waiting before the release
	began   int64      // of the release, CLOCK_MONOTONIC ns
	wait    race.Event // the waiter's; Return 0 if it still waits at the deadline
	retry   race.Event // a third attempt without waiting, if the waiter still waits
}

// judgeRelease rules on one experiment.
func judgeRelease(r release, ev *releaseEvent) (v ruling, seconds float64) {
	switch {
	case refusedLock(ev.hold.Errno):
		return ruling{refused: true}, 0
	case ev.hold.Errno != 0:
		return ruling{failed: true}, 0
	case ev.second.Errno == 0:
		return ruling{failed: true, note: "a second contender got the lock as well: its release cannot be seen (see " + r.kind.name + ")"}, 0
	case r.shared && ev.peer.Errno != 0 && !busy(ev.peer.Errno) || !busy(ev.second.Errno):
		return ruling{failed: true}, 0
	case r.shared && ev.peer.Errno != 0:
		return ruling{kind: sharedRefused, sentence: fmt.Sprintf("%s: a second shared holder was refused with %s", r, errnoName(ev.peer.Errno))}, 0
	case !ev.blocked || ev.wait.Invoke == 0: // it was never seen to wait: it may have had no CPU
		return ruling{failed: true}, 0
	case ev.wait.Return == 0 && ev.retry.Return != 0 && ev.retry.Errno == 0:
		return ruling{kind: waiterAsleep, sentence: fmt.Sprintf("%s: the lock was free, and the contender that waited for it was not woken", r)}, 0
	case ev.wait.Return == 0:
		return ruling{kind: lockOutlives, sentence: fmt.Sprintf("%s: another contender still could not have it at the deadline", r)}, 0
	case ev.wait.Errno != 0:
		return ruling{failed: true}, 0
	}
	return ruling{}, float64(ev.wait.Return-ev.began) / 1e9
}

func busy(errno uint32) bool { return slices.Contains(lockBusy, unix.Errno(errno)) }

func runRelease(ctx context.Context, b *Bench, f *result.Finding) {
	total, refused, control := newEvidence("lock-release"), newEvidence(""), newEvidence("stay")
	began := time.Now()
	var err error
	for _, k := range lockKinds {
		if err = b.releaseKind(ctx, began, k, f, total, refused, control); err != nil {
			break
		}
	}
	if total.rounds == 0 {
		total = refused
	}
	decide(f, total, control, 1, err)
	f.Upper95 = nil // a handful of scripted releases bounds no rate
	conclude(f, total, control)
}

// conclude puts the outcome of the experiments into words; it makes a finding weaker, never stronger.
func conclude(f *result.Finding, total, control *evidence) {
	if f.Verdict != result.Holds && f.Verdict != result.Unproven {
		return
	}
	switch {
	case total.failed > 0 && len(total.notes) > 0:
		f.Verdict, f.Reason = result.Unproven, "no lock excludes at this scope, so that its release cannot be seen"
	case total.failed > 0:
		f.Verdict, f.Reason = result.Unproven, fmt.Sprintf("%d of %d experiments failed, errnos seen: %s", total.failed, total.rounds, countsOf(total.errnos))
	case control.violations < control.rounds:
		f.Verdict, f.Reason = result.Unproven, fmt.Sprintf("the positive control fired for %d of %d kinds of lock only: a lock that was held on to seemed to be released", control.violations, control.rounds)
	case f.Verdict == result.Holds:
		f.Reason = fmt.Sprintf("released, and a waiter woken, in %d of %d experiments, the slowest after %.4f s", f.Contested, f.Rounds, f.Figures["slowest_s"])
	}
}

func (b *Bench) releaseKind(ctx context.Context, began time.Time, k lockKind, f *result.Finding, total, refused, control *evidence) error {
	stay := release{k, false, "stay"}
	ev, s, err := b.release(ctx, stay, min(b.HoldWait, 100*time.Millisecond))
	if err != nil {
		return err
	}
	v, _ := judgeRelease(stay, &ev)
	if v.refused {
		f.Warnings = append(f.Warnings, k.name+" is refused here with "+errnoName(ev.hold.Errno))
		refused.rounds, refused.refused = refused.rounds+1, refused.refused+1
		refused.errnos[errnoName(ev.hold.Errno)]++
		return nil
	}
	control.count(v, s, stay)
	for _, way := range []string{"close", "kill", "exec"} {
		for _, shared := range []bool{false, true} {
			r := release{k, shared, way}
			for n := range 3 {
				if n > 0 && time.Since(began) > b.Time {
					break // some filesystems need seconds to wake a waiter
				}
				ev, s, err := b.release(ctx, r, b.HoldWait)
				if err != nil {
					return err
				}
				v, seconds := judgeRelease(r, &ev)
				total.count(v, s, r)
				if v == (ruling{}) {
					f.Figures[r.figure()] = max(f.Figures[r.figure()], seconds)
					f.Figures["slowest_s"] = max(f.Figures["slowest_s"], seconds)
				}
				if v.kind != "" {
					break // once is enough, and each may cost the whole wait
				}
			}
		}
	}
	return nil
}

// count adds one experiment. One whose waiter was blocked before the release is contested by construction.
func (e *evidence) count(v ruling, s *script, r release) {
	e.add(&s.round, true, v, func() result.Round { return s.raw(r.String()) })
}

// release runs one experiment with three contenders: holder 0, waiter 1, onlooker 2.
func (b *Bench) release(ctx context.Context, r release, deadline time.Duration) (ev releaseEvent, s *script, err error) {
	const holder, waiter, onlooker = 0, 1, 2
	s = b.script(ctx)
	arg := uint64(0)
	if r.shared {
		arg = askShared
	}
	defer func() {
		if e := b.tidy(ctx, s, r); err == nil {
			err = e
		}
	}()
	ev.hold = s.do(holder, r.kind.name+":try", arg)
	if s.err != nil || ev.hold.Errno != 0 {
		return ev, s, s.err
	}
	ev.second = s.do(waiter, r.kind.name+":try", 0)
	if r.shared {
		ev.peer = s.do(onlooker, r.kind.name+":try", askShared)
		s.do(onlooker, "close-held", 0)
	}
	if s.err != nil || ev.second.Errno == 0 {
		return ev, s, s.err
	}
	b.Line.Begin(waiter, r.kind.name+":wait", s.name, 0)
	ev.blocked = b.blocks(waiter)
	ev.began = race.Now()
	s.letGo(holder, r.way)
	if s.err != nil {
		return ev, s, s.err
	}
	wait, done := b.waitFor(ctx, waiter, r.kind.name+":wait", deadline)
	ev.wait = wait
	s.record(waiter, r.kind.name+":wait", &wait)
	if !done {
		ev.retry = s.do(onlooker, r.kind.name+":try", 0)
	}
	return ev, s, s.err
}

func (s *script) letGo(who int, way string) {
	switch way {
	case "close":
		s.do(who, "close-held", 0)
	case "kill":
		s.record(who, "SIGKILL", &race.Event{Invoke: race.Now(), Return: race.Now()})
		s.b.Line.Kill(who)
	case "exec":
		s.record(who, "exec", &race.Event{Invoke: race.Now(), Return: race.Now()})
		s.b.Line.Begin(who, "exec", s.name, 0)
	}
}

// blocks reports whether the contender entered its attempt and is still there a little later.
func (b *Bench) blocks(who int) bool {
	for range 200 {
		if pending, invoke := b.Line.Pending(who); !pending {
			return false
		} else if invoke != 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond)
	pending, invoke := b.Line.Pending(who)
	return pending && invoke != 0
}

// waitFor waits for a contender's attempt, and reports whether it ended in time.
func (b *Bench) waitFor(ctx context.Context, who int, op string, deadline time.Duration) (race.Event, bool) {
	for until := time.Now().Add(deadline); ; time.Sleep(200 * time.Microsecond) {
		if pending, _ := b.Line.Pending(who); !pending {
			ev, err := b.Line.Await(ctx, who, op)
			return ev, err == nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			_, invoke := b.Line.Pending(who)
			return race.Event{Invoke: invoke}, false
		}
	}
}

// tidy replaces the contenders that were killed, executed something else or still wait, and closes what the
// others hold.
func (b *Bench) tidy(ctx context.Context, s *script, r release) error {
	ctx = context.WithoutCancel(ctx) // each step is bounded by itself
	for who := range 3 {
		pending, _ := b.Line.Pending(who)
		if pending || who == 0 && (r.way == "kill" || r.way == "exec") {
			if err := b.Line.Restart(ctx, who); err != nil {
				return err
			}
			continue
		}
		if _, err := b.Line.Do(ctx, who, "close-held", s.name, 0); err != nil {
			return err
		}
	}
	return nil
}
