package engine

import (
	"errors"
	"math"
	"time"
)

// Params are what all contenders of one claim directory have to agree on.
type Params struct {
	// TTL is the age, on the filesystem's clock, at which others may take a
	// claim over. Renewing a claim makes it young again.
	TTL time.Duration
	// Deadline is how long an attempt may take from its first step to its
	// last. A claim that an attempt made after that is given up, and an
	// eviction is not carried out after that. It is at most TTL.
	Deadline time.Duration
	// Margin is how much longer than max(TTL, Deadline) a quarantined lock
	// stays: time for a rename that was issued within the deadline and is
	// still in flight.
	Margin time.Duration
	// Slack is how much earlier than TTL an owner gives its lease up. It
	// covers the granularity of timestamps, the drift between this host's
	// clock and the filesystem's over one TTL, and how long a renewal or a
	// new name can stay invisible to another host.
	Slack time.Duration
	// Sync makes every record durable with fsync before it counts. Without
	// it claims survive the death of every process, but not of a kernel.
	Sync bool
}

// Env is what a protocol works with.
type Env struct {
	FS     FullFS
	Clock  Clock
	Nonce  Nonce
	Params Params
}

// Spec is one protocol of the registry.
type Spec struct {
	Name    string
	Summary string
	// Safe says that the protocol is meant to be safe on a filesystem that
	// keeps the promises; the others are controls.
	Safe bool
	// Needs names the promises of the filesystem that the protocol rests on,
	// by the names of the probes.
	Needs []string
	New   func(Env) Protocol
}

// Protocol is one way to claim work through files.
type Protocol interface {
	// Try makes one attempt to claim the key and never waits for another
	// contender. An error means that the outcome is not known: the key is
	// neither claimed by this contender nor free for that reason.
	Try(sig Signature) (Outcome, error)
}

// State tells the outcomes of an attempt apart. The zero State is none.
type State uint8

// The outcomes of an attempt.
const (
	// Won: the key is this contender's, and Lease is how to go on.
	Won State = iota + 1
	// Held: the key is another's, or was until a moment ago. Until says when
	// it may be taken over, unless it is zero.
	Held
	// Done: the work was done, and is never to be done again.
	Done
)

func (s State) String() string {
	switch s {
	case Won:
		return "won"
	case Held:
		return "held"
	case Done:
		return "done"
	default:
		return "no state"
	}
}

// Outcome is what an attempt found.
type Outcome struct {
	State State
	// Generation counts the claims of this key. It is the fencing token:
	// whatever the work writes to should refuse a generation lower than one
	// it has seen. 0 comes from a protocol that has no such number, or that
	// could not read it.
	Generation uint64
	// Until is when others may take the claim over, on the filesystem's
	// clock. The zero Time means that the protocol knows no such moment.
	Until time.Time
	// Owner is the nonce of the claim in hex, "" if it cannot be read.
	Owner string
	// Record is what the work left when it was done. Torn says that it was
	// done but that its record cannot be read.
	Record []byte
	Torn   bool
	// Lease is there if and only if State is Won.
	Lease Lease
}

// Lease is a claim that was won. It holds a file open until Done has succeeded
// or Drop was called, so call Drop also when the lease is lost. Its methods may
// be called from different goroutines.
type Lease interface {
	// Expires is the reading of the local clock from which on the owner must
	// not act any more: Slack earlier than others may take over. It moves
	// when Renew succeeds.
	Expires() time.Duration
	// Renew makes the lease last TTL less Slack from now on. ErrLost means
	// that it is lost for good; after any other error it is as it was before.
	Renew() error
	// Done records that the work is done, for ever. It may be called again
	// after an error, and after success does nothing. ErrLost means that
	// another owner took over or that the key was done by another.
	Done(record []byte) error
	// Drop lets go of the claim, and makes the key claimable again at once.
	// After a Done whose outcome is not known the work may count as done: then
	// Drop answers ErrUnknown, and the key is claimable when the claim has
	// expired, if it is not done.
	Drop() error
}

// Reclaimer is a protocol that leaves things behind which may go later.
type Reclaimer interface {
	// Quarantines lists them.
	Quarantines() ([]Quarantine, error)
	// Reclaim removes at most limit of those that may go.
	Reclaim(limit int) (Reclaimed, error)
}

// Never is the reading of the local clock at which a lease without an end
// expires.
const Never = time.Duration(math.MaxInt64)

// MaxRecord is the longest record that Done takes, in bytes.
const MaxRecord = 64 << 10

var (
	// ErrLost means that the claim is not this contender's any more.
	ErrLost = errors.New("lease lost")
	// ErrUnknown means that a step may or may not have happened: never
	// "mine", never "stale".
	ErrUnknown = errors.New("outcome not known")
)
