package bench

import (
	"errors"
	"fmt"
	"slices"
)

var forced = Workload{
	Name:       "forced",
	Shows:      "the named bad interleavings, by processes that stop themselves at the worst moment",
	Contenders: 4,
	leases:     true,
	run:        func(b *bencher) error { return b.forced(b.trials(20)) },
}

// An interleaving stops contender A before one operation, lets B try, and goes on with A while B is at work.
type interleaving struct {
	name    string
	expired bool // somebody claimed the key before, and died
	reaper  bool // a third contender reclaims before A goes on
	refuses bool // right protocols refuse B; otherwise B has to be at work, or nothing is shown
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
		name: "empty claim", refuses: true,
		pauses: map[string]pause{
			"check-then-create": {overwrite, 1}, "generations/empty-is-stale": {write, 1}, "generations": {write, 1},
			"generations-linked": {link, 1}, "excl-unlink": {write, 1}, "flock-reread": {write, 1}, "quarantine": {rename, 1},
		},
	},
	{
		name: "lock of two", expired: true, refuses: true,
		pauses: map[string]pause{"flock-reread": {unlink, 1}, "flock-held": {executing, 1}},
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

// forced has all predecessors die first. They are older than what reclaims quarantines before anybody comes.
func (b *bencher) forced(trials int) error {
	plan := b.forcedPlan(trials)
	expired := slices.IndexFunc(plan, func(t inheritance) bool { return !t.expired })
	if expired < 0 {
		expired = len(plan)
	}
	if err := b.bequeath(predecessor, plan[:expired], 2*b.TTL+b.TTL/5); err != nil {
		return err
	}
	shuffle(b, plan)
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

// forcedPlan has the trials of expired claims first.
func (b *bencher) forcedPlan(trials int) []inheritance {
	var expired, fresh []inheritance
	for _, x := range interleavings {
		for _, protocol := range Names() {
			if _, ok := x.pauses[protocol]; !ok || !b.asked(protocol) {
				continue
			}
			for range trials {
				t := inheritance{interleaving: x, protocol: protocol, order: b.order(protocol, b.newDir(), 1)}
				if x.expired {
					expired = append(expired, t)
				} else {
					fresh = append(fresh, t)
				}
			}
		}
	}
	return append(expired, fresh...)
}

func (b *bencher) force(t inheritance) error {
	r, w, err := b.row("forced", t.protocol, t.name, 2, 1), b.begins(), t.err
	var all []attempted
	if err == nil {
		err = errors.Join(b.interleave(t), b.unstop(contenderA, contenderB))
		all = b.attempts(t.order, contenderA, contenderB)
	}
	if err == nil {
		err = tooSlow(t.order, all)
	}
	_, err = b.conclude(r, t.order, all, w, err)
	return err
}

func (b *bencher) interleave(t inheritance) error {
	p := t.pauses[t.protocol]
	first, second := t.order, t.order
	first.PauseAt, first.PauseNth = int64(p.at), p.nth
	second.Hold = 1
	b.give(contenderB, second) // nobody is to read what it recorded in another trial
	if err := b.stopAt(contenderA, first, p); err != nil {
		return err
	}
	b.begin(contenderB, second)
	working, err := b.stopped(contenderB)
	switch {
	case err != nil:
		return err
	case !working && !t.refuses:
		return voidError(fmt.Sprintf("contender %d did not come to its work", contenderB))
	}
	if t.reaper {
		if err := b.alone(reaper, reclaiming(t.order)); err != nil {
			return errors.Join(voidError("nothing could be reclaimed"), err)
		}
	}
	return b.resumed(contenderA)
}

func reclaiming(o order) order {
	o.Reclaim = 1
	return o
}

// asked says whether a protocol was asked for.
func (b *bencher) asked(protocol string) bool {
	return len(b.Protocols) == 0 || slices.Contains(b.Protocols, protocol)
}
