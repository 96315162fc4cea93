package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Token is what the work is handed.
type Token struct {
	// Generation is the fencing token. Hand it to whatever the work writes
	// to, and have that refuse a generation lower than one it has seen.
	// 0 means that the protocol has none.
	Generation uint64
	Signature  Signature

	record *[]byte
}

// Record says what to record when the work is done, at most MaxRecord bytes.
// Whoever asks for the key afterwards is told. A longer record makes Do return
// a *RecordError and give the key back, as if the work had failed.
func (t Token) Record(p []byte) { *t.record = append([]byte(nil), p...) }

// Do gets the work on the key done once: by this call, which runs it, or by
// another, which it waits for. The outcome says which: Won, or Done with what
// was recorded.
//
// The lease is renewed while the work runs. When it is lost all the same, the
// context of the work ends with ErrLost as its cause, and another contender
// may start on the same key. The work must then stop, and what it still writes
// has to be refused by its Generation.
//
// If the work returns an error or panics, the key can be claimed again at
// once, and Do returns the error. Do returns an error as well when it cannot
// know who holds the key, or whether the work counts as done (ErrUnknown).
//
// While Do waits it returns as soon as its context ends. Once the work runs, Do
// returns after the work has, and after the filesystem has answered.
func (g *Guard) Do(ctx context.Context, key Key, work func(context.Context, Token) error) (Outcome, error) {
	for {
		out, err := g.Claim(ctx, key)
		if err != nil || out.State == Done {
			return out, err
		}
		if out.State == Won && g.options.Clock.Now() < out.Lease.Expires() {
			return g.run(ctx, key.Sign(), out, work)
		}
		if out.State == Won {
			// This program was stopped for so long since it won that others may
			// take over. If they have, Drop changes nothing.
			if err := out.Lease.Drop(); err != nil {
				return Outcome{}, err
			}
			continue
		}
		if err := g.options.Clock.Sleep(ctx, jitter(g.options.Poll)); err != nil {
			return out, err
		}
	}
}

// jitter is between half of d and d, at random, so that contenders that were
// refused together do not come back together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

func (g *Guard) run(ctx context.Context, sig Signature, out Outcome, work func(context.Context, Token) error) (Outcome, error) {
	var rec []byte
	err := g.keep(ctx, out.Lease, func(ctx context.Context) error {
		return work(ctx, Token{Generation: out.Generation, Signature: sig, record: &rec})
	})
	if err != nil {
		return out, errors.Join(err, out.Lease.Drop())
	}
	if err := g.finish(ctx, out.Lease, rec); err != nil {
		// The first error says all; this closes the files of the claim.
		_ = out.Lease.Drop()
		return out, fmt.Errorf("record that %s is done: %w", sig, err)
	}
	out.Record = rec
	return out, nil
}

// finish tries again while the outcome is not known.
func (g *Guard) finish(ctx context.Context, lease Lease, rec []byte) error {
	const tries = 3
	var err error
	for range tries {
		if err = lease.Done(rec); !errors.Is(err, ErrUnknown) {
			return err
		}
		if g.options.Clock.Sleep(ctx, g.options.Poll) != nil {
			break
		}
	}
	return err
}

// keep runs the work, and renews the lease until the work has returned. That may
// be some time after its context ended.
func (g *Guard) keep(ctx context.Context, lease Lease, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	working, stop := context.WithCancel(context.Background())
	var beat sync.WaitGroup
	beat.Go(func() { g.renew(working, lease, cancel) })
	if lease.Expires() != Never {
		beat.Go(func() { g.watch(working, lease, cancel) })
	}
	defer beat.Wait()
	defer stop()
	return dropOnPanic(lease, func() error { return work(ctx) })
}

func dropOnPanic(lease Lease, work func() error) error {
	returned := false
	defer func() {
		if !returned {
			// The panic says more than an error of Drop would.
			_ = lease.Drop()
		}
	}()
	err := work()
	returned = true
	return err
}

// renew is the heartbeat. After an error that does not mean ErrLost it tries
// again, for as long as the lease lasts.
func (g *Guard) renew(working context.Context, lease Lease, cancel context.CancelCauseFunc) {
	every := (g.options.TTL - g.options.Slack) / 3
	for g.options.Clock.Sleep(working, every) == nil {
		if err := lease.Renew(); errors.Is(err, ErrLost) {
			cancel(err)
			return
		}
	}
}

// watch ends the work when the lease runs out, even while a renewal hangs. It
// does not sleep to the end of the lease in one go, because a timer does not
// count the time that the host was suspended, and the lease does.
func (g *Guard) watch(working context.Context, lease Lease, cancel context.CancelCauseFunc) {
	step := (g.options.TTL - g.options.Slack) / 8
	for {
		left := lease.Expires() - g.options.Clock.Now()
		if left <= 0 {
			cancel(fmt.Errorf("%w: it ran out before it was renewed", ErrLost))
			return
		}
		if g.options.Clock.Sleep(working, min(left, step)) != nil {
			return
		}
	}
}
