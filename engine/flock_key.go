package engine

import (
	"errors"
	"syscall"
)

// flock is the sentinel of one key. It is never removed: a lock on a file that
// has lost its name excludes nobody.
func (s Signature) flock() string { return s.path(".flock") }

// flockKey is flock-dir with a sentinel for each key. It rests on the same
// promises. Unrelated keys are no longer in each other's way, but the schedule
// that breaks flock-dir breaks it in the same way:
//
//  1. A and B read the claim of C, who died: expired.
//  2. A locks, unlinks it, creates its own, unlocks, and executes.
//  3. B locks, unlinks the claim, which is now A's, creates its own, unlocks,
//     and executes.
type flockKey struct{ claimFile }

func (p flockKey) Try(sig Signature) (Outcome, error) {
	began := p.clock.Now()
	if out, done, err := readDone(p.fs, sig); done || err != nil {
		return out, err
	}
	out, err := p.create(sig, p.fs.Create, began)
	if !errors.Is(err, syscall.EEXIST) {
		return out, err
	}
	out, stale, err := p.judge(sig)
	if err != nil || !stale {
		return out, err
	}
	return p.underLock(sig.flock(), func() (Outcome, error) { return p.replace(sig, began) })
}
