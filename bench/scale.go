package bench

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/claimbench/claimbench/internal/result"
)

var scale = Workload{
	Name:  "scale",
	Shows: "the latency of a claim among 1 000 to 1 000 000 keys, and of 1 to 64 contenders with keys of their own",
	run:   func(b *bencher) ([]result.Bench, error) { return b.scale() },
}

// scaled are the protocols that are measured unless others are asked for.
var scaled = []string{"generations", "generations-linked", "quarantine", "flock-held"}

func (b *bencher) scale() ([]result.Bench, error) {
	if len(b.Protocols) == 0 {
		b.Protocols = scaled
	}
	var all []result.Bench
	for _, protocol := range b.Protocols {
		among, err := b.amongKeys(protocol)
		all = append(all, among...)
		if err != nil {
			return all, err
		}
	}
	beside, err := b.besideContenders()
	return append(all, beside...), err
}

// amongKeys fills one directory, and measures claims of fresh keys at every power of ten.
func (b *bencher) amongKeys(protocol string) ([]result.Bench, error) {
	most := 1_000_000
	if b.Full {
		most *= 10
	}
	o := b.order(protocol, b.newDir(), 0)
	o.TTL, o.Linger = int64(time.Hour), 0
	var rows []*row
	filled := 0
	for keys := 1000; keys <= most; keys *= 10 {
		if err := b.fill(o, &filled, keys); err != nil {
			return finished1(rows), err
		}
		r := b.row("scale", protocol, fmt.Sprintf("among %d keys", keys), 1, keys)
		if err := b.measure(r, o, &filled); err != nil {
			return finished1(rows), err
		}
		rows = append(rows, r)
	}
	return withExponent(finished1(rows)), nil
}

func finished1(rows []*row) []result.Bench {
	var all []result.Bench
	for _, r := range rows {
		all = append(all, r.finish())
	}
	return all
}

// chunk is how many keys fit into the records of one contender.
const chunk = 2000

func (b *bencher) fill(o order, filled *int, keys int) error {
	for *filled < keys && b.ctx.Err() == nil {
		o.First, o.Keys = int64(*filled), int64(min(chunk, keys-*filled))
		if err := b.alone(0, o); err != nil {
			return err
		}
		*filled += int(o.Keys)
	}
	return b.ctx.Err()
}

func (b *bencher) measure(r *row, o order, filled *int) error {
	o.First, o.Keys = int64(*filled), chunk
	*filled += chunk
	w := watch()
	err := b.alone(0, o)
	all := b.attempts(o, 0)
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

// withExponent fits latency = a * keys^b: 0 is no growth, 1 is proportional.
func withExponent(rows []result.Bench) []result.Bench {
	var x, y []float64
	for _, r := range rows {
		if r.LatencyUS != nil {
			x, y = append(x, math.Log(float64(r.Keys))), append(y, math.Log(r.LatencyUS.P50))
		}
	}
	if len(x) < 3 {
		return rows
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	for i := range rows {
		rows[i].Exponent = &slope
	}
	return rows
}

// besideContenders has contenders claim keys of their own, as many as the line has.
func (b *bencher) besideContenders() ([]result.Bench, error) {
	const each = 50
	var steps []string
	for n := 1; n <= b.Line.Contenders(); n *= 2 {
		steps = append(steps, fmt.Sprint(n))
	}
	rows := map[string]*row{}
	for _, step := range b.shuffled(steps, b.trials(3)) {
		var n int
		if _, err := fmt.Sscan(step, &n); err != nil {
			return nil, err
		}
		for _, protocol := range b.Protocols {
			name := fmt.Sprintf("%s\x00%02d contenders", protocol, n)
			if rows[name] == nil {
				rows[name] = newRow("scale", protocol, fmt.Sprintf("%02d contenders", n))
				rows[name].Contenders, rows[name].Keys = n, n*each
			}
			if err := b.apart(rows[name], protocol, n, each); err != nil {
				return inOrder(rows), err
			}
		}
	}
	return inOrder(rows), nil
}

func (b *bencher) apart(r *row, protocol string, n, each int) error {
	o := b.order(protocol, b.newDir(), n*each)
	o.Linger, o.TTL = 0, int64(time.Minute)
	mine := func(i int) order {
		m := o
		m.First, m.Keys = int64(i*each), int64(each)
		return m
	}
	for i := range n {
		b.give(i, mine(i))
	}
	w := watch()
	round, err := b.Line.Trial(b.ctx, work, n, 0)
	if err == nil {
		err = unready(round.Events)
	}
	var all []attempted
	for i := range n {
		all = append(all, b.attempts(mine(i), i)...)
	}
	void := ""
	if err != nil {
		var end error
		if void, end = b.harness(err); end != nil {
			return end
		}
	}
	b.judged(r, o, all, firstOf(void, unanswered(all), w.disturbed()))
	r.rate(all)
	return nil
}
