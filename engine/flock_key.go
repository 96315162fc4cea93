package engine

import (
	"errors"
	"syscall"
)

// flock is the sentinel of one key. It is never removed: a lock on a file that
// has lost its name excludes nobody.
func (s Signature) flock() string { return s.path(".flock") }

// flockKey is flock-dir with a sentinel to each key. Unrelated keys do not get
// into each other's way any more; the schedule that breaks flock-dir breaks it
// just so.
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
