package bench

import (
	"slices"
	"time"
)

var forty = Workload{
	Name:       "forty",
	Shows:      "40 contenders try one key once: without a guard 40 executions, with one 1",
	Contenders: 40,
	run:        func(b *bencher) error { return b.fresh("forty", 40, b.trials(20), 0) },
}

var storm = Workload{
	Name:       "storm",
	Shows:      "16 contenders go on until the key is done",
	Contenders: 16,
	run:        func(b *bencher) error { return b.fresh("storm", 16, b.trials(40), 4*time.Second) },
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
		judged, err := b.trial(r, contenders, o)
		if err != nil {
			return err
		}
		if judged {
			b.explain(r, b.attempts(o, upTo(contenders)...))
		}
	}
	return nil
}

// trial runs and judges one trial in which all start together.
func (b *bencher) trial(r *row, contenders int, o order) (judged bool, err error) {
	w := b.begins()
	err = b.together(contenders, o)
	return b.conclude(r, o, b.attempts(o, upTo(contenders)...), w, err)
}

// explain looks for a sequential order of the trial's history. One in which somebody got no answer has many.
func (b *bencher) explain(r *row, all []attempted) {
	if answeredLate(all) != "" {
		return
	}
	legal, html := linearizable(all)
	if legal {
		return
	}
	r.Illegal++
	r.example("illegal", "no order of the contenders' calls, one after the other, explains what they were told", all)
	if r.Illegal == 1 && b.Draw != nil && (slices.Contains(b.Protocols, r.Protocol) || !wrong(r.Protocol)) {
		b.Draw(r.Workload, r.Protocol, html)
	}
}

const takers = 16 // contenders of takeover; their predecessor is one more

var takeover = Workload{
	Name:       "takeover",
	Shows:      "16 contenders find a claim expired, all at once, and winners linger",
	Contenders: takers + 1,
	leases:     true,
	run:        func(b *bencher) error { return b.takeovers(b.trials(20)) },
}

// takeovers gives contenders time for a claim that somebody gave up, because the attempt took too long, to expire.
func (b *bencher) takeovers(trials int) error {
	var plan []inheritance
	for _, protocol := range b.shuffled(b.protocols(), trials) {
		plan = append(plan, inheritance{protocol: protocol, order: b.order(protocol, b.newDir(), 1)})
	}
	if err := b.bequeath(takers, plan, b.TTL+b.TTL/10); err != nil {
		return err
	}
	for _, t := range plan {
		if b.over() {
			break
		}
		t.order.Linger, t.order.Patience = int64(b.TTL/50), int64(2*b.TTL)
		if err := b.takenOver(t); err != nil {
			return err
		}
	}
	return nil
}

// takenOver is no miss if those who could have done it were too slow for their deadlines.
func (b *bencher) takenOver(t inheritance) error {
	r, w, err := b.row("takeover", t.protocol, "", takers, 1), b.begins(), t.err
	var all []attempted
	if err == nil {
		err = b.together(takers, t.order)
		all = b.attempts(t.order, upTo(takers)...)
	}
	if err == nil && judge(r.routes, keysOf(t.order), all).missed > 0 {
		err = tooSlow(t.order, all)
	}
	_, err = b.conclude(r, t.order, all, w, err)
	return err
}
