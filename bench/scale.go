package bench

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/claimbench/claimbench/internal/race"
)

var scale = Workload{
	Name:       "scale",
	Shows:      "the latency of a claim among 1 000 to 1 000 000 keys, and of 1 to 64 contenders with keys of their own",
	Contenders: race.MaxContenders,
	run:        func(b *bencher) error { return b.scale() },
}

// scaled are the protocols that are measured unless others are asked for.
var scaled = []string{"generations", "generations-linked", "quarantine", "flock-held"}

// scale has the cheap part first: what fills millions of names may well reach the end of the budget.
func (b *bencher) scale() error {
	if len(b.Protocols) == 0 {
		b.Protocols = scaled
	}
	if err := b.besideContenders(); err != nil {
		return err
	}
	most := 1_000_000
	if b.Full {
		most *= 10
	}
	return b.amongKeys(most)
}

// amongKeys fills a directory for each protocol, and measures claims of fresh keys at every power of ten.
func (b *bencher) amongKeys(most int) error {
	orders, rows := map[string]*order{}, map[string][]*row{}
	for _, protocol := range b.Protocols {
		o := b.order(protocol, b.newDir(), 0)
		o.TTL, o.Linger = int64(time.Hour), 0
		orders[protocol] = &o
	}
	for keys := 1000; keys <= most; keys *= 10 {
		for _, protocol := range b.shuffled(b.Protocols, 1) {
			o := orders[protocol]
			if err := b.fill(o, keys); err != nil {
				return err
			}
			r := b.row("scale", protocol, fmt.Sprintf("among %d keys", keys), 1, keys)
			if err := b.measure(r, o); err != nil {
				return err
			}
			rows[protocol] = append(rows[protocol], r)
		}
		for _, protocol := range b.Protocols {
			setExponent(rows[protocol])
		}
	}
	return nil
}

// chunk is how many keys fit into the records of one contender.
const chunk = 2000

// fill makes claims until there are so many, and leaves the order at the key behind them.
func (b *bencher) fill(o *order, keys int) error {
	for o.First < int64(keys) {
		if b.over() {
			return errLate
		}
		o.Keys = min(chunk, int64(keys)-o.First)
		if err := b.alone(0, *o); err != nil {
			return err
		}
		if err := filled(b.attempts(*o, 0)); err != nil {
			return err
		}
		o.First += o.Keys
	}
	return nil
}

// filled insists on every key: a directory that is not full shows nothing of one that is.
func filled(all []attempted) error {
	for i := range all {
		if a := &all[i]; a.Done == 0 {
			return fmt.Errorf("key %d could not be claimed and done: %s: %w", a.Key, a.Outcome, a.errno)
		}
	}
	return nil
}

// measure claims a tenth more keys than there are, or as many as can be recorded.
func (b *bencher) measure(r *row, o *order) error {
	o.Keys = min(chunk, o.First/10)
	w := b.begins()
	err := b.alone(0, *o)
	_, err = b.conclude(r, *o, b.attempts(*o, 0), w, err)
	o.First += o.Keys
	return err
}

// setExponent fits latency = a * keys^b: 0 is no growth, 1 is proportional.
func setExponent(rows []*row) {
	var x, y []float64
	for _, r := range rows {
		if l := summary(r.latency, 1e3); l != nil {
			x, y = append(x, math.Log(float64(r.Keys))), append(y, math.Log(l.P50))
		}
	}
	if len(x) < 3 {
		return
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	for _, r := range rows {
		r.Exponent = &slope
	}
}

// A crowd is a number of contenders that claim by one protocol, each keys of its own.
type crowd struct {
	protocol   string
	contenders int
}

// besideContenders measures crowds up to as many contenders as the line has.
func (b *bencher) besideContenders() error {
	var plan []crowd
	for range b.trials(3) {
		for n := 1; n <= b.Line.Contenders(); n *= 2 {
			for _, protocol := range b.Protocols {
				plan = append(plan, crowd{protocol, n})
			}
		}
	}
	shuffle(b, plan)
	for _, c := range plan {
		if b.over() {
			return errLate
		}
		if err := b.apart(c); err != nil {
			return err
		}
	}
	return nil
}

func (b *bencher) apart(c crowd) error {
	const each = 50
	n := c.contenders
	r := b.row("scale", c.protocol, fmt.Sprintf("%02d contenders", n), n, n*each)
	o := b.order(c.protocol, b.newDir(), n*each)
	o.Linger, o.TTL = 0, int64(time.Minute)
	mine := func(i int) order {
		m := o
		m.First, m.Keys = int64(i*each), each
		return m
	}
	w := b.begins()
	err := b.each(n, mine)
	var all []attempted
	for i := range n {
		all = append(all, b.attempts(mine(i), i)...)
	}
	judged, err := b.conclude(r, o, all, w, err)
	if judged {
		r.rate(all)
	}
	return err
}
