package engine

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// quarantine claims with a directory, <fan>/<sig>.lock. The owner's record in it
// is published whole: a private directory <sig>.new-<nonce> with the file record
// in it is renamed to <sig>.lock/owner, which fails if there is an owner. An
// expired lock is not removed but renamed to
// <sig>.lock.stale-<claimed_at_ms>-<nonce>, both from the owner's record, and
// stays there. So all who judge one lock rename it to one name, and whoever
// comes late finds that name occupied:
//
//  1. A and B read the lock of C, who died: expired.
//  2. A renames it to stale-C, makes its own, and executes.
//  3. B renames the lock, which is now A's, to stale-C: ENOTEMPTY.
//
// It promises what generations does, except that it has no fencing token. It
// rests on mkdir, rename-dir-occupied, rename-away, timestamps and visibility, and for the
// done record on excl-create. Where a directory can be renamed onto one that is
// not empty, step 3 succeeds and takes A's lock away. Where a look-up can miss
// the file that says that the key is done, it is executed again.
//
// A crash between mkdir and the rename leaves a lock without an owner. It is
// judged by the same clock. Before it is evicted it is given an owner's record,
// in the same way, so that there is a name to evict it to and the directory is
// not empty. If the owner wakes up before that, the lock is still its own; if
// after, its rename fails.
type quarantine struct {
	reclaimer
	clock Clock
	nonce Nonce
}

func newQuarantine(e Env, r rules) *quarantine {
	return &quarantine{reclaimer: reclaimer{fs: e.FS, params: e.Params, rules: r}, clock: e.Clock, nonce: e.Nonce}
}

func (s Signature) lock() string      { return s.path(".lock") }
func (s Signature) ownerDir() string  { return s.lock() + "/owner" }
func (s Signature) ownerFile() string { return s.ownerDir() + "/record" }

func (q *quarantine) Try(sig Signature) (Outcome, error) {
	began := q.clock.Now()
	if out, done, err := readDone(q.fs, sig); done || err != nil {
		return out, err
	}
	info, err := q.fs.Lstat(sig.lock())
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return Outcome{}, unknown(err)
	}
	if err == nil {
		if info.Kind != Directory {
			return Outcome{}, unknown(&ForeignError{sig.lock(), info.Kind})
		}
		out, gone, err := q.evictExpired(sig, began)
		if err != nil || !gone {
			return out, err
		}
	}
	return q.claim(sig, began)
}

// claim makes the lock and puts the owner's record into it. Whoever gets its
// record in owns the lock, whoever made the directory: that may have been
// evicted in between, and made again by another.
func (q *quarantine) claim(sig Signature, began time.Duration) (Outcome, error) {
	owner, err := q.prepare(sig, stateClaimed)
	if err != nil {
		return Outcome{}, unknown(err)
	}
	err = q.fs.Mkdir(sig.lock())
	if err == nil {
		err = q.publish(sig, owner)
	}
	if err != nil {
		err = errors.Join(err, owner.discard(q.fs))
		if isTaken(err) {
			return Outcome{State: Held}, nil
		}
		return Outcome{}, unknown(fmt.Errorf("lock %s: %w", sig, err))
	}
	l := &quarantineLease{q: q, sig: sig, owner: owner}
	l.expires.Store(int64(began + q.params.TTL - q.params.Slack))
	out, done, err := readDone(q.fs, sig)
	if done || err != nil {
		return answer(out, errors.Join(err, l.Drop()))
	}
	if now := q.clock.Now(); now-began > q.params.Deadline || now >= l.Expires() {
		return answer(Outcome{State: Held, Owner: owner.rec.nonce}, l.giveUp())
	}
	until := owner.made.Add(q.params.TTL)
	return Outcome{State: Won, Until: until, Owner: owner.rec.nonce, Lease: l}, nil
}

// publish renames the private directory into the lock. An owner that is told
// that another was faster may have succeeded, and the answer was lost: it looks
// for its nonce.
func (q *quarantine) publish(sig Signature, o *lockOwner) error {
	err := q.fs.Rename(o.dir, sig.ownerDir())
	if !isTaken(err) {
		return err
	}
	s, readErr := readSlot(q.fs, sig.ownerFile())
	if readErr == nil && s.rec.nonce == o.rec.nonce && !s.torn {
		return nil
	}
	return err
}

// isTaken is every errno by which mkdir and rename say that another was faster:
// the name is taken, or the lock was evicted in the meantime.
func isTaken(err error) bool {
	return errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.ENOENT)
}

// evictExpired gets an expired lock out of the way. The clock is read first,
// for the reason given in generations.
func (q *quarantine) evictExpired(sig Signature, began time.Duration) (Outcome, bool, error) {
	now, err := q.fs.Now()
	if err != nil {
		return Outcome{}, false, unknown(fmt.Errorf("read the filesystem's clock: %w", err))
	}
	s, err := readSlot(q.fs, sig.ownerFile())
	if errors.Is(err, syscall.ENOENT) {
		return q.adoptExpired(sig, now, began)
	}
	if err != nil {
		return Outcome{}, false, unknown(err)
	}
	out := Outcome{State: Held, Owner: s.rec.nonce}
	if s.rec.state != stateDropped || s.torn {
		out.Until, err = s.until(now, q.params.TTL)
		if err != nil {
			return Outcome{}, false, unknown(err)
		}
		if !now.After(out.Until) {
			return out, false, nil
		}
	}
	gone, err := q.evict(sig, staleName(sig, s), began)
	return heldUnless(gone, err)
}

// adoptExpired gives an expired lock without an owner a record that says that it
// was given back, and evicts it.
func (q *quarantine) adoptExpired(sig Signature, now time.Time, began time.Duration) (Outcome, bool, error) {
	info, err := q.fs.Lstat(sig.lock())
	if errors.Is(err, syscall.ENOENT) {
		return Outcome{State: Held}, true, nil
	}
	if err != nil {
		return Outcome{}, false, unknown(err)
	}
	out := Outcome{State: Held}
	out.Until, err = slot{name: sig.lock(), info: info}.until(now, q.params.TTL)
	if err != nil {
		return Outcome{}, false, unknown(err)
	}
	if !now.After(out.Until) {
		return out, false, nil
	}
	o, err := q.prepare(sig, stateDropped)
	if err != nil {
		return Outcome{}, false, unknown(err)
	}
	if err := q.publish(sig, o); err != nil {
		err = errors.Join(err, o.discard(q.fs))
		if isTaken(err) {
			return Outcome{State: Held}, false, nil
		}
		return Outcome{}, false, unknown(err)
	}
	gone, err := q.evict(sig, staleName(sig, slot{rec: o.rec}), began)
	return heldUnless(gone, errors.Join(err, o.file.Close()))
}

func heldUnless(gone bool, err error) (Outcome, bool, error) {
	if err != nil {
		return Outcome{}, false, unknown(err)
	}
	return Outcome{State: Held}, gone, nil
}

// staleName is the name to which a lock is evicted: the same for all who judge
// this lock, and different for every other. A record that cannot be read has no
// nonce, so the number of its inode stands in, which no other file has while
// this one is in quarantine.
func staleName(sig Signature, s slot) string {
	id, at := s.rec.nonce, "0"
	if s.torn {
		id = "inode" + strconv.FormatUint(s.info.Ino, 10)
	} else if _, err := strconv.ParseInt(string(s.rec.body), 10, 64); err == nil {
		at = string(s.rec.body)
	}
	return sig.lock() + ".stale-" + at + "-" + id
}

// evict renames the lock, unless the attempt is past its deadline, and stamps
// what it renamed: the eviction is dated by the creation of the stamp. It
// returns false if another was faster, since the lock that has the name may be
// another's by now.
func (q *quarantine) evict(sig Signature, stale string, began time.Duration) (bool, error) {
	if q.clock.Now()-began > q.params.Deadline {
		return false, nil
	}
	err := q.fs.Rename(sig.lock(), stale)
	if isTaken(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("evict %s: %w", sig.lock(), err)
	}
	if q.rules.eager {
		return true, removeStale(q.fs, stale)
	}
	if q.rules.unstamped {
		return true, nil
	}
	// Without a stamp it is dated when Reclaim first sees it.
	_ = stamp(q.fs, stale)
	return true, nil
}

// stampName is the file whose time is the eviction's.
const stampName = "evicted"

func stamp(fs FS, stale string) error {
	f, err := fs.Create(stale + "/" + stampName)
	if err != nil {
		return err
	}
	return f.Close()
}
