package probes

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var lockRules = Probe{
	Name: "lock-rules",
	Promise: "A lock goes by the rules of flock(2) and fcntl(2): it is dropped when they say so, and not before, and it can " +
		"be shared, converted and taken 300 times over.",
	Why: "A POSIX lock is gone as soon as its process closes any other descriptor of the file, be it in a library that only " +
		"reads the status; flock and OFD locks are not. A flock that a child has inherited outlives its parent. Who counts on " +
		"one rule, and has a filesystem with the other, has two holders or a lock that nobody lets go.",
	How: "For each kind of lock one contender takes it, does what the rule is about (closes another descriptor or a " +
		"duplicate, dies with a child that inherited the descriptor, executes another program, converts the lock, removes the " +
		"file), and a second one then asks for the lock. The answers are compared with those of the man pages for Linux. An " +
		"EBADF for an exclusive flock on a read-only descriptor tells that flock is emulated by fcntl locks: that is the class " +
		"emulated, and no violation.",
	Control: "a lock that was let go, taken for one that is held, and the reverse",
	Broken: "Programs that hold locks by the rules of Linux fail here: read which rule. Use a protocol without locks, such as " +
		"generations; where a lock must be, hold it through one descriptor, opened for reading and writing, and open the file no second time.",
	Refused: "No kind of lock exists here: use a protocol without locks, such as generations.",
	Ops:     ruleOps,
	Run:     runRules,
	Alone:   true,
}

// The kinds of violation, and the class.
const (
	lockDropped  = "lock-dropped"
	lockWithheld = "lock-withheld" // a lock is refused that is free, or one's own
	tooFewLocks  = "too-few-locks"
	emulated     = "emulated"
)

// judgeRule rules on what came of a rule.
func judgeRule(r *rule, kind int, setup []race.Event, got race.Event) ruling {
	for i, ev := range setup {
		switch {
		case i == firstLock && refusedLock(ev.Errno):
			return ruling{refused: true}
		case ev.Errno != 0:
			return ruling{failed: true}
		}
	}
	errno, want := unix.Errno(got.Errno), r.wants[kind]
	what := lockKinds[kind].name + ", " + r.name
	switch {
	case want == isEither && (errno == 0 || busy(got.Errno)), want == isGranted && errno == 0, want == isBusy && busy(got.Errno), want == isBadFd && errno == unix.EBADF:
		return ruling{}
	case errno == 0 && want == isBadFd:
		return ruling{note: what + " is granted, where EBADF is meant"}
	case errno == 0 && r.holds:
		return ruling{kind: lockDropped, sentence: what + ": another contender took the lock, which must still be held"}
	case errno == 0:
		return ruling{kind: lockDropped, sentence: what + ": both were granted"}
	case errno == unix.EBADF && want == isGranted && kind == 0:
		return ruling{note: emulation}
	case busy(got.Errno) && want == isGranted:
		return ruling{kind: lockWithheld, sentence: what + ": refused with " + errnoName(got.Errno) + ", where it must be granted"}
	case got.Saw > 0 && got.Saw < manyLocks && errno == unix.EMFILE:
		return ruling{note: fmt.Sprintf("%s: a process may not open as many files here", what)}
	case got.Saw > 0 && got.Saw < manyLocks && !trouble(got.Errno) && r.name == atOnce:
		return ruling{kind: tooFewLocks, sentence: fmt.Sprintf("%s: the lock after %d was refused with %s", what, got.Saw, errnoName(got.Errno))}
	}
	return ruling{failed: true}
}

// firstLock is the step that first asks for a lock: the file is made and opened before.
const firstLock = 2

const emulation = "flock is emulated by fcntl locks (EBADF on a read-only descriptor): open lock files for reading and writing"

func runRules(ctx context.Context, b *Bench, f *result.Finding) {
	e, control, refused := newEvidence("lock-rules"), newEvidence("lock-rules-control"), newEvidence("lock-rules")
	blind := false
	err := adopting(func() error {
		for kind := range lockKinds {
			ok, err := b.seesLock(ctx, kind, f, e, refused)
			if err != nil {
				return err
			}
			blind = blind || !ok && refused.kinds[lockKinds[kind].name] == 0
			if !ok {
				continue
			}
			if err := b.playRules(ctx, kind, f, e, control); err != nil {
				return err
			}
		}
		return nil
	})
	clear(refused.kinds)
	if e.rounds == 0 {
		e = refused
	}
	answer(f, e, control, err)
	if blind && (f.Verdict == result.Holds || f.Verdict == result.Unproven) && e.notes[nothingHeld] > 0 {
		f.Verdict, f.Reason = result.Unproven, "no lock excludes at this scope, so that its rules cannot be seen"
	}
	if e.notes[emulation] > 0 {
		f.Class = emulated
	}
}

const nothingHeld = "a second contender got the lock as well: the rules of that kind of lock cannot be seen"

// seesLock reports whether a kind of lock is there and excludes.
func (b *Bench) seesLock(ctx context.Context, kind int, f *result.Finding, e, refused *evidence) (bool, error) {
	p, got, err := b.playRule(ctx, kind, &held)
	if err != nil {
		return false, err
	}
	v := judgeRule(&held, kind, p.setup, got)
	switch {
	case v.refused:
		footnote(f, lockKinds[kind].name+" is refused here with "+errnoName(p.setup[firstLock].Errno))
		refused.check(p.script, v, "a lock")
		refused.kinds[lockKinds[kind].name]++
		return false, nil
	case v.kind != "":
		v = ruling{failed: true, note: nothingHeld}
	}
	e.check(p.script, v, held.name)
	return v == ruling{}, nil
}

// playRules plays the control and every rule with one kind of lock.
func (b *Bench) playRules(ctx context.Context, kind int, f *result.Finding, e, control *evidence) error {
	for _, r := range []*rule{&letGo, &heldOn} {
		p, got, err := b.playRule(ctx, kind, r)
		if err != nil {
			return err
		}
		control.check(p.script, judgeRule(r, kind, p.setup, got), r.name)
	}
	for i := range rules {
		p, got, err := b.playRule(ctx, kind, &rules[i])
		if err != nil {
			return err
		}
		v := judgeRule(&rules[i], kind, p.setup, got)
		e.check(p.script, v, lockKinds[kind].name+", "+rules[i].name)
		b.noteRule(f, kind, &rules[i], p, got)
	}
	return nil
}

// noteRule records what is not judged.
func (b *Bench) noteRule(f *result.Finding, kind int, r *rule, p *rulePlay, got race.Event) {
	name := strings.ReplaceAll(lockKinds[kind].name, "-", "_")
	switch {
	case p.links > 0 && got.Errno == 0:
		footnote(f, fmt.Sprintf("a file that was removed while it is open has %d links, not 0: whoever holds a lock on it cannot tell that the name is another's", p.links))
	case r.wants[kind] == isEither:
		f.Figures[name+"_"+map[bool]string{true: "exec_keeps_bool", false: "failed_upgrade_keeps_bool"}[p.killed]] = map[bool]float64{true: 1}[busy(got.Errno)]
	case got.Saw > 0 && r.name == atOnce:
		f.Figures[name+"_at_once_count"] = float64(got.Saw)
	}
}

// playRule plays one rule, and tidies up.
func (b *Bench) playRule(ctx context.Context, kind int, r *rule) (p *rulePlay, got race.Event, err error) {
	p = &rulePlay{script: b.script(ctx), kind: kind}
	p.round.Phase = race.Step
	p.do(holder, "rule-make", ruleArg{}, "makes the file")
	if p.err == nil && p.setup[0].Errno == 0 {
		got = r.play(p)
	}
	failed := p.err
	ctx = context.WithoutCancel(ctx) // each step is bounded by itself
	if p.killed {
		err = b.Line.Restart(ctx, holder)
	}
	for _, who := range []int{holder, rival} {
		if err == nil {
			_, err = b.Line.Do(ctx, who, "rule-tidy", p.name, 0)
		}
	}
	if failed != nil {
		err = failed
	}
	return p, got, err
}

// adopting runs something while this process adopts what its descendants leave behind: a child that inherited a lock
// and lost its parent is then this process's own to end, prctl(2).
func adopting(do func() error) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err == nil {
		defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	}
	return do()
}
