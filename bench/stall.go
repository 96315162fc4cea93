package bench

import (
	"errors"
	"fmt"
)

const stalled = 8 // owners of a trial, each of a key of its own; their successor is one more

var stall = Workload{
	Name:       "stall",
	Shows:      "an owner is stopped past its TTL and goes on: overlaps, and a sink that checks the fencing token",
	Contenders: stalled + 1,
	leases:     true,
	run:        func(b *bencher) error { return b.stalls((b.trials(3*stalled) + stalled - 1) / stalled) },
}

func (b *bencher) stalls(trials int) error {
	for _, protocol := range b.shuffled(b.protocols(), trials) {
		if b.over() {
			break
		}
		o := b.order(protocol, b.newDir(), stalled)
		r, w := b.row("stall", protocol, "", stalled+1, stalled), b.begins()
		b.give(stalled, o)
		err := errors.Join(b.stall(o), b.unstop(upTo(stalled)...))
		all := b.attempts(o, stalled)
		for i := range stalled {
			all = append(all, b.attempts(keyOf(o, i), i)...)
		}
		if err == nil {
			err = succeeded(all)
		}
		if _, err := b.conclude(r, o, all, w, err); err != nil {
			return err
		}
	}
	return nil
}

func keyOf(o order, i int) order {
	o.First, o.Keys = int64(i), 1
	return o
}

// stall stops the owners in the middle of their work, has a successor take over what it can, and lets them go on.
func (b *bencher) stall(o order) error {
	for i := range stalled {
		holding := keyOf(o, i)
		holding.Hold = 1
		if err := b.stopAt(i, holding, pause{executing, 1}); err != nil {
			return err
		}
	}
	if err := b.rest(b.TTL + b.TTL/10); err != nil {
		return err
	}
	o.Patience = o.TTL / 2
	return b.alone(stalled, o)
}

// succeeded says that each lease that could run out had a successor: without one nothing is shown of the owner.
func succeeded(all []attempted) error {
	took := map[int]bool{}
	for i := range all {
		took[all[i].Key] = took[all[i].Key] || all[i].Contender == stalled && all[i].Began != 0
	}
	for i := range all {
		if a := &all[i]; a.Contender != stalled && a.Expires != never && !took[a.Key] {
			return voidError(fmt.Sprintf("nobody took key %d over, whose lease had run out", a.Key))
		}
	}
	return nil
}
