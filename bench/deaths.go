package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

var deaths = Workload{
	Name:       "deaths",
	Shows:      "SIGKILL before every step of claim, work, renew, done and take-over, and at random moments; others take over",
	Contenders: 4,
	leases:     true,
	run:        func(b *bencher) error { return b.deaths(b.trials(500)) },
}

// The contenders: one dies again and again, two follow it from key to key.
const (
	victim     = 0
	followers  = 2
	mostDeaths = wordsOfSink // each key has a sink of its own
)

// deaths of the protocols that have a claim at all, or those asked for.
func (b *bencher) deaths(random int) error {
	var runs []func() error
	for _, protocol := range b.protocols() {
		if protocol == "unguarded" {
			continue
		}
		runs = append(runs, func() error { return b.dyingFresh(protocol) })
		if protocol != "excl" { // it takes nothing over
			runs = append(runs,
				func() error { return b.dyingTakingOver(protocol) },
				func() error { return b.dyingAtRandom(protocol, min(random, mostDeaths)) })
		}
	}
	shuffle(b, runs)
	for _, run := range runs {
		if b.over() {
			break
		}
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bencher) dyingFresh(protocol string) error {
	return b.sweep("each step of a claim", protocol, b.order(protocol, b.newDir(), 0), nil)
}

func (b *bencher) dyingTakingOver(protocol string) error {
	o := b.order(protocol, b.newDir(), mostSteps)
	plan := []inheritance{{order: o}}
	if err := b.bequeath(predecessor, plan, b.TTL+b.TTL/10); err != nil {
		return err
	}
	return b.sweep("each step of a take-over", protocol, o, plan[0].err)
}

// mostSteps is more than any protocol takes for one key.
const mostSteps = 120

// A killing lets the victim loose on the n-th key, to die. over says that it came to its end alive.
type killing func(n int64, dying order) (over bool, err error)

// sweep kills before step 1, 2, 3 ... until the victim comes to its end alive.
func (b *bencher) sweep(variant, protocol string, o order, unclaimed error) error {
	r := b.row("deaths", protocol, variant, 1+followers, 1)
	if unclaimed != nil {
		r.void(unclaimed.Error())
		return nil
	}
	return b.dying(r, o, mostSteps, func(n int64, dying order) (bool, error) {
		dying.KillStep, dying.Renew = n+1, 1
		err := b.alone(victim, dying)
		var died *race.DiedError
		switch r := &recordsIn(b.Line.Words(victim))[0]; {
		case errors.As(err, &died) && r.Died != 0:
			err = nil
			if n+1 == mostSteps {
				err = voidError("the victim takes more steps than it is killed at")
			}
			return false, err
		case err == nil && r.Done == 0:
			err = voidError(fmt.Sprintf("the victim had to take %d steps to its end, and was refused: %s %v", n, outcomes[r.Outcome], unix.Errno(r.Errno)))
		}
		return true, err
	})
}

// dyingAtRandom kills within a time that it adapts, so that about every second victim is caught in the middle. The first
// is let live.
func (b *bencher) dyingAtRandom(protocol string, kills int) error {
	within := time.Duration(0)
	r := b.row("deaths", protocol, "at random", 1+followers, 1)
	return b.dying(r, b.order(protocol, b.newDir(), 0), kills, func(n int64, dying order) (bool, error) {
		dying.Renew = 1
		began := time.Now()
		b.begin(victim, dying)
		if n == 0 {
			_, err := b.Line.Await(b.ctx, victim, work)
			within = time.Since(began)
			return false, err
		}
		race.Sleep(time.Duration(b.rng.Float64() * float64(within)))
		within = adapted(within, b.killNow(victim))
		return false, b.ctx.Err()
	})
}

func adapted(within time.Duration, caught bool) time.Duration {
	if caught {
		return within * 3 / 2
	}
	return max(within/2, 10*time.Microsecond)
}

// killNow takes the time before the signal: nobody can have heard of the death sooner.
func (b *bencher) killNow(who int) (caught bool) {
	at := race.Now()
	if pending, _ := b.Line.Pending(who); !pending {
		return false
	}
	b.Line.Kill(who)
	r := &recordsIn(b.Line.Words(who))[0]
	if caught = r.Done == 0; caught {
		r.Died = at
	}
	return caught
}

// dying lets the victim loose on one key after the other, each time to die, and followers on the keys behind it.
func (b *bencher) dying(r *row, o order, most int, kill killing) error {
	r.perKey = true
	w := b.begins()
	horizon := horizonIn(b.Line.Words(0))
	following := o
	following.Keys, following.Follow, following.Until = int64(most), 1, math.MaxInt64
	atomic.StoreUint64(horizon, 0)
	for i := range followers {
		b.begin(1+i, following)
	}
	var all []attempted
	over, err := false, error(nil)
	n := int64(0)
	for ; n < int64(most) && !over && err == nil; n++ {
		dying := o
		dying.First, dying.Keys = n, 1
		over, err = kill(n, dying)
		all = append(all, b.attempts(dying, victim)...)
		if b.Line.Gone(victim) {
			err = errors.Join(err, b.Line.Restart(b.ctx, victim))
		}
		atomic.StoreUint64(horizon, uint64(n+1))
	}
	following.Keys = n
	err = errors.Join(err, b.followed(following))
	for i := range followers {
		all = append(all, b.attempts(following, 1+i)...)
	}
	judged, err := b.conclude(r, following, all, w, err)
	if judged {
		r.takeovers(all)
	}
	return err
}

// followed tells the followers where the keys end, and waits for them, but no longer than it can take.
func (b *bencher) followed(following order) error {
	for i := range followers {
		o := orderIn(b.Line.Words(1 + i))
		atomic.StoreInt64(&o.Keys, following.Keys)
		atomic.StoreInt64(&o.Until, race.Now()+2*following.TTL+int64(time.Second))
	}
	var err error
	for i := range followers {
		_, late := b.Line.Await(context.WithoutCancel(b.ctx), 1+i, work)
		err = errors.Join(err, late)
	}
	return err
}

// takeovers are the times from a death to the successor's execution.
func (r *row) takeovers(all []attempted) {
	died := map[int]int64{}
	for _, a := range all {
		if a.Died != 0 {
			died[a.Key] = a.Died
		}
	}
	for _, a := range all {
		if at := died[a.Key]; at != 0 && a.Died == 0 && a.Began > at {
			record1(r.takeover, a.Began-at)
		}
	}
}
