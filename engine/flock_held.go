package engine

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// flockHeld holds a lock on <fan>/<sig>.flock for as long as the work lasts.
// There is no TTL and no clock: the kernel releases the lock of the dead. It
// promises at most one execution at a time, take-over at once after a death,
// and, unlike a lease, no overlap after a stall. It rests on flock,
// lock-release and excl-create. Where flock excludes nobody, or only the
// processes of one mount:
//
//  1. A locks, and executes.
//  2. B locks as well, and executes.
type flockHeld struct {
	fs     FullFS
	nonce  Nonce
	params Params
}

func (p flockHeld) Try(sig Signature) (Outcome, error) {
	if out, done, err := readDone(p.fs, sig); done || err != nil {
		return out, err
	}
	lock, err := p.open(sig)
	if err != nil {
		return Outcome{}, unknown(err)
	}
	err = lock.TryLock()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return answer(Outcome{State: Held}, lock.Close())
	}
	if err != nil {
		return Outcome{}, unknown(errors.Join(fmt.Errorf("flock %s: %w", sig.flock(), err), lock.Close()))
	}
	out, err := p.locked(sig, lock)
	if out.State != Won {
		err = errors.Join(err, lock.Close())
	}
	return answer(out, err)
}

// locked is what has to be asked again under the lock: whether the file still
// has its name, for a cleaner may have removed it while it was waited for, and
// whether the former holder finished.
func (p flockHeld) locked(sig Signature, lock LockFile) (Outcome, error) {
	named, err := stillNamed(p.fs, lock, sig.flock())
	if err != nil {
		return Outcome{}, unknown(err)
	}
	if !named {
		return Outcome{State: Held}, nil
	}
	if out, done, err := readDone(p.fs, sig); done || err != nil {
		return out, err
	}
	nonce, err := encodeNonce(p.nonce)
	if err != nil {
		return Outcome{}, err
	}
	l := &flockLease{p: p, sig: sig, rec: record{nonce: nonce}, lock: lock}
	return Outcome{State: Won, Owner: nonce, Lease: l}, nil
}

func (p flockHeld) open(sig Signature) (LockFile, error) {
	lock, err := p.fs.OpenLock(sig.flock())
	if !errors.Is(err, syscall.ENOENT) {
		return lock, err
	}
	if err := p.fs.Mkdir(sig.fan()); err != nil && !errors.Is(err, syscall.EEXIST) {
		return nil, err
	}
	return p.fs.OpenLock(sig.flock())
}

func stillNamed(fs FS, lock LockFile, name string) (bool, error) {
	held, err := lock.Stat()
	if err != nil {
		return false, fmt.Errorf("stat %s: %w", name, err)
	}
	named, err := fs.Lstat(name)
	if errors.Is(err, syscall.ENOENT) {
		return false, nil
	}
	return err == nil && held.Ino == named.Ino, err
}

type flockLease struct {
	p   flockHeld
	sig Signature

	mu   sync.Mutex
	rec  record
	lock LockFile // nil once the work was done or the claim dropped
}

func (l *flockLease) Expires() time.Duration { return Never }

// Renew finds a sentinel that was removed: others then lock another file.
func (l *flockLease) Renew() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return fmt.Errorf("renew %s: %w", l.sig.flock(), ErrLost)
	}
	named, err := stillNamed(l.p.fs, l.lock, l.sig.flock())
	if err == nil && !named {
		return fmt.Errorf("renew %s: %w: somebody removed the file", l.sig.flock(), ErrLost)
	}
	return unknown(err)
}

func (l *flockLease) Done(body []byte) error {
	if len(body) > MaxRecord {
		return &RecordError{len(body)}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rec.state == stateDone {
		return nil
	}
	if l.lock == nil {
		return fmt.Errorf("done %s: %w", l.sig.done(), ErrLost)
	}
	l.rec.body = body
	if err := writeDone(l.p.fs, l.sig, l.rec, l.p.params.Sync); err != nil {
		return err
	}
	l.rec.state = stateDone
	return l.release()
}

func (l *flockLease) Drop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return nil
	}
	return l.release()
}

func (l *flockLease) release() error {
	err := l.lock.Close()
	l.lock = nil
	if err != nil {
		return fmt.Errorf("unlock %s: %w", l.sig.flock(), err)
	}
	return nil
}
