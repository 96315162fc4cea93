package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/claimbench/claimbench/internal/result"
)

func compared2(t *testing.T, write func(io.Writer, []Named, TextOptions) error, o TextOptions, files ...string) string {
	t.Helper()
	var named []Named
	for i, f := range load(t, files...) {
		named = append(named, Named{files[i] + ".json", f})
	}
	return written(t, func(w io.Writer, _ []*result.File) error { return write(w, named, o) })
}

func TestComparisons(t *testing.T) {
	for _, test := range []struct {
		golden string
		format int
		o      TextOptions
		files  string
	}{
		{"compare.txt", 0, TextOptions{}, "bench-ext4 bench-ext4-later"},
		{"compare.80.txt", 0, TextOptions{Width: 80}, "bench-ext4 bench-ext4-later"},
		{"compare.md", 1, TextOptions{}, "bench-ext4 bench-ext4-later"},
		{"compare.csv", 2, TextOptions{}, "bench-ext4 bench-ext4-later bench-nfs"},
		{"compare-3.txt", 0, TextOptions{}, "bench-ext4 bench-ext4-later bench-nfs"},
		{"compare-odd.md", 1, TextOptions{}, "bench-odd bench-ext4"},
		{"compare-promises.txt", 0, TextOptions{Width: 100}, "ext4 nfs"},
		{"compare-empty.txt", 0, TextOptions{}, "empty ext4"},
	} {
		t.Run(test.golden, func(t *testing.T) {
			golden(t, test.golden, []byte(compared2(t, CompareFormats[test.format].Write, test.o, strings.Fields(test.files)...)))
		})
	}
}

// exactP is the two-sided p of the U test by its definition: the share of the ways to split the pooled values
// that are as far from the middle as the one seen. (With ties in samples of unequal size the distribution is not
// symmetric, and two-sided has several meanings.)
func exactP(a, b []float64) float64 {
	pool := slices.Concat(a, b)
	u := func(chosen uint) (u float64) {
		for i, x := range pool {
			for j, y := range pool {
				if chosen>>i&1 == 1 && chosen>>j&1 == 0 {
					u += map[bool]float64{true: 1}[x > y] + map[bool]float64{true: 0.5}[x == y]
				}
			}
		}
		return u
	}
	centre := float64(len(a)*len(b)) / 2
	seen := math.Abs(u(1<<len(a)-1) - centre)
	far, all := 0, 0
	for chosen := uint(0); chosen < 1<<len(pool); chosen++ {
		n := 0
		for i := range pool {
			n += int(chosen >> i & 1)
		}
		if n != len(a) {
			continue
		}
		all++
		if math.Abs(u(chosen)-centre) >= seen {
			far++
		}
	}
	return float64(far) / float64(all)
}

func TestSignificanceIsThatOfTheExactUTest(t *testing.T) {
	for _, c := range [][2][]float64{
		{{1, 2, 3, 4}, {5, 6, 7, 8}}, {{1, 2, 3, 4, 9}, {5, 6, 7, 8}}, {{1, 3, 5, 7}, {2, 4, 6, 8}}, {{1, 2, 3}, {4, 5, 6}},
		{{3, 1, 2, 9, 10}, {4, 5, 6, 7, 8}}, {{1, 1, 2, 3, 3}, {2, 3, 4, 5, 5}}, {{1, 1, 1, 1}, {2, 2, 2, 2}}, {{7}, {8}},
	} {
		got := compareSamples(c[0], c[1])
		if want := exactP(c[0], c[1]); math.Abs(got.P-want) > 1e-12 {
			t.Errorf("%v: p = %v, want %v", c, got.P, want)
		}
		if got.N1 != len(c[0]) || got.N2 != len(c[1]) {
			t.Errorf("%v: n = %d+%d", c, got.N1, got.N2)
		}
	}
}

func TestAChangeIsGivenOnlyWhereItIsSignificant(t *testing.T) {
	series := func(from float64, n int) (xs []float64) {
		for i := range n {
			xs = append(xs, from+float64(i)/100)
		}
		return xs
	}
	for _, test := range []struct {
		a, b []float64
		want string
	}{
		{series(10, 5), series(11, 5), "+9.98 % (p=0.008 n=5)"},
		{series(11, 5), series(10, 5), "-9.07 % (p=0.008 n=5)"},
		{series(10, 3), series(11, 3), "~ (p=0.100 n=3)"}, // as far apart as can be, and still too few
		{series(10, 5), series(10.001, 6), "~ (p=0.429 n=5+6)"},
		{series(10, 40), series(20, 40), "+98.09 % (p<0.001 n=40)"},
		{series(10, 200), series(13, 200), "+27.29 % (p<0.001 n=200)"}, // the normal approximation
		{[]float64{5, 5, 5, 5}, []float64{5, 5, 5, 5}, "~ (p=1.000 n=4)"},
		{[]float64{7}, []float64{9}, "~ (p=1.000 n=1)"},
	} {
		if got := compareSamples(test.a, test.b).String(); got != test.want {
			t.Errorf("%v and %v: %s, want %s", test.a, test.b, got, test.want)
		}
	}
	if p := compareSamples(series(10, 3), series(11, 3)).percent(); p != "" {
		t.Errorf("a change of %s %% in CSV without significance", p)
	}
}

func TestComparingLeavesTheSamplesAsTheyWere(t *testing.T) {
	a, b := []float64{3, 1, 2}, []float64{6, 5, 4}
	compareSamples(a, b)
	middle(a)
	if !slices.Equal(a, []float64{3, 1, 2}) || !slices.Equal(b, []float64{6, 5, 4}) {
		t.Errorf("%v %v", a, b)
	}
}

// storm is two files with a row of storm each, which a test may change.
func storm(t *testing.T, change func(a, b *result.Bench)) *comparison {
	t.Helper()
	row := func() result.Bench {
		return result.Bench{Workload: "storm", Protocol: "generations", Scope: result.ScopeProcess, Contenders: 16, Keys: 1, Trials: 40,
			Expected: 40, Executed: 40, LatencyUS: &result.Latency{N: 40, P50: 30, Samples: []float64{30, 31, 32, 33, 34}}}
	}
	a, b := row(), row()
	b.LatencyUS.Samples = []float64{40, 41, 42, 43, 44}
	change(&a, &b)
	file := func(b result.Bench) *result.File {
		return &result.File{Targets: []result.Target{{Name: "t", Bench: []result.Bench{b}}}}
	}
	return comparisons([]Named{{"a", file(a)}, {"b", file(b)}})[0]
}

// marks are those of the counts and of the times.
func (c *comparison) marks() string {
	var marks []string
	for _, s := range c.sections {
		for _, row := range s.rows {
			marks = append(marks, row.sides[1].mark)
		}
	}
	return strings.Join(marks, " | ")
}

func TestRowsOfDifferentExperimentsAreNotCompared(t *testing.T) {
	for _, test := range []struct {
		change func(a, b *result.Bench)
		want   string
	}{
		{func(_, b *result.Bench) {}, " | +31.25 % (p=0.008 n=5)"},
		{func(_, b *result.Bench) { b.Scope = result.ScopeHost }, "scope process against host"},
		{func(_, b *result.Bench) { b.Contenders = 8 }, "contenders 16 against 8"},
		{func(_, b *result.Bench) { b.Trials = 20 }, "trials 40 against 20"},
		{func(_, b *result.Bench) { b.Keys = 64 }, "keys 1 against 64"},
		{func(_, b *result.Bench) { b.Settings = "sync=off" }, "other settings"},
		{func(_, b *result.Bench) { b.Trials, b.Keys = 20, 2 }, "keys 1 against 2; trials 40 against 20"},
		{func(_, b *result.Bench) { b.Trials, b.Void = 38, 2 }, "DIFFERS: void | +31.25 % (p=0.008 n=5)"},
		{func(_, b *result.Bench) { b.Duplicates, b.Executed = 1, 41 }, "DIFFERS: duplicates | +31.25 % (p=0.008 n=5)"},
		{func(a, b *result.Bench) { a.Duplicates, b.Duplicates = 6, 7 }, "differs: duplicates | +31.25 % (p=0.008 n=5)"},
		{func(_, b *result.Bench) { b.Executed = 39 }, "differs: executed | +31.25 % (p=0.008 n=5)"},
		{func(_, b *result.Bench) { b.Missed, b.Executed = 1, 39 }, "DIFFERS: missed | +31.25 % (p=0.008 n=5)"},
		{func(_, b *result.Bench) { b.Trials, b.Void = 0, 40 }, "DIFFERS: void | only in A"},
		{func(_, b *result.Bench) { b.LatencyUS = nil }, " | only in A"},
		{func(a, _ *result.Bench) { a.LatencyUS = nil }, " | not in A"},
		{func(_, b *result.Bench) { b.LatencyUS.Samples = nil }, " | ~ (p=0.333 n=5+1)"},
	} {
		c := storm(t, test.change)
		want := test.want
		if !strings.Contains(want, "|") {
			want = fmt.Sprintf("not compared: %s | not compared: %[1]s", want)
		}
		if got := c.marks(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestASeriesIsComparedContenderByContender(t *testing.T) {
	row := func(contenders int) result.Bench {
		return result.Bench{Workload: "scale", Protocol: "generations", Contenders: contenders, Keys: 1, Trials: 1, Expected: contenders, Executed: contenders}
	}
	file := func(contenders ...int) *result.File {
		f := &result.File{Targets: []result.Target{{Name: "t"}}}
		for _, n := range contenders {
			f.Targets[0].Bench = append(f.Targets[0].Bench, row(n))
		}
		return f
	}
	c := comparisons([]Named{{"a", file(2, 4, 8)}, {"b", file(8, 4, 16)}})[0]
	var got []string
	for _, row := range c.counts("scale").rows {
		got = append(got, row.variant+": "+row.sides[1].mark)
	}
	if want := "contenders=2 keys=1: only in A, contenders=4 keys=1: , contenders=8 keys=1: , contenders=16 keys=1: not in A"; strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, ", "), want)
	}
}

func TestTargetsArePairedByNameOrBecauseThereIsNoOther(t *testing.T) {
	file := func(names ...string) *result.File {
		f := new(result.File)
		for _, n := range names {
			f.Targets = append(f.Targets, result.Target{Name: n})
		}
		return f
	}
	for _, test := range []struct {
		a, b *result.File
		want string
	}{
		{file("x"), file("y"), "x/y"},
		{file("x", "y"), file("y", "x"), "x/x y/y"},
		{file("x", "y"), file("y", "z"), "x/- y/y -/z"},
		{file(), file("z"), "-/z"},
		{file("x"), file(), "x/-"},
		{file(), file(), ""},
	} {
		var got []string
		for _, c := range comparisons([]Named{{"a", test.a}, {"b", test.b}}) {
			name := func(t *result.Target) string {
				if t == nil {
					return "-"
				}
				return t.Name
			}
			got = append(got, name(c.targets[0])+"/"+name(c.targets[1]))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%v, want %s", got, test.want)
		}
	}
}

func TestAFileComparedWithItselfIsTheSame(t *testing.T) {
	for _, name := range []string{"bench-ext4", "bench-nfs", "bench-odd", "ext4", "nfs", "odd"} {
		out := strings.ToLower(compared2(t, compareText, TextOptions{}, name, name))
		for _, word := range []string{"differs", "not compared:", "only in a", "not in a", " % (p"} {
			if strings.Contains(strings.ReplaceAll(out, "not compared: 0; in one", ""), word) {
				t.Errorf("%s: %q in\n%s", name, word, out)
			}
		}
	}
}

func TestCompareCSVIsInBaseUnits(t *testing.T) {
	records, err := csv.NewReader(strings.NewReader(compared2(t, compareCSV, TextOptions{}, "bench-ext4", "bench-ext4-later"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r[3] == "storm" && r[4] == "generations" && r[6] == "claim_p50_s" {
			if got := strings.Join(r[7:], " "); got != "3.3975e-05 2.6244999999999997e-05 -22.752023546725543 0.00033167495307218076 40 40 " {
				t.Errorf("%s", got)
			}
			return
		}
	}
	t.Error("no row of storm, generations")
}
