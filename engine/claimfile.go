package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// claimFile is what the protocols with one claim file to a key share:
// <fan>/<sig>.claim, and <sig>.done beside it. The steps in which they differ
// are in their own files.
type claimFile struct {
	fs     FullFS
	clock  Clock
	nonce  Nonce
	params Params
	// forever says that a claim does not expire. Only its owner removes it.
	forever bool
}

func newClaimFile(e Env) claimFile {
	return claimFile{fs: e.FS, clock: e.Clock, nonce: e.Nonce, params: e.Params}
}

func (s Signature) onlyClaim() string { return s.path(".claim") }

// create makes the claim file with the given call, and looks again whether the
// key is done: the former owner may have finished since the last look. EEXIST is
// returned as it is.
func (c claimFile) create(sig Signature, call func(string) (File, error), began time.Duration) (Outcome, error) {
	nonce, err := encodeNonce(c.nonce)
	if err != nil {
		return Outcome{}, err
	}
	name := sig.onlyClaim()
	rec := record{state: stateClaimed, nonce: nonce}
	f, err := inFan(c.fs, sig, func() (File, error) { return call(name) })
	if err != nil {
		return Outcome{}, givenUp(f, fmt.Errorf("create %s: %w", name, err))
	}
	if err := writeRecord(f, name, rec, c.params.Sync); err != nil {
		return Outcome{}, givenUp(f, err)
	}
	info, err := f.Stat()
	if err != nil {
		return Outcome{}, givenUp(f, fmt.Errorf("stat %s: %w", name, err))
	}
	l := &claimFileLease{c: c, sig: sig, rec: rec, file: f}
	l.expires.Store(int64(began + c.params.TTL - c.params.Slack))
	out, done, err := readDone(c.fs, sig)
	if done || err != nil {
		return answer(out, errors.Join(err, l.Drop()))
	}
	if now := c.clock.Now(); now-began > c.params.Deadline || now >= l.Expires() {
		return answer(Outcome{State: Held, Owner: nonce}, l.Drop())
	}
	out = Outcome{State: Won, Owner: nonce, Lease: l}
	if !c.forever {
		out.Until = later(info.Mtime, info.Ctime).Add(c.params.TTL)
	}
	return out, nil
}

// judge says what the claim file stands for and whether it may be taken over.
// The clock is read first, for the reason given in generations.
func (c claimFile) judge(sig Signature) (Outcome, bool, error) {
	now, err := c.fs.Now()
	if err != nil {
		return Outcome{}, false, unknown(fmt.Errorf("read the filesystem's clock: %w", err))
	}
	s, err := readSlot(c.fs, sig.onlyClaim())
	if errors.Is(err, syscall.ENOENT) {
		return Outcome{State: Held}, false, nil
	}
	if err != nil {
		return Outcome{}, false, unknown(err)
	}
	out := Outcome{State: Held, Owner: s.rec.nonce}
	if s.rec.state == stateDropped && !s.torn {
		return out, true, nil
	}
	out.Until, err = s.until(now, c.params.TTL)
	if err != nil {
		return Outcome{}, false, unknown(err)
	}
	return out, now.After(out.Until), nil
}

// replace takes over by name: it removes whatever file has the claim's name by
// now, and creates the claim anew. That the file may be another's by now is what
// breaks excl-unlink.
func (c claimFile) replace(sig Signature, began time.Duration) (Outcome, error) {
	err := c.fs.Unlink(sig.onlyClaim())
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return Outcome{}, unknown(fmt.Errorf("unlink %s: %w", sig.onlyClaim(), err))
	}
	return heldIfExists(c.create(sig, c.fs.Create, began))
}

// heldIfExists turns EEXIST into Held: another was faster.
func heldIfExists(out Outcome, err error) (Outcome, error) {
	if errors.Is(err, syscall.EEXIST) {
		return Outcome{State: Held}, nil
	}
	return out, err
}

// underLock runs the take-over with a flock on the sentinel, if that is free.
func (c claimFile) underLock(sentinel string, takeOver func() (Outcome, error)) (Outcome, error) {
	lock, err := c.fs.OpenLock(sentinel)
	if err != nil {
		return Outcome{}, unknown(fmt.Errorf("open %s: %w", sentinel, err))
	}
	err = lock.TryLock()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return answer(Outcome{State: Held}, lock.Close())
	}
	if err != nil {
		return Outcome{}, unknown(errors.Join(fmt.Errorf("flock %s: %w", sentinel, err), lock.Close()))
	}
	out, err := takeOver()
	// A close that fails releases the lock all the same, and a claim that was
	// won does not depend on the lock any more.
	_ = lock.Close()
	return out, err
}

type claimFileLease struct {
	c       claimFile
	sig     Signature
	expires atomic.Int64

	mu        sync.Mutex
	rec       record
	file      File // nil once the claim was done or dropped
	mayBeDone bool // Done was tried and its effect is not known
}

func (l *claimFileLease) Expires() time.Duration {
	if l.c.forever {
		return Never
	}
	return time.Duration(l.expires.Load())
}

// Renew follows the rules of generations. That the claim has a successor shows
// in the held file: whoever takes over removes its name.
func (l *claimFileLease) Renew() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	start := l.c.clock.Now()
	if l.file == nil || start >= l.Expires() {
		return l.errLost("renew")
	}
	if err := l.file.Touch(); err != nil {
		return unknown(fmt.Errorf("renew %s: %w", l.sig.onlyClaim(), err))
	}
	if err := l.named("renew"); err != nil {
		return err
	}
	if l.c.clock.Now() >= l.Expires() {
		return l.errLost("renew")
	}
	l.expires.Store(int64(start + l.c.params.TTL - l.c.params.Slack))
	return nil
}

func (l *claimFileLease) named(op string) error {
	info, err := l.file.Stat()
	if err != nil {
		return unknown(fmt.Errorf("%s %s: %w", op, l.sig.onlyClaim(), err))
	}
	if info.Nlink == 0 {
		return l.errLost(op)
	}
	return nil
}

func (l *claimFileLease) errLost(op string) error {
	return fmt.Errorf("%s %s: %w", op, l.sig.onlyClaim(), ErrLost)
}

func (l *claimFileLease) Done(body []byte) error {
	if len(body) > MaxRecord {
		return &RecordError{len(body)}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rec.state == stateDone {
		return nil
	}
	if l.file == nil {
		return l.errLost("done")
	}
	if err := l.named("done"); err != nil {
		return err
	}
	l.rec.body = body
	err := writeDone(l.c.fs, l.sig, l.rec, l.c.params.Sync)
	l.mayBeDone = errors.Is(err, ErrUnknown)
	if err != nil {
		return err
	}
	l.rec.state = stateDone
	// All that was written is known to be there, so a failing close says
	// nothing.
	_ = l.file.Close()
	l.file = nil
	return nil
}

// Drop marks the held file, whatever its name stands for by now. Nobody would
// look at the mark of a claim that does not expire, so that claim is removed.
func (l *claimFileLease) Drop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.giveBack()
	err = errors.Join(err, l.file.Close())
	l.file = nil
	return unknown(err)
}

func (l *claimFileLease) giveBack() error {
	if l.mayBeDone {
		return errMayBeDone(l.sig.onlyClaim())
	}
	_, err := l.file.WriteAt([]byte{stateDropped}, 0)
	if l.c.forever {
		err = errors.Join(err, l.c.fs.Unlink(l.sig.onlyClaim()))
	}
	return err
}
