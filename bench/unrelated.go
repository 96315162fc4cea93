package bench

import (
	"errors"
	"fmt"
)

var unrelated = Workload{
	Name:       "unrelated",
	Shows:      "one key's take-over is stopped half-way: are 64 others refused for it?",
	Contenders: 4,
	leases:     true,
	run:        func(b *bencher) error { return b.unrelated(b.trials(5)) },
}

// halfWay is where the take-over of the hot key is stopped: the step at which it has most in its hands.
var halfWay = map[string]pause{
	"excl-unlink": {unlink, 1}, "flock-dir": {unlink, 1}, "flock-key": {unlink, 1}, "flock-reread": {unlink, 1},
	"generations": {create, 2}, "generations-linked": {link, 1}, "quarantine": {rename, 1}, "quarantine-eager": {rename, 1},
	"flock-held": {executing, 1},
}

const coldKeys = 64

func (b *bencher) unrelated(trials int) error {
	var chosen []string
	for _, p := range b.protocols() {
		if _, ok := halfWay[p]; ok {
			chosen = append(chosen, p)
		}
	}
	var plan []inheritance
	for _, protocol := range b.shuffled(chosen, trials) {
		o := b.order(protocol, b.newDir(), 1+coldKeys)
		o.Linger = 0
		plan = append(plan, inheritance{protocol: protocol, order: o})
	}
	if err := b.bequeath(predecessor, plan, b.TTL+b.TTL/10); err != nil {
		return err
	}
	for _, t := range plan {
		if b.over() {
			break
		}
		if err := b.hotAndCold(t); err != nil {
			return err
		}
	}
	return nil
}

// hotAndCold counts keys as blocked that were refused while the hot one was stopped, and to be had afterwards.
func (b *bencher) hotAndCold(t inheritance) error {
	r, w, err := b.row("unrelated", t.protocol, "", 2, 1+coldKeys), b.begins(), t.err
	var all []attempted
	var refused map[int]bool
	if err == nil {
		refused, err = b.whileStopped(t.order, halfWay[t.protocol])
		err = errors.Join(err, b.unstop(contenderA))
		all = append(b.attempts(keyOf(t.order, 0), contenderA), b.attempts(coldOf(t.order), contenderB)...)
	}
	if err == nil {
		err = tooSlow(t.order, all)
	}
	judged, err := b.conclude(r, t.order, all, w, err)
	if judged {
		r.block(refused, all)
	}
	return err
}

func coldOf(o order) order {
	o.First, o.Keys = 1, coldKeys
	return o
}

func (r *row) block(refused map[int]bool, all []attempted) {
	blocked := 0
	for _, a := range all {
		if refused[a.Key] && a.Began != 0 {
			blocked++
		}
	}
	r.Blocked += blocked
	if blocked > 0 {
		r.example("blocked", fmt.Sprintf("%d of %d keys are refused while the take-over of another is under way, and to be had when it is over", blocked, coldKeys), all)
	}
}

// whileStopped tells which cold keys were refused while the hot one was stopped. Who was refused tries again afterwards.
func (b *bencher) whileStopped(o order, p pause) (map[int]bool, error) {
	hot, cold := keyOf(o, 0), coldOf(o)
	hot.PauseAt, hot.PauseNth = int64(p.at), p.nth
	b.give(contenderB, cold)
	if err := b.stopAt(contenderA, hot, p); err != nil {
		return nil, err
	}
	if err := b.alone(contenderB, cold); err != nil {
		return nil, err
	}
	refused := map[int]bool{}
	for _, a := range b.attempts(cold, contenderB) {
		refused[a.Key] = a.Outcome == outcomes[outcomeHeld]
	}
	if err := b.resumed(contenderA); err != nil {
		return nil, err
	}
	*orderIn(b.Line.Words(contenderB)) = cold // without clearing what it recorded
	return refused, b.carriedOut(contenderB)
}
