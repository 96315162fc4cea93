package bench

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimbench/claimbench/internal/result"
	"math/rand/v2"
	"slices"
	"strings"
)

// took is an execution whose claim took so many nanoseconds.
func took(key int, ns int64) attempted {
	a := ran(0, 1_000_000+ns, 2_000_000_000, 2_000_000_100, 2_000_000_200, never)
	a.Key, a.Invoke, a.firstInvoke = key, 1_000_000, 1_000_000
	return a
}

func near(got, want float64) bool { return math.Abs(got-want) <= want/100 }

func TestRowsCountTrials(t *testing.T) {
	r := newRow("storm", "generations", "")
	r.add([]int{0, 1}, []attempted{ran(0, 10, 11, 20, 25, long), refused(1, 8, 12, "held")})
	r.void("x")
	r.add([]int{0}, []attempted{ran(0, 10, 11, 20, 25, long), ran(1, 12, 13, 22, 0, long)})
	r.add([]int{0}, []attempted{ran(0, 10, 11, 20, 25, long), ran(1, 12, 13, 22, 0, long)})
	b := r.finish()
	if b.Trials != 3 || b.Void != 1 || b.Expected != 4 || b.Executed != 5 || b.Duplicates != 2 || b.Missed != 1 || b.Attempts != 6 || b.Contested != 3 {
		t.Errorf("%+v", b)
	}
	if x := b.Counterexample; x.Kind != "duplicate" || x.Trial != 3 || len(x.Attempts) != 2 {
		t.Errorf("the first duplicate comes before the first missed key: %+v", x)
	}
}

// A trial began with the preparations for it, and ended with the last sign of anybody. Where each key is a trial, it
// began with the first attempt.
func TestRowsKeepWhenTrialsWere(t *testing.T) {
	second := ran(1, 12, 13, 22, 40, long)
	died := ran(0, 50, 51, 0, 0, long)
	died.Key, died.Died = 1, 70
	r := newRow("storm", "generations", "")
	r.when([]int{0, 1}, 3, []attempted{ran(0, 10, 11, 20, 25, long), second, died})
	r.perKey = true
	r.when([]int{0, 1}, 3, []attempted{ran(0, 10, 11, 20, 25, long), second, died})
	begin := func(a attempted) int64 { return a.firstInvoke }
	want := []result.TrialTime{
		{Begin: 3, End: 70, Done: 25},
		{Begin: begin(ran(0, 10, 11, 20, 25, long)), End: 40, Done: 25},
		{Begin: begin(died), End: 70},
	}
	if diff := cmp.Diff(want, r.finish().Times); diff != "" {
		t.Error(diff)
	}
}

func TestRowsKeepFewReasons(t *testing.T) {
	r := newRow("storm", "generations", "")
	for i := range 20 {
		r.void(fmt.Sprint(i % 12))
	}
	if r.Void != 20 || len(r.Voided) != 8 {
		t.Errorf("%d void, %v", r.Void, r.Voided)
	}
}

// Latencies are in microseconds, of claims that were won and acted on; times to take-over in milliseconds.
func TestRowsTimeClaims(t *testing.T) {
	r := newRow("peers", "generations", "")
	var all []attempted
	for k := range 99 {
		all = append(all, took(k, 20_000))
	}
	slow := refused(1, 1_000_000, 9_000_000, "held")
	r.time(append(all, slow))
	if l := r.finish().LatencyUS; l.N != 99 || !near(l.P50, 20) || !near(l.Max, 20) || l.P99 != nil || len(l.Samples) != 1 || !near(l.Samples[0], 20) {
		t.Errorf("%+v", l)
	}
	r.time([]attempted{took(0, 70_000)})
	if l := r.finish().LatencyUS; l.P99 == nil || !near(*l.P99, 20) || !near(l.Max, 70) || l.P999 != nil {
		t.Errorf("%+v", l)
	}
	for range 9 {
		r.time(all)
		r.time([]attempted{took(0, 70_000)})
	}
	if l := r.finish().LatencyUS; l.P999 == nil || !near(*l.P999, 70) || !near(*l.P99, 20) {
		t.Errorf("%+v", l)
	}
}

func TestTakeoversCountFromTheDeath(t *testing.T) {
	r := newRow("deaths", "generations", "")
	dead, successor := died(ran(0, 10, 11, 0, 0, long), 1_000_000), ran(1, 30, 501_000_000, 502_000_000, 503_000_000, never)
	later := ran(2, 30, 40, 50, 60, long)
	later.Key = 1
	r.takeovers([]attempted{dead, successor, later, died(ran(3, 30, 2_000_000, 0, 0, long), 1_000_000)})
	if l := r.finish().TakeoverMS; l.N != 1 || !near(l.P50, 500) {
		t.Errorf("%+v", l)
	}
}

// A rate is keys done per second, from the first try to the last record.
func TestRowsRateWhatIsDone(t *testing.T) {
	r := newRow("peers", "generations", "")
	a, b, c := took(0, 10), took(1, 10), took(2, 10)
	a.firstInvoke, a.Done = 1_000_000_000, 1_500_000_000
	b.firstInvoke, b.Done = 1_100_000_000, 3_000_000_000
	c.firstInvoke, c.Done = 1_200_000_000, 0
	r.rate([]attempted{a, b, c})
	if b := r.finish(); !near(b.ClaimsPerS, 1) || len(b.Rates) != 1 {
		t.Errorf("%v claims/s", b.ClaimsPerS)
	}
}

func TestTheExponentIsTheSlope(t *testing.T) {
	var rows []*row
	for i, keys := range []int{1000, 10_000, 100_000} {
		r := newRow("scale", "generations", fmt.Sprint(keys))
		r.Keys = keys
		r.time([]attempted{took(0, 10_000*int64(math.Pow(10, float64(i))))})
		if setExponent(append(rows, r)); i < 2 && r.Exponent != nil {
			t.Errorf("%d points have no slope", i+1)
		}
		rows = append(rows, r)
	}
	if e := rows[0].Exponent; e == nil || !near(*e, 1) {
		t.Errorf("ten times the keys, ten times as slow: %v", e)
	}
}

func TestOnlyWhatIsToBeHadAfterwardsWasBlocked(t *testing.T) {
	had, still, free := ran(1, 10, 11, 20, 25, long), refused(1, 8, 12, "held"), ran(1, 10, 11, 20, 25, long)
	had.Key, still.Key, free.Key = 1, 2, 3
	r := newRow("unrelated", "flock-dir", "")
	r.block(map[int]bool{1: true, 2: true, 3: false}, []attempted{had, still, free})
	if r.Blocked != 1 || r.Counterexample == nil || r.Counterexample.Kind != "blocked" {
		t.Errorf("%d blocked: %+v", r.Blocked, r.Counterexample)
	}
}

func TestABudgetThatEndsEarlyLeavesAllProtocolsAlike(t *testing.T) {
	b := &bencher{rng: rand.New(rand.NewPCG(1, 2))}
	protocols := []string{"a", "b", "c", "d"}
	order := b.shuffled(protocols, 50)
	orders := map[string]bool{}
	for pass := range slices.Chunk(order, len(protocols)) {
		orders[strings.Join(pass, "")] = true
		if slices.Sort(pass); !slices.Equal(pass, protocols) {
			t.Fatalf("a pass has %q", pass)
		}
	}
	if len(order) != 200 || len(orders) < 10 {
		t.Errorf("%d trials, in %d orders", len(order), len(orders))
	}
}
