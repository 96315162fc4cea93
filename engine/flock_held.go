package engine

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// flockHeld holds a flock on <fan>/<sig>.flock for as long as the work lasts.
// There is no TTL and no clock: the kernel releases the lock of a dead process.
// It promises at most one execution at a time, take-over at once after a death,
// and, unlike a lease, no overlap after a stall. It rests on flock,
// lock-release, excl-create and visibility. Where flock excludes nobody, or only
// the processes of one mount:
//
//  1. A locks, and executes.
//  2. B locks as well, and executes.
//
// Where a look-up can miss the file that says that the key is done:
//
//  1. B looks: not done.
//  2. A locks, executes, records that the key is done, and unlocks.
//  3. B locks, is told again what it looked up before, and executes.
//
// A server that does not hear of a client, for longer than its own lease (90 s
// over NFSv4), takes the client's locks away. Renew finds that out only where
// the client then fails calls on the locked descriptor; and there is no fencing
// token to refuse the late writer.
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

// locked looks again, now under the lock: whether the file still has its name,
// as a cleaner may have removed it since it was opened, and whether the former
// holder finished.
func (p flockHeld) locked(sig Signature, lock LockFile) (Outcome, error) {
	held, err := lock.Stat()
	if err != nil {
		return Outcome{}, unknown(fmt.Errorf("stat %s: %w", sig.flock(), err))
	}
	named, err := stillNamed(p.fs, held, sig.flock())
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

func stillNamed(fs FS, held Info, name string) (bool, error) {
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

// Renew finds out whether the sentinel was removed: others then lock another
// file. An error of the held descriptor is how a client tells that the server
// took its locks away. As this lease does not expire, nothing else would end the
// work.
func (l *flockLease) Renew() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return fmt.Errorf("renew %s: %w", l.sig.flock(), ErrLost)
	}
	held, err := l.lock.Stat()
	if err != nil {
		return fmt.Errorf("renew %s: %w: %w", l.sig.flock(), ErrLost, err)
	}
	named, err := stillNamed(l.p.fs, held, l.sig.flock())
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
