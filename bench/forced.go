package bench

import (
	"fmt"
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var forced = Workload{
	Name:  "forced",
	Shows: "the named bad interleavings, by processes that stop themselves at the worst moment",
	run:   func(b *bencher) ([]result.Bench, error) { return nil, b.forced(b.trials(20)) },
}

// An interleaving stops contender A before one operation, lets B try, and goes on with A while B is at work.
type interleaving struct {
	name    string
	expired bool // somebody claimed the key before, and died
	reaper  bool // a third contender reclaims before A goes on
	pauses  map[string]pause
}

var interleavings = []interleaving{
	{
		name: "stale reader", expired: true,
		pauses: map[string]pause{
			"excl-unlink": {unlink, 1}, "flock-dir": {openLock, 1}, "flock-key": {openLock, 1}, "flock-reread": {openLock, 1},
			"generations": {create, 2}, "generations-linked": {link, 1},
		},
	},
	{
		name: "late rename", expired: true,
		pauses: map[string]pause{"quarantine": {rename, 1}, "quarantine-eager": {rename, 1}},
	},
	{
		name: "empty claim",
		pauses: map[string]pause{
			"check-then-create": {overwrite, 1}, "generations/empty-is-stale": {write, 1}, "generations": {write, 1},
			"generations-linked": {link, 1}, "excl-unlink": {write, 1}, "flock-reread": {write, 1}, "quarantine": {rename, 1},
		},
	},
	{
		name: "early reaper", expired: true, reaper: true,
		pauses: map[string]pause{"quarantine/age-from-name": {rename, 1}, "quarantine/age-from-mtime": {rename, 1}, "quarantine": {rename, 1}},
	},
}

// The contenders of an interleaving, and the one that died before.
const (
	contenderA = iota
	contenderB
	reaper
	predecessor
)

type forcedTrial struct {
	interleaving
	protocol string
	order    order
}

// forced has all predecessors die first. They are older than what reclaims quarantines before anybody comes.
func (b *bencher) forced(trials int) error {
	plan := b.forcedPlan(trials)
	for _, t := range plan {
		if !t.expired {
			continue
		}
		if err := b.abandon(predecessor, t.order); err != nil {
			return err
		}
	}
	if err := b.bury(predecessor); err != nil {
		return err
	}
	race.Sleep(2*b.TTL + b.TTL/5)
	for _, t := range plan {
		if b.over() {
			break
		}
		if err := b.force(t); err != nil {
			return err
		}
	}
	return nil
}

func (b *bencher) forcedPlan(trials int) []forcedTrial {
	var plan []forcedTrial
	for _, x := range interleavings {
		for _, protocol := range Names() {
			if _, ok := x.pauses[protocol]; !ok || !b.asked(protocol) {
				continue
			}
			for range trials {
				plan = append(plan, forcedTrial{x, protocol, b.order(protocol, b.newDir(), 1)})
			}
		}
	}
	b.rng.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	return plan
}

func (b *bencher) force(t forcedTrial) error {
	r := b.row("forced", t.protocol, t.name, 2, 1)
	w := watch()
	void, err := b.interleave(t)
	all := b.attempts(t.order, contenderA, contenderB)
	if err != nil {
		var end error
		if void, end = b.harness(err); end != nil {
			return end
		}
	}
	b.judged(r, t.order, all, firstOf(void, unanswered(all), w.disturbed(), tooSlow(t.order, all)))
	return nil
}

// tooSlow is for an A that comes to its end after the deadline of an attempt: it gives up, and shows nothing.
func tooSlow(o order, all []attempted) string {
	for _, a := range all {
		if took := a.Return - a.Invoke; a.Contender == contenderA && a.Began == 0 && took > o.TTL/2 {
			return fmt.Sprintf("the machine was too slow: an attempt took %v, and its deadline is %v", time.Duration(took).Round(time.Millisecond), time.Duration(o.TTL/2))
		}
	}
	return ""
}

func (b *bencher) interleave(t forcedTrial) (void string, err error) {
	defer b.unstop(contenderA, contenderB)
	p := t.pauses[t.protocol]
	first, second := t.order, t.order
	first.PauseAt, first.PauseNth = int64(p.at), p.nth
	second.Hold = 1
	b.begin(contenderA, first)
	if there, err := b.stopped(contenderA); err != nil || !there {
		return fmt.Sprintf("contender %d never came to %v", contenderA, p), err
	}
	b.begin(contenderB, second)
	if _, err := b.stopped(contenderB); err != nil {
		return "", err
	}
	if t.reaper {
		if err := b.alone(reaper, reclaiming(t.order)); err != nil {
			return "", err
		}
	}
	return "", b.resumed(contenderA)
}

func reclaiming(o order) order {
	o.Reclaim = 1
	return o
}

// asked says whether a protocol was asked for.
func (b *bencher) asked(protocol string) bool {
	if len(b.Protocols) == 0 {
		return true
	}
	for _, p := range b.Protocols {
		if p == protocol {
			return true
		}
	}
	return false
}
