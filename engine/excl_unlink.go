package engine

import (
	"errors"
	"syscall"
)

// exclUnlink removes an expired claim and creates it anew. It rests on
// excl-create and timestamps, and promises one owner only until a claim has
// expired. No filesystem makes that right: unlink removes what has the name by
// then, not what was judged.
//
//  1. A and B read the claim of C, who died: expired.
//  2. A unlinks it, creates its own, and executes.
//  3. B unlinks the claim, which is now A's, creates its own, and executes.
type exclUnlink struct{ claimFile }

func (p exclUnlink) Try(sig Signature) (Outcome, error) {
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
	return p.replace(sig, began)
}
