package bench

import (
	"fmt"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var unrelated = Workload{
	Name:  "unrelated",
	Shows: "one key's take-over is stopped half-way: are 64 others refused for it?",
	run:   func(b *bencher) ([]result.Bench, error) { return nil, b.unrelated(b.trials(5)) },
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
	plan := b.shuffled(chosen, trials)
	var orders []order
	for _, protocol := range plan {
		o := b.order(protocol, b.newDir(), 1+coldKeys)
		o.Linger = 0
		if err := b.abandon(predecessor, o); err != nil {
			return err
		}
		orders = append(orders, o)
	}
	if err := b.bury(predecessor); err != nil {
		return err
	}
	race.Sleep(b.TTL + b.TTL/10)
	for i, protocol := range plan {
		if b.over() {
			break
		}
		if err := b.hotAndCold(b.row("unrelated", protocol, "", 2, 1+coldKeys), orders[i], halfWay[protocol]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bencher) hotAndCold(r *row, o order, p pause) error {
	w := watch()
	refused, err := b.whileStopped(o, p)
	all := b.attempts(keyOf(o, 0), contenderA)
	cold := o
	cold.First, cold.Keys = 1, coldKeys
	again := b.attempts(cold, contenderB)
	all = append(all, again...)
	void := ""
	if err != nil {
		var end error
		if void, end = b.harness(err); end != nil {
			return end
		}
	}
	b.judged(r, o, all, firstOf(void, unanswered(all), w.disturbed(), tooSlow(o, all)))
	blocked := 0
	for _, a := range again {
		if refused[a.Key] && a.Began != 0 {
			blocked++
		}
	}
	r.Blocked += blocked
	if blocked > 0 {
		r.example("blocked", fmt.Sprintf("%d of %d keys are refused while the take-over of another is under way, and to be had when it is over", blocked, coldKeys), all)
	}
	return nil
}

// whileStopped tells which cold keys were refused while the hot one was stopped. Who was refused tries again
// afterwards: a key that is then to be had was blocked by the hot one.
func (b *bencher) whileStopped(o order, p pause) (map[int]bool, error) {
	defer b.unstop(contenderA)
	hot, cold := keyOf(o, 0), o
	hot.PauseAt, hot.PauseNth = int64(p.at), p.nth
	cold.First, cold.Keys = 1, coldKeys
	b.begin(contenderA, hot)
	if _, err := b.stopped(contenderA); err != nil {
		return nil, err
	}
	if err := b.alone(contenderB, cold); err != nil {
		return nil, err
	}
	refused := map[int]bool{}
	for _, a := range b.attempts(cold, contenderB) {
		refused[a.Key] = a.Outcome == outcomes[outcomeHeld]
	}
	if pending, _ := b.Line.Pending(contenderA); pending {
		if err := b.resumed(contenderA); err != nil {
			return nil, err
		}
	}
	*orderIn(b.Line.Words(contenderB)) = cold // without clearing what it recorded
	_, err := b.Line.Do(b.ctx, contenderB, work, b.Line.Name(), 0)
	return refused, err
}
