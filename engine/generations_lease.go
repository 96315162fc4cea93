package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// generationsLease is one generation, held by its descriptor. Nothing in it
// acts on a claim by name; names are only looked at.
type generationsLease struct {
	g       *generations
	sig     Signature
	nlink   uint64 // of the file while all its names were there
	expires atomic.Int64

	mu   sync.Mutex
	rec  record
	file File // nil once the claim was done or dropped
	next File // the done record, from its creation until it is known to be written
	// began is before the creation of the done record. late says that the
	// record was not written in time.
	began    time.Duration
	late     bool
	finished bool // the claim is marked, in time
	lost     error
}

func (l *generationsLease) Expires() time.Duration { return time.Duration(l.expires.Load()) }

// Renew counts only if it was over before the old lease was: until then
// nobody can have found the claim expired, so nobody can have taken it over.
//
//  1. A's lease runs out. B finds A's claim expired.
//  2. A renews late, and looks for a successor: there is none yet.
//  3. B creates the next generation. Both would hold the key.
func (l *generationsLease) Renew() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := l.sig.claim(l.rec.generation)
	if l.file == nil || l.lost != nil {
		return fmt.Errorf("renew %s: %w", name, ErrLost)
	}
	start := l.g.clock.Now()
	if start >= l.Expires() {
		return l.lose("renew", "it had run out")
	}
	if err := l.file.Touch(); err != nil {
		return unknown(fmt.Errorf("renew %s: %w", name, err))
	}
	if err := l.check(); err != nil {
		return err
	}
	if l.g.clock.Now() >= l.Expires() {
		return l.lose("renew", "it ran out meanwhile")
	}
	l.expires.Store(int64(start + l.g.params.TTL - l.g.params.Slack))
	return nil
}

// check finds out whether the claim still is what others would find.
func (l *generationsLease) check() error {
	name := l.sig.claim(l.rec.generation)
	info, err := l.file.Stat()
	if err != nil {
		return unknown(fmt.Errorf("renew %s: %w", name, err))
	}
	if info.Nlink < l.nlink {
		return l.lose("renew", "somebody removed its file")
	}
	taken, err := exists(l.g.fs, l.sig.claim(l.rec.generation+1))
	if err != nil {
		return unknown(fmt.Errorf("renew %s: %w", name, err))
	}
	if taken {
		return l.lose("renew", "it has a successor")
	}
	return nil
}

func (l *generationsLease) lose(op, why string) error {
	l.lost = fmt.Errorf("%s %s: %w: %s", op, l.sig.claim(l.rec.generation), ErrLost, why)
	return l.lost
}

// Done needs no lease that is still good: the exclusive create decides. An
// owner that comes back after its TTL and finds no successor was not replaced.
func (l *generationsLease) Done(body []byte) error {
	if len(body) > MaxRecord {
		return &RecordError{len(body)}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rec.state == stateDone {
		return nil
	}
	if l.file == nil {
		return fmt.Errorf("done %s: %w: it was dropped", l.sig.claim(l.rec.generation), ErrLost)
	}
	if l.late {
		return l.confirm()
	}
	rec := record{state: stateDone, nonce: l.rec.nonce, generation: l.rec.generation, body: body}
	err := l.record(rec)
	if err == nil {
		err = l.confirm()
	}
	if err != nil {
		return err
	}
	l.rec.state = stateDone
	// Nothing was written through this descriptor that is not known to be
	// there by now.
	l.close()
	return nil
}

// record gets the done record written, in its own file or, if that cannot be
// had, by the state of the claim itself.
func (l *generationsLease) record(rec record) error {
	name := l.sig.claim(rec.generation + 1)
	var err error
	if l.next != nil {
		err = writeRecord(l.next, name, rec, l.g.params.Sync)
	} else {
		if l.began == 0 {
			l.began = l.g.clock.Now()
		}
		l.next, err = l.g.publish(name, rec)
	}
	switch {
	case l.next != nil:
		return l.settle(name, err)
	case errors.Is(err, syscall.EEXIST):
		return l.taken(name)
	default:
		return unknown(err)
	}
}

// settle closes the done record, which is when a network filesystem tells of
// a failed write. Work that was done must not be done again because its record
// could not be written, on a full disk for one: changing a byte that is there
// needs no room. The error stays, as the record is not there.
func (l *generationsLease) settle(name string, err error) error {
	if err == nil {
		err = l.next.Close()
		l.next = nil
	}
	if err == nil {
		return nil
	}
	return unknown(errors.Join(fmt.Errorf("record %s: %w", name, err), l.finish()))
}

// taken is for a done record that exists already. It may be the successor's
// claim. It may also be this owner's own record, whose creation was answered
// with an error: surely so if it carries the nonce, and if it carries nothing
// while the lease is still good, for until then nobody else creates it.
func (l *generationsLease) taken(name string) error {
	s, err := readSlot(l.g.fs, name)
	if err != nil {
		return unknown(err)
	}
	if s.rec.nonce == l.rec.nonce && s.rec.state == stateDone && !s.torn {
		return nil
	}
	if !s.torn {
		return l.lose("done", "it has a successor")
	}
	if l.lost != nil || l.g.clock.Now() >= l.Expires() {
		return fmt.Errorf("done %s: %w: it exists and cannot be read", name, ErrUnknown)
	}
	return l.finish()
}

func (l *generationsLease) mark(state byte) error {
	if _, err := l.file.WriteAt([]byte{state}, 0); err != nil {
		return unknown(fmt.Errorf("mark %s: %w", l.sig.claim(l.rec.generation), err))
	}
	if l.g.params.Sync {
		if err := l.file.Sync(); err != nil {
			return unknown(fmt.Errorf("sync %s: %w", l.sig.claim(l.rec.generation), err))
		}
	}
	return nil
}

// confirm is for an owner that took so long between creating its done record
// and writing it that another may have found the empty file expired. To look
// for a successor then would prove nothing:
//
//  1. A creates its done record, and stalls past the TTL.
//  2. B finds it empty and expired, and is about to create the next one.
//  3. A writes the record, looks for a successor, and finds none.
//  4. B creates it. The work is done again.
//
// So a record that was written late is not known to count, however often A
// asks again; a new attempt at the key tells.
func (l *generationsLease) confirm() error {
	if l.finished || !l.late && l.inTime() {
		return nil
	}
	l.late = true
	taken, err := exists(l.g.fs, l.sig.claim(l.rec.generation+2))
	if err != nil {
		return unknown(err)
	}
	if taken {
		return l.lose("done", "it has a successor")
	}
	return fmt.Errorf("done %s: %w: its record was written too late to be sure that it counts", l.sig.claim(l.rec.generation), ErrUnknown)
}

// inTime says that nobody can have found the done record expired yet.
func (l *generationsLease) inTime() bool {
	return l.g.clock.Now()-l.began < l.g.params.TTL-l.g.params.Slack
}

// finish marks the claim itself, for a done record that others cannot read.
// Marked in time it is as good as the record.
func (l *generationsLease) finish() error {
	err := l.mark(stateFinished)
	l.finished = l.finished || err == nil && l.inTime()
	return err
}

// Drop leaves the file where it is: others see from its state that they need
// not wait.
func (l *generationsLease) Drop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	if l.next != nil {
		return fmt.Errorf("drop %s: %w: it may be done", l.sig.claim(l.rec.generation), ErrUnknown)
	}
	l.rec.state = stateDropped
	return errors.Join(l.mark(stateDropped), l.close())
}

func (l *generationsLease) close() error {
	err := l.file.Close()
	l.file = nil
	return err
}
