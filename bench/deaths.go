package bench

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var deaths = Workload{
	Name:  "deaths",
	Shows: "SIGKILL before every step of claim, work, renew, done and take-over, and at random moments; others take over",
	run:   func(b *bencher) ([]result.Bench, error) { return nil, b.deaths(b.trials(500)) },
}

// The contenders: one dies again and again, two follow it from key to key.
const (
	victim     = 0
	followers  = 2
	mostDeaths = 1000
)

// deaths of the protocols that have a claim at all, or those asked for.
func (b *bencher) deaths(random int) error {
	for _, protocol := range b.protocols() {
		if protocol == "unguarded" {
			continue
		}
		runs := []func(string) error{b.dyingFresh, b.dyingTakingOver, func(p string) error { return b.dyingAtRandom(p, random) }}
		if protocol == "excl" {
			runs = runs[:1] // it takes nothing over
		}
		for _, run := range runs {
			if b.over() {
				return nil
			}
			if err := run(protocol); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bencher) dyingFresh(protocol string) error {
	return b.sweep("each step of a claim", protocol, b.order(protocol, b.newDir(), 0))
}

func (b *bencher) dyingTakingOver(protocol string) error {
	o := b.order(protocol, b.newDir(), 0)
	abandoned := o
	abandoned.Keys = mostSteps
	if err := b.abandon(predecessor, abandoned); err != nil {
		return err
	}
	if err := b.bury(predecessor); err != nil {
		return err
	}
	race.Sleep(b.TTL + b.TTL/10)
	return b.sweep("each step of a take-over", protocol, o)
}

// mostSteps is more than any protocol takes for one key.
const mostSteps = 120

// sweep kills before step 1, 2, 3 ... until the victim comes to its end alive.
func (b *bencher) sweep(variant, protocol string, o order) error {
	return b.dying(variant, protocol, o, func(n int64, dying order) (order, error) {
		dying.KillStep, dying.Renew = n+1, 1
		err := b.alone(victim, dying)
		var died *race.DiedError
		if errors.As(err, &died) {
			return dying, nil
		}
		if err == nil {
			err = errSurvived
		}
		return dying, err
	}, mostSteps)
}

var errSurvived = errors.New("the victim is alive")

func (b *bencher) dyingAtRandom(protocol string, kills int) error {
	kills = min(kills, mostDeaths)
	return b.dying("at random", protocol, b.order(protocol, b.newDir(), 0), func(_ int64, dying order) (order, error) {
		dying.Renew = 1
		b.begin(victim, dying)
		race.Sleep(time.Duration(b.rng.ExpFloat64() * float64(700*time.Microsecond)))
		at := race.Now()
		alive := true
		if pending, _ := b.Line.Pending(victim); pending {
			b.Line.Kill(victim)
			alive = false
		}
		if r := &recordsIn(b.Line.Words(victim))[0]; !alive && r.Done == 0 {
			r.Died = at
		}
		return dying, nil
	}, kills)
}

// dying lets the victim loose on one key after the other, each time to die, and followers on the keys behind it.
func (b *bencher) dying(variant, protocol string, o order, kill func(n int64, dying order) (order, error), most int) error {
	r := b.row("deaths", protocol, variant, 1+followers, 0)
	w := watch()
	horizon := horizonIn(b.Line.Words(0))
	following := o
	following.Keys, following.Follow, following.Until = int64(most), 1, math.MaxInt64
	atomic.StoreUint64(horizon, 0)
	for i := range followers {
		b.begin(1+i, following)
	}
	var all []attempted
	var end error
	n := int64(0)
	for ; n < int64(most) && end == nil; n++ {
		dying := o
		dying.First, dying.Keys = n, 1
		dying, end = kill(n, dying)
		all = append(all, b.attempts(dying, victim)...)
		if b.Line.Gone(victim) {
			end = errors.Join(end, b.Line.Restart(b.ctx, victim))
		}
		atomic.StoreUint64(horizon, uint64(n+1))
	}
	following.Keys = n
	void, err := b.followed(following)
	if err != nil {
		return err
	}
	if end != nil && !errors.Is(end, errSurvived) {
		if void, err = b.harness(end); err != nil {
			return err
		}
	}
	for i := range followers {
		all = append(all, b.attempts(following, 1+i)...)
	}
	r.Keys = max(r.Keys, int(n))
	r.takeovers(all)
	b.judged(r, following, all, firstOf(void, w.disturbed()))
	return nil
}

// followed tells the followers where the keys end, and waits for them, but no longer than it can take.
func (b *bencher) followed(following order) (void string, err error) {
	for i := range followers {
		o := orderIn(b.Line.Words(1 + i))
		atomic.StoreInt64(&o.Keys, following.Keys)
		atomic.StoreInt64(&o.Until, race.Now()+2*following.TTL+int64(time.Second))
	}
	for i := range followers {
		if _, err := b.Line.Await(context.WithoutCancel(b.ctx), 1+i, work); err != nil {
			return b.harness(err)
		}
	}
	return "", nil
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
