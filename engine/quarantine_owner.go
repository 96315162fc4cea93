package engine

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// lockOwner is an owner's record in its private directory, and later in the
// lock. It is held open all along.
type lockOwner struct {
	dir  string
	rec  record
	file File
	made time.Time // by the filesystem's clock
}

// prepare writes the record under a private name. Its body is the time at which
// it was made, in milliseconds: part of the name that the lock is evicted to.
func (q *quarantine) prepare(sig Signature, state byte) (*lockOwner, error) {
	nonce, err := encodeNonce(q.nonce)
	if err != nil {
		return nil, err
	}
	o := &lockOwner{dir: sig.path(".new-" + nonce)}
	if err := q.mkdirInFan(sig, o.dir); err != nil {
		return nil, fmt.Errorf("mkdir %s: %w: %w", o.dir, ErrUnknown, err)
	}
	o.file, err = q.fs.Create(o.dir + "/record")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create %s/record: %w", o.dir, err), q.fs.Rmdir(o.dir))
	}
	info, err := o.file.Stat()
	if err == nil {
		o.made = later(info.Mtime, info.Ctime)
		o.rec = record{state: state, nonce: nonce, body: strconv.AppendInt(nil, o.made.UnixMilli(), 10)}
		err = writeRecord(o.file, o.dir+"/record", o.rec, q.params.Sync)
	}
	if err != nil {
		return nil, errors.Join(err, o.discard(q.fs))
	}
	return o, nil
}

func (q *quarantine) mkdirInFan(sig Signature, name string) error {
	err := q.fs.Mkdir(name)
	if !errors.Is(err, syscall.ENOENT) {
		return err
	}
	if err := q.fs.Mkdir(sig.fan()); err != nil && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	return q.fs.Mkdir(name)
}

// discard removes what was not published. Nobody else uses that name. What is
// left after an error Reclaim removes.
func (o *lockOwner) discard(fs FullFS) error {
	err := o.file.Close()
	_ = fs.Unlink(o.dir + "/record")
	_ = fs.Rmdir(o.dir)
	return err
}

type quarantineLease struct {
	q       *quarantine
	sig     Signature
	expires atomic.Int64

	mu    sync.Mutex
	owner *lockOwner
	over  bool // done, dropped or given up
	done  bool
	// mayBeDone says that Done was tried and its effect is not known.
	mayBeDone bool
}

func (l *quarantineLease) Expires() time.Duration { return time.Duration(l.expires.Load()) }

// Renew follows the rules of generations. That the lock was evicted shows in
// its quarantine, or, once that was reclaimed, in the held file.
func (l *quarantineLease) Renew() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	start := l.q.clock.Now()
	if l.over || start >= l.Expires() {
		return l.errLost("renew")
	}
	if err := l.owner.file.Touch(); err != nil {
		return unknown(fmt.Errorf("renew %s: %w", l.sig.lock(), err))
	}
	if err := l.check("renew"); err != nil {
		return err
	}
	if l.q.clock.Now() >= l.Expires() {
		return l.errLost("renew")
	}
	l.expires.Store(int64(start + l.q.params.TTL - l.q.params.Slack))
	return nil
}

func (l *quarantineLease) check(op string) error {
	info, err := l.owner.file.Stat()
	if err != nil {
		return unknown(fmt.Errorf("%s %s: %w", op, l.sig.lock(), err))
	}
	evicted, err := exists(l.q.fs, l.stale())
	if err != nil {
		return unknown(fmt.Errorf("%s %s: %w", op, l.sig.lock(), err))
	}
	if evicted || info.Nlink == 0 {
		return l.errLost(op)
	}
	return nil
}

func (l *quarantineLease) errLost(op string) error {
	return fmt.Errorf("%s %s: %w", op, l.sig.lock(), ErrLost)
}

func (l *quarantineLease) stale() string { return staleName(l.sig, slot{rec: l.owner.rec}) }

func (l *quarantineLease) Done(body []byte) error {
	if len(body) > MaxRecord {
		return &RecordError{len(body)}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return nil
	}
	if l.over {
		return l.errLost("done")
	}
	if err := l.check("done"); err != nil {
		return err
	}
	rec := l.owner.rec
	rec.body = body
	err := writeDone(l.q.fs, l.sig, rec, l.q.params.Sync)
	l.mayBeDone = errors.Is(err, ErrUnknown)
	if err != nil {
		return err
	}
	l.done = true
	// The key is done, with or without its lock.
	_ = l.retire()
	return nil
}

// Drop moves the lock away as an eviction does.
func (l *quarantineLease) Drop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil
	}
	if l.mayBeDone {
		return errors.Join(errMayBeDone(l.sig.lock()), l.close())
	}
	return unknown(l.retire())
}

// retire evicts the owner's lock. It does so only while the lease is good:
// afterwards the lock may be another's, and the name in quarantine that would
// make the rename fail may have been reclaimed.
func (l *quarantineLease) retire() error {
	_, err := l.owner.file.WriteAt([]byte{stateDropped}, 0)
	if now := l.q.clock.Now(); now < l.Expires() {
		_, evictErr := l.q.evict(l.sig, l.stale(), now)
		err = errors.Join(err, evictErr)
	}
	return errors.Join(err, l.close())
}

// giveUp marks a claim that came too late to be acted on as given back.
func (l *quarantineLease) giveUp() error {
	_, err := l.owner.file.WriteAt([]byte{stateDropped}, 0)
	return errors.Join(err, l.close())
}

func (l *quarantineLease) close() error {
	l.over = true
	return l.owner.file.Close()
}
