package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// generationsLease is one generation, held by its descriptor. It changes its
// claim only through the descriptor; by name it only looks, and creates the
// next.
type generationsLease struct {
	g       *generations
	sig     Signature
	nlink   uint64 // how many names the file had when it was claimed
	expires atomic.Int64

	mu   sync.Mutex
	rec  record
	file File // nil once the claim was done or dropped
	next File // the done record, from its creation until it is known to be written
	// mayBeDone says that Done was tried and its effect is not known. began is
	// when it was tried first, which is before the creation of the record.
	mayBeDone bool
	began     time.Duration
	late      bool // the record was not written in time
	finished  bool // the claim was marked in time
	lost      error
}

func (l *generationsLease) Expires() time.Duration { return time.Duration(l.expires.Load()) }

// Renew counts only if it is over before the old lease ends: until then nobody
// can have found the claim expired, so nobody can be about to take it over.
// Otherwise:
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

// Done works after the lease has run out as well: the exclusive create of the
// next generation decides whether the owner was replaced.
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
	if !l.mayBeDone {
		l.began = l.g.clock.Now()
	}
	err := l.done(body)
	l.mayBeDone = errors.Is(err, ErrUnknown)
	if err != nil {
		return err
	}
	l.rec.state = stateDone
	// All that was written is known to be there, so a failing close says
	// nothing.
	_ = l.close()
	return nil
}

func (l *generationsLease) done(body []byte) error {
	if l.late {
		return l.confirm()
	}
	rec := record{state: stateDone, nonce: l.rec.nonce, generation: l.rec.generation, body: body}
	if err := l.record(rec); err != nil {
		return err
	}
	return l.confirm()
}

// record creates and writes the done record. If it exists but others cannot
// read it, the state of the claim itself says that the work is done.
func (l *generationsLease) record(rec record) error {
	name := l.sig.claim(rec.generation + 1)
	var err error
	if l.next != nil {
		err = writeRecord(l.next, name, rec, l.g.params.Sync)
	} else {
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

// settle closes the done record, which is when a network filesystem reports a
// failed write. Work that was done must not be done again because its record
// could not be written, for instance on a full disk. So the claim is marked:
// changing a byte that is there needs no room. The error is returned all the
// same, since the record is missing.
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

// taken is called when the name of the done record exists already. The file may
// be the successor's claim. It may also be this owner's own record, whose
// creation was answered with an error. It is surely that if it has the nonce,
// and also if it is unreadable while the lease is still good, since until then
// nobody else creates it.
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

// confirm says whether the done record counts. An owner may take so long between
// creating its done record and writing it that another finds the empty file
// expired. To look for a successor then would prove nothing:
//
//  1. A creates its done record, and stalls past the TTL.
//  2. B finds it empty and expired, and is about to create the next one.
//  3. A writes the record, looks for a successor, and finds none.
//  4. B creates it. The work is done again.
//
// So of a record that was written late it is not known whether it counts,
// however often A asks. A new attempt at the key tells.
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

// finish marks the claim itself, for a done record that others cannot read. A
// mark that was made in time is as good as the record.
func (l *generationsLease) finish() error {
	err := l.mark(stateFinished)
	l.finished = l.finished || err == nil && l.inTime()
	return err
}

// Drop leaves the file where it is: others see from its state that they need
// not wait. If the work may be done, the mark that says so must stay.
func (l *generationsLease) Drop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	if l.mayBeDone {
		return errors.Join(errMayBeDone(l.sig.claim(l.rec.generation)), l.close())
	}
	l.rec.state = stateDropped
	return errors.Join(l.mark(stateDropped), l.close())
}

func (l *generationsLease) close() error {
	err := l.file.Close()
	if l.next != nil {
		err = errors.Join(err, l.next.Close())
	}
	l.file, l.next = nil, nil
	return err
}
