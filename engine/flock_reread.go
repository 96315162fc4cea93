package engine

import (
	"errors"
	"syscall"
)

// flockReread is flock-key with the claim judged again under the lock. As
// nobody removes a claim without the lock, what is removed is what was judged.
// It promises that at most one contender holds a lease, that what is done is not
// done again, and take-over once a claim is TTL old. It rests on excl-create,
// timestamps, flock, lock-release and visibility: where a look-up can miss the
// file that says that the key is done, it is executed again. Where flock
// excludes nobody, or only the processes of one mount:
//
//  1. A and B lock, and both read the claim of C, who died: expired.
//  2. A unlinks it, creates its own, and executes.
//  3. B unlinks the claim, which is now A's, creates its own, and executes.
type flockReread struct{ claimFile }

func (p flockReread) Try(sig Signature) (Outcome, error) {
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
	return p.underLock(sig.flock(), func() (Outcome, error) {
		out, stale, err := p.judge(sig)
		if err != nil || !stale {
			return out, err
		}
		return p.replace(sig, began)
	})
}
