package engine

import "time"

// unguarded claims nothing: everybody executes. It promises nothing, rests on
// nothing, and is what the others are compared with.
//
//  1. A executes.
//  2. B executes.
type unguarded struct{}

func (unguarded) Try(Signature) (Outcome, error) {
	return Outcome{State: Won, Lease: noLease{}}, nil
}

type noLease struct{}

func (noLease) Expires() time.Duration { return Never }
func (noLease) Renew() error           { return nil }
func (noLease) Done([]byte) error      { return nil }
func (noLease) Drop() error            { return nil }
