package bench

import (
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var stall = Workload{
	Name:  "stall",
	Shows: "an owner is stopped past its TTL and goes on: overlaps, and a sink that checks the fencing token",
	run:   func(b *bencher) ([]result.Bench, error) { return nil, b.stalls(b.trials(3)) },
}

const stalled = 8 // owners of a trial, each of a key of its own

func (b *bencher) stalls(trials int) error {
	for _, protocol := range b.shuffled(b.protocols(), trials) {
		if b.over() {
			break
		}
		o := b.order(protocol, b.newDir(), stalled)
		r := b.row("stall", protocol, "", stalled+1, stalled)
		w := watch()
		err := b.stall(o)
		all := b.attempts(o, stalled)
		for i := range stalled {
			all = append(all, b.attempts(keyOf(o, i), i)...)
		}
		void := ""
		if err != nil {
			var end error
			if void, end = b.harness(err); end != nil {
				return end
			}
		}
		b.judged(r, o, all, firstOf(void, w.disturbed()))
	}
	return nil
}

func keyOf(o order, i int) order {
	o.First, o.Keys = int64(i), 1
	return o
}

// stall stops the owners in the middle of their work, has a successor take over what it can, and lets them go on.
func (b *bencher) stall(o order) error {
	owners := upTo(stalled)
	defer b.unstop(owners...)
	clear(b.Line.Words(0)[wordsOfOrder : wordsOfOrder+wordsOfSink])
	for _, i := range owners {
		holding := keyOf(o, i)
		holding.Hold = 1
		b.begin(i, holding)
		if _, err := b.stopped(i); err != nil {
			return err
		}
	}
	race.Sleep(b.TTL + 50*time.Millisecond)
	o.Patience = o.TTL / 2
	if err := b.alone(stalled, o); err != nil {
		return err
	}
	for _, i := range owners {
		if pending, _ := b.Line.Pending(i); !pending {
			continue
		}
		if err := b.resumed(i); err != nil {
			return err
		}
	}
	return nil
}
