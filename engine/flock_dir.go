package engine

import (
	"errors"
	"syscall"
)

// sentinel is the one file that flock-dir locks.
const sentinel = "sentinel.flock"

// flockDir is excl-unlink with the removal under a flock on one sentinel for the
// whole directory. It rests on excl-create, timestamps, flock and lock-release,
// and promises no more than excl-unlink: the claim was judged before the lock
// was taken.
//
//  1. A and B read the claim of C, who died: expired.
//  2. A locks, unlinks it, creates its own, unlocks, and executes.
//  3. B locks, unlinks the claim, which is now A's, creates its own, unlocks,
//     and executes.
//
// Whoever takes over an unrelated key holds the same sentinel. Meanwhile this
// key is refused, though nobody holds it.
type flockDir struct{ claimFile }

func (p flockDir) Try(sig Signature) (Outcome, error) {
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
	return p.underLock(sentinel, func() (Outcome, error) { return p.replace(sig, began) })
}
