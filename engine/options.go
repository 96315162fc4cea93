package engine

import (
	"bytes"
	"fmt"
	"time"
)

// Options say how a Guard works. The zero value is good.
type Options struct {
	// Protocol is the name of one of Protocols; "" is generations, which
	// needs the least of a filesystem.
	Protocol string
	// TTL is the age at which others may take a claim over, counted from its
	// last renewal. The work may last longer, as its claim is renewed, but a
	// program must not be suspended for so long. 0 is 30 s.
	TTL time.Duration
	// Deadline is how long one attempt to claim may take; at most TTL.
	// 0 is half of TTL.
	Deadline time.Duration
	// Margin is how much longer than max(TTL, Deadline) a quarantined lock is
	// kept after its eviction. 0 is TTL.
	Margin time.Duration
	// Slack is how much earlier than TTL an owner gives its lease up. It has
	// to exceed the granularity of the filesystem's timestamps, and how long a
	// renewal or a new name can stay invisible to another host. 0 is a tenth
	// of TTL.
	Slack time.Duration
	// Poll is how often Do asks again for a key that another holds. 0 is a
	// tenth of TTL, but no more than a second.
	Poll time.Duration
	// Sync makes each record durable before it counts. Without it a key that
	// was done just before a power failure can be found not done.
	Sync bool
	// Clock is the local clock; nil is OSClock.
	Clock Clock
	// Nonce makes at least 16 random bytes, new ones each time; nil is
	// RandomNonce.
	Nonce Nonce
}

// ContractError means that a Guard cannot be built, or that a key cannot be
// claimed, because of one field.
type ContractError struct {
	Field string // "TTL", "Nonce", "dir", "key" and so on
	Rule  string // what the field must be
	Err   error  // what the system said, or nil
}

func (e *ContractError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s must be %s: %v", e.Field, e.Rule, e.Err)
	}
	return fmt.Sprintf("%s must be %s", e.Field, e.Rule)
}

// Unwrap returns what the system said.
func (e *ContractError) Unwrap() error { return e.Err }

// longest is the most that a time in Options can be, so that no sum of them
// overflows.
const longest = 365 * 24 * time.Hour

// minNonce is the length, in random bytes, at which no two contenders draw the
// same. A counter, or a process id with the time, has been seen twice in one
// millisecond on two hosts.
const minNonce = 16

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.TTL, 30*time.Second)
	set(&o.Deadline, o.TTL/2)
	set(&o.Margin, o.TTL)
	set(&o.Slack, o.TTL/10)
	set(&o.Poll, min(o.TTL/10, time.Second))
	if o.Protocol == "" {
		o.Protocol = "generations"
	}
	if o.Clock == nil {
		o.Clock = OSClock{}
	}
	if o.Nonce == nil {
		o.Nonce = RandomNonce
	}
	return o
}

func (o Options) params() Params {
	return Params{TTL: o.TTL, Deadline: o.Deadline, Margin: o.Margin, Slack: o.Slack, Sync: o.Sync}
}

// check checks the contract of the writer.
func (o Options) check() error {
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"TTL", o.TTL}, {"Deadline", o.Deadline}, {"Margin", o.Margin}, {"Slack", o.Slack}, {"Poll", o.Poll}} {
		if d.value <= 0 {
			return &ContractError{Field: d.field, Rule: fmt.Sprintf("positive, not %v", d.value)}
		}
		if d.value > longest {
			return &ContractError{Field: d.field, Rule: fmt.Sprintf("at most %v, not %v", longest, d.value)}
		}
	}
	if o.Deadline > o.TTL {
		return &ContractError{Field: "Deadline", Rule: fmt.Sprintf("at most TTL, which %v exceeds: TTL is %v", o.Deadline, o.TTL)}
	}
	if o.Slack >= o.TTL {
		return &ContractError{Field: "Slack", Rule: fmt.Sprintf("less than TTL, not %v: TTL is %v", o.Slack, o.TTL)}
	}
	return o.checkNonce()
}

// checkNonce draws two nonces. That shows a source that is too short or repeats
// itself, not one that is predictable.
func (o Options) checkNonce() error {
	a, err := o.Nonce()
	if err != nil {
		return &ContractError{Field: "Nonce", Rule: "readable", Err: err}
	}
	b, err := o.Nonce()
	if err != nil {
		return &ContractError{Field: "Nonce", Rule: "readable", Err: err}
	}
	if len(a) < minNonce || len(a) > maxNonce {
		return &ContractError{Field: "Nonce", Rule: fmt.Sprintf("%d to %d bytes long, not %d", minNonce, maxNonce, len(a))}
	}
	if bytes.Equal(a, b) {
		return &ContractError{Field: "Nonce", Rule: "new each time"}
	}
	return nil
}
