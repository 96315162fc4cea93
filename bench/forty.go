package bench

import (
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var forty = Workload{
	Name:  "forty",
	Shows: "40 contenders try one key once: without a guard 40 executions, with one 1",
	run:   func(b *bencher) ([]result.Bench, error) { return nil, b.fresh("forty", 40, b.trials(20), 0) },
}

var storm = Workload{
	Name:  "storm",
	Shows: "16 contenders go on until the key is done",
	run: func(b *bencher) ([]result.Bench, error) {
		return nil, b.fresh("storm", 16, b.trials(40), 4*time.Second)
	},
}

// fresh has contenders race for a key that nobody has claimed. The TTL is long: nothing expires here.
func (b *bencher) fresh(workload string, contenders, trials int, patience time.Duration) error {
	for _, protocol := range b.shuffled(b.protocols(), trials) {
		if b.over() {
			break
		}
		o := b.order(protocol, b.newDir(), 1)
		o.TTL, o.Poll, o.Patience = int64(30*time.Second), int64(time.Millisecond), int64(patience)
		r := b.row(workload, protocol, "", contenders, 1)
		if err := b.trial(r, contenders, o); err != nil {
			return err
		}
		b.explain(r, b.attempts(o, upTo(contenders)...))
	}
	return nil
}

// trial runs and judges one trial in which all start together.
func (b *bencher) trial(r *row, contenders int, o order) error {
	w := watch()
	err := b.together(contenders, o)
	all := b.attempts(o, upTo(contenders)...)
	void := ""
	if err != nil {
		var end error
		if void, end = b.harness(err); end != nil {
			return end
		}
	}
	b.judged(r, o, all, firstOf(void, unanswered(all), w.disturbed()))
	return nil
}

// explain looks for a sequential order of the trial's history.
func (b *bencher) explain(r *row, all []attempted) {
	if unanswered(all) != "" {
		return
	}
	legal, html := linearizable(all)
	if legal {
		return
	}
	r.Illegal++
	r.example("illegal", "no order of the contenders' calls, one after the other, explains what they were told", all)
	if r.Illegal == 1 && b.Draw != nil {
		b.Draw(r.Workload, r.Protocol, html)
	}
}

func (b *bencher) judged(r *row, o order, all []attempted, void string) {
	if void != "" {
		r.void(void, keysOf(o), all)
		return
	}
	r.add(keysOf(o), all)
}

func firstOf(reasons ...string) string {
	for _, s := range reasons {
		if s != "" {
			return s
		}
	}
	return ""
}

var takeover = Workload{
	Name:  "takeover",
	Shows: "16 contenders find a claim expired, all at once, and winners linger",
	run:   func(b *bencher) ([]result.Bench, error) { return nil, b.takeovers(b.trials(20)) },
}

// takeovers has all claims made and abandoned first, so that one TTL is waited for all of them.
func (b *bencher) takeovers(trials int) error {
	const contenders = 16
	var orders []order
	plan := b.shuffled(b.protocols(), trials)
	for _, protocol := range plan {
		o := b.order(protocol, b.newDir(), 1)
		if err := b.abandon(contenders, o); err != nil {
			return err
		}
		orders = append(orders, o)
	}
	if err := b.bury(contenders); err != nil {
		return err
	}
	race.Sleep(b.TTL + b.TTL/10)
	for i, protocol := range plan {
		if b.over() {
			break
		}
		o := orders[i]
		o.Linger, o.Patience = int64(b.TTL/50), int64(b.TTL/2)
		if err := b.trial(b.row("takeover", protocol, "", contenders, 1), contenders, o); err != nil {
			return err
		}
	}
	return nil
}
