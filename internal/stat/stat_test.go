package stat

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// atMost is P(Binomial(n, p) <= k), summed term by term in logarithms: slow, and independent of the code
// under test.
func atMost(k, n int, p float64) float64 {
	lgamma := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	sum := 0.0
	for i := 0; i <= k; i++ {
		sum += math.Exp(lgamma(n) - lgamma(i) - lgamma(n-i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}

// bisectUpper is the rate at which x or fewer in n have a probability of 5 %.
func bisectUpper(x, n int) float64 {
	lo, hi := 0.0, 1.0
	for range 200 {
		mid := (lo + hi) / 2
		if atMost(x, n, mid) > 0.05 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestUpper95IsTheBinomialBound(t *testing.T) {
	for _, c := range []struct{ x, n int }{
		{0, 1}, {0, 2}, {1, 2}, {0, 10}, {1, 10}, {9, 10}, {3, 50}, {0, 299}, {5, 300}, {299, 300}, {17, 20000}, {100, 200000},
	} {
		near(t, "bound", Upper95(c.x, c.n), bisectUpper(c.x, c.n), 1e-7)
	}
}

func TestUpper95OfNoViolationHasAClosedForm(t *testing.T) {
	for _, n := range []int{1, 2, 10, 59, 299, 300, 20_000, 1_000_000, 100_000_000} {
		near(t, "bound", Upper95(0, n), -math.Expm1(math.Log(0.05)/float64(n)), 1e-6)
	}
}

func TestThreeOverN(t *testing.T) {
	for n := 100; n <= 1_000_000; n *= 10 {
		near(t, "bound", Upper95(0, n), 3/float64(n), 0.02)
	}
	if b := Upper95(0, 299); b > 0.01 { // 299 is the textbook number of clean trials for 1 %
		t.Errorf("299 clean rounds bound the rate by %v, want 1 %% at most", b)
	}
	if b := Upper95(0, 298); b <= 0.01 {
		t.Errorf("298 clean rounds bound the rate by %v, want more than 1 %%", b)
	}
}

func TestUpper95ProvesNothingFromNothing(t *testing.T) {
	for _, c := range []struct{ x, n int }{{0, 0}, {1, 0}, {1, 1}, {7, 7}, {8, 7}, {-1, 7}, {0, -3}, {-3, -3}, {-5, -3}} {
		if got := Upper95(c.x, c.n); got != 1 {
			t.Errorf("Upper95(%d, %d) = %v, want 1", c.x, c.n, got)
		}
	}
}

func TestUpper95GrowsWithViolationsAndShrinksWithRounds(t *testing.T) {
	for _, n := range []int{1, 2, 7, 300, 20_000, 1_000_000} {
		for x := range min(n, 50) {
			here := Upper95(x, n)
			if more := Upper95(x+1, n); !(more > here) {
				t.Errorf("Upper95(%d, %d) = %v is not above %v of one violation fewer", x+1, n, more, here)
			}
			if longer := Upper95(x, n+1); !(longer < here) {
				t.Errorf("Upper95(%d, %d) = %v is not below %v of one round fewer", x, n+1, longer, here)
			}
			if rate := float64(x) / float64(n); !(here > rate && here <= 1) {
				t.Errorf("Upper95(%d, %d) = %v, want above the rate seen, %v, and 1 at most", x, n, here, rate)
			}
		}
	}
}

// covered is the share of samples, of the given number, whose interval holds what it should.
func covered(samples int, holds func(*rand.Rand) bool) float64 {
	random, hits := rand.New(rand.NewPCG(1, 2)), 0
	for range samples {
		if holds(random) {
			hits++
		}
	}
	return float64(hits) / float64(samples)
}

func successes(random *rand.Rand, n int, p float64) (x int) {
	for range n {
		if random.Float64() < p {
			x++
		}
	}
	return x
}

func TestUpper95IsBelowTheTrueRateAtMostOnceInTwenty(t *testing.T) {
	for _, p := range []float64{0.001, 0.01, 0.1, 0.5, 0.9} {
		share := covered(4000, func(random *rand.Rand) bool { return Upper95(successes(random, 300, p), 300) >= p })
		if share < 0.94 { // 0.95 less three standard errors of 4000 samples
			t.Errorf("rate %v: the bound held in %v of the samples, want 0.95", p, share)
		}
	}
}

func TestWilsonSolvesItsEquation(t *testing.T) {
	const z = 1.959963984540054
	for _, c := range []struct{ x, n int }{{1, 10}, {5, 10}, {9, 10}, {1, 2}, {3, 20000}, {640, 641}, {0, 10}, {10, 10}} {
		lo, hi := Wilson(c.x, c.n)
		seen, n := float64(c.x)/float64(c.n), float64(c.n)
		for _, p := range []float64{lo, hi} { // |seen - p| is z standard errors at p, or p is 0 or 1 where it was seen
			if p == seen && (p == 0 || p == 1) {
				continue
			}
			near(t, "distance", math.Abs(seen-p), z*math.Sqrt(p*(1-p)/n), 1e-9)
		}
		if !(lo <= seen && seen <= hi && 0 <= lo && hi <= 1) {
			t.Errorf("Wilson(%d, %d) = %v to %v", c.x, c.n, lo, hi)
		}
	}
}

func TestWilsonHasItsPublishedValues(t *testing.T) {
	for _, c := range []struct { // Newcombe, Statistics in Medicine 17 (1998) 857, table I, method 3
		x, n   int
		lo, hi float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}} {
		lo, hi := Wilson(c.x, c.n)
		if math.Abs(lo-c.lo) > 5e-5 || math.Abs(hi-c.hi) > 5e-5 {
			t.Errorf("Wilson(%d, %d) = %.4f to %.4f, want %.4f to %.4f", c.x, c.n, lo, hi, c.lo, c.hi)
		}
	}
}

func TestWilsonReachesTheEndsExactly(t *testing.T) {
	for n := 1; n < 5000; n++ {
		lo, _ := Wilson(0, n)
		_, hi := Wilson(n, n)
		if lo != 0 || hi != 1 {
			t.Fatalf("n = %d: %v and %v, want 0 and 1", n, lo, hi)
		}
	}
}

func TestWilsonLeavesAllOpenWithoutTrials(t *testing.T) {
	for _, c := range []struct{ x, n int }{{0, 0}, {1, 0}, {-1, 5}, {6, 5}, {0, -1}, {-1, -1}} {
		if lo, hi := Wilson(c.x, c.n); lo != 0 || hi != 1 {
			t.Errorf("Wilson(%d, %d) = %v to %v, want 0 to 1", c.x, c.n, lo, hi)
		}
	}
}

func TestWilsonCoversTheTrueRate(t *testing.T) {
	for _, p := range []float64{0.1, 0.3, 0.5, 0.9} {
		share := covered(4000, func(random *rand.Rand) bool {
			lo, hi := Wilson(successes(random, 200, p), 200)
			return lo <= p && p <= hi
		})
		if share < 0.93 || share > 0.97 { // Wilson's is 95 % on average, not at least
			t.Errorf("rate %v: covered in %v of the samples, want about 0.95", p, share)
		}
	}
}

// exactRank is medianRank by whole numbers: the coefficients summed, 40 times the tail against 2^n.
func exactRank(n int) int {
	tail, total, term := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(n)), new(big.Int)
	for k := range n {
		tail.Add(tail, term.Binomial(int64(n), int64(k)))
		if new(big.Int).Mul(tail, big.NewInt(40)).Cmp(total) > 0 {
			return k
		}
	}
	return n
}

func TestMedianRankIsTheLargestThatKeeps95Percent(t *testing.T) {
	for n := 1; n <= 400; n++ {
		if got, want := medianRank(n), exactRank(n); got != want {
			t.Errorf("n = %d: rank %d, want %d", n, got, want)
		}
	}
	if got, want := medianRank(1500), exactRank(1500); got != want {
		t.Errorf("n = 1500: rank %d, want %d", got, want)
	}
}

func TestMedianRankHasItsPublishedValues(t *testing.T) {
	for n, want := range map[int]int{5: 0, 6: 1, 8: 1, 9: 2, 11: 2, 12: 3, 20: 6, 25: 8, 50: 18, 100: 40} {
		if got := medianRank(n); got != want {
			t.Errorf("n = %d: rank %d, want %d", n, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	big := math.MaxFloat64
	for _, c := range []struct {
		xs          []float64
		med, lo, hi float64
		ok          bool
	}{
		{nil, 0, 0, 0, false},
		{[]float64{7}, 7, 0, 0, false},
		{[]float64{4, 1}, 2.5, 0, 0, false},
		{[]float64{5, 4, 3, 2, 1}, 3, 0, 0, false},
		{[]float64{6, 5, 4, 3, 2, 1}, 3.5, 1, 6, true},
		{[]float64{9, 1, 8, 2, 7, 3, 6, 4, 5}, 5, 2, 8, true},
		{[]float64{2, 2, 2, 2, 2, 2}, 2, 2, 2, true},
		{[]float64{1, 2, math.NaN(), 4, 5, 6, 7}, 0, 0, 0, false},
		{[]float64{math.NaN()}, 0, 0, 0, false},
		{[]float64{math.Inf(-1), math.Inf(1)}, 0, 0, 0, false},
		{[]float64{1, 2, 3, 4, 5, math.Inf(1)}, 0, 0, 0, false},
		{[]float64{-big, -big, -big, big, big, big}, 0, -big, big, true},
		{[]float64{big, big, big, big, big, big}, big, big, big, true}, // whose sum is not finite
	} {
		if med, lo, hi, ok := Median(c.xs); med != c.med || lo != c.lo || hi != c.hi || ok != c.ok {
			t.Errorf("Median(%v) = %v, %v, %v, %v; want %v, %v, %v, %v", c.xs, med, lo, hi, ok, c.med, c.lo, c.hi, c.ok)
		}
	}
}

func TestMedianIntervalCoversTheTrueMedian(t *testing.T) {
	for _, n := range []int{6, 9, 25, 100} {
		share := covered(4000, func(random *rand.Rand) bool {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = random.ExpFloat64()
			}
			_, lo, hi, ok := Median(xs)
			return ok && lo <= math.Ln2 && math.Ln2 <= hi
		})
		if share < 0.94 {
			t.Errorf("n = %d: covered in %v of the samples, want 0.95", n, share)
		}
	}
}

// upTo is n, ..., 2, 1.
func upTo(n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = float64(n - i)
	}
	return xs
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	for _, c := range []struct {
		n    int
		p    float64
		want float64
		ok   bool
	}{
		{100, 99, 99, true}, {99, 99, 0, false}, {101, 99, 100, true},
		{1000, 99.9, 999, true}, {999, 99.9, 0, false}, {10_000, 99.99, 9999, true}, {9999, 99.99, 0, false},
		{41_000, 99.9, 40_959, true}, {82_000, 99.9, 81_918, true}, // a plain ceiling is one too high
		{2, 50, 1, true}, {1, 50, 0, false}, {3, 50, 2, true}, {10, 90, 9, true}, {9, 90, 0, false},
		{100, 1, 1, true}, {99, 1, 0, false}, {40, 97.5, 39, true}, {39, 97.5, 0, false},
		{97, 100. / 97, 1, true}, {19, 100 - 100./19, 18, true}, // a tail of one exactly, but for rounding
		{0, 50, 0, false}, {1000, 0, 0, false}, {1000, 100, 0, false}, {1000, -1, 0, false}, {1000, 101, 0, false},
		{1000, math.NaN(), 0, false}, {1000, math.Inf(1), 0, false}, {1000, math.Inf(-1), 0, false},
	} {
		if v, ok := Percentile(upTo(c.n), c.p); v != c.want || ok != c.ok {
			t.Errorf("p%v of 1..%d = %v, %v; want %v, %v", c.p, c.n, v, ok, c.want, c.ok)
		}
	}
}

func TestPercentileTakesTheExactRankAtEveryLength(t *testing.T) {
	for _, permille := range []int{1, 25, 500, 900, 990, 975, 999} { // p in tenths of a percent, so that ranks can be had in whole numbers
		for n := 1; n <= 3000; n += 7 {
			want, carries := float64((n*permille+999)/1000), n*min(permille, 1000-permille) >= 1000
			if !carries {
				want = 0
			}
			if v, ok := Percentile(upTo(n), float64(permille)/10); v != want || ok != carries {
				t.Fatalf("p%v of 1..%d = %v, %v; want %v, %v", float64(permille)/10, n, v, ok, want, carries)
			}
		}
	}
}

func TestPercentileRefusesWhatIsNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if v, ok := Percentile(append(upTo(200), bad), 50); v != 0 || ok {
			t.Errorf("with %v: %v, %v; want 0, false", bad, v, ok)
		}
	}
}

func TestSamplesAreLeftAsTheyWere(t *testing.T) {
	xs := upTo(200)
	Median(xs)
	Percentile(xs, 99)
	if !slices.Equal(xs, upTo(200)) {
		t.Error("the sample was reordered")
	}
}
