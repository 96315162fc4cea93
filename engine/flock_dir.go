package engine

import (
	"errors"
	"syscall"
)

// sentinel is the one file that flock-dir locks.
const sentinel = "sentinel.flock"

// flockDir is excl-unlink with the removal under a lock on one sentinel of the
// whole directory. It rests on excl-create, timestamps and flock, and the lock
// cures nothing, since the claim was judged before it was taken:
//
//  1. A and B read the claim of C, who died: expired.
//  2. A locks, unlinks it, creates its own, unlocks, and executes.
//  3. B locks, unlinks the claim, which is now A's, creates its own, unlocks,
//     and executes.
//
// The sentinel is another's as well whenever another takes over an unrelated
// key: then this key is refused, though nobody holds it.
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
