package calibrate

import (
	"bytes"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/claimbench/claimbench/internal/museum"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/testenv"
	"github.com/claimbench/claimbench/probes"
)

var rewrite = flag.Bool("rewrite", false, "render docs/calibration.md again")

func TestThePageIsRenderedFromTheFigures(t *testing.T) {
	const path = "../../docs/calibration"
	f, err := Load(path + ".json")
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.Encode()
	if saved, readErr := os.ReadFile(path + ".json"); err != nil || readErr != nil || !bytes.Equal(data, saved) {
		t.Errorf("%s.json is not as it is saved: %v, %v", path, err, readErr)
	}
	page, err := f.markdown()
	if err != nil {
		t.Fatal(err)
	}
	testenv.Rendered(t, path+".md", page, *rewrite)
	const readme, begin, end = "../../README.md", "<!-- begin: calibration, rendered by make calibrate -->\n", "<!-- end: calibration -->"
	digest, err := f.digest()
	if err != nil {
		t.Fatal(err)
	}
	testenv.RenderedBetween(t, readme, begin, end, string(digest), *rewrite)
}

func TestTheLeastProbabilityIsFoundWithItsPower(t *testing.T) {
	for _, c := range []struct {
		n    int
		seen float64
		want float64
	}{
		{20000, 1, 1.4978e-4}, {20000, 0.5, 2.9955e-4}, {1, 1, 0.95}, {1, 0.5, 0}, {0, 1, 0}, {100, 0, 0},
	} {
		if got := leastP(c.n, c.seen); math.Abs(got-c.want) > 1e-4*c.want {
			t.Errorf("of %d rounds, %g seen: %g, want %g", c.n, c.seen, got, c.want)
		}
	}
	p := leastP(5000, 0.4)
	if missed := math.Pow(1-p*0.4, 5000); math.Abs(missed-0.05) > 1e-9 {
		t.Errorf("missed with %g", missed)
	}
}

func TestRunsThatCaughtNothingExceedEveryQuantile(t *testing.T) {
	s := Seen{Runs: 20, Caught: 19}
	for i := range 19 {
		s.Seconds = append(s.Seconds, float64(19-i))
	}
	for _, c := range []struct {
		q, want float64
		ok      bool
	}{{0.5, 10, true}, {0.95, 19, true}, {0.96, 0, false}} {
		if v, ok := s.Quantile(s.Seconds, c.q); v != c.want || ok != c.ok {
			t.Errorf("quantile %g: %g %v, want %g %v", c.q, v, ok, c.want, c.ok)
		}
	}
	if _, ok := new(Seen).Quantile(nil, 0.5); ok {
		t.Error("of nothing there is no quantile")
	}
}

func TestWhatIsRefuted(t *testing.T) {
	for _, c := range []struct {
		caught, runs int
		want         bool
	}{{20, 20, false}, {17, 20, false}, {14, 20, true}, {1, 1, false}, {0, 1, false}, {0, 3, true}, {0, 0, false}} {
		if s := (Seen{Caught: c.caught, Runs: c.runs}); s.refuted() != c.want {
			t.Errorf("%d of %d: refuted %v", c.caught, c.runs, !c.want)
		}
	}
}

// good is a calibration that shows nothing bad.
func good() *File {
	return &File{
		Schema: Schema, Sizes: fullSizes,
		Diluted:  []Diluted{{Probe: "mkdir", Wrong: "w", P: 1e-4, Rare: Seen{Runs: 20, Caught: 19}, Contested: []int{9}, Bad: 9, BadSeen: 9, LeastP: 0.1, Least: Seen{Runs: 20, Caught: 18}}},
		Exhibits: []Exhibit{{Name: "x", Probe: "mkdir", Verdict: result.Broken, Seen: Seen{Runs: 5, Caught: 5}}, {Name: "y", Probe: "mkdir", Verdict: result.Holds, Seen: Seen{Runs: 5, Caught: 5}}},
		Good:     []Good{{Filesystem: "tmpfs", Probe: "mkdir", Runs: 5, Unproven: 1}},
		Engine:   []Engine{{Faults: "f", Protocols: []EngineProtocol{{Name: "a", Verdict: result.ProtocolSafe, Trials: 3}, {Name: "b", Verdict: result.ProtocolUnproven, Trials: 3, Duplicates: 2}}}},
	}
}

func TestProblemsAndStatus(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*File)
		status int
		says   string
	}{
		{"nothing", func(*File) {}, StatusGood, ""},
		{"two rare runs missed", func(f *File) { f.Diluted[0].Rare.Caught = 18 }, StatusBad, "MISSED: mkdir with w at 0.0001 per round: 18 of 20"},
		{"power is not kept", func(f *File) { f.Diluted[0].Least.Caught = 12 }, StatusBad, "MISSED: mkdir with w at 0.1 per round"},
		{"an alarm with nothing planted", func(f *File) { f.Diluted[0].Alarms = 1 }, StatusBad, "FALSE ALARM: mkdir"},
		{"a violation where nothing was planted", func(f *File) { f.Diluted[0].Stray = 2 }, StatusBad, "FALSE ALARM: mkdir on : 2 violations in rounds in which nothing was planted"},
		{"no bad round is seen", func(f *File) { f.Diluted[0].Bad, f.Diluted[0].BadSeen, f.Diluted[0].LeastP = 150, 0, 0 }, StatusBad, "MISSED: mkdir with w: none of 150"},
		{"nothing was measured", func(f *File) { *f = File{Schema: Schema} }, StatusPartial, ""},
		{"an exhibit is missed once", func(f *File) { f.Exhibits[0].Seen.Caught = 4 }, StatusBad, "MISSED: mkdir: x (no fault over 1 mount): 1 of 5"},
		{"an exhibit is called broken", func(f *File) { f.Exhibits[1].Seen.Caught, f.Exhibits[1].Alarms = 4, 1 }, StatusBad, "FALSE ALARM: mkdir: y"},
		{"a false alarm", func(f *File) { f.Good[0].Alarms = 1 }, StatusBad, "FALSE ALARM: mkdir on tmpfs: 1 of 5"},
		{"a duplicate escapes", func(f *File) { f.Engine[0].Protocols[0].Duplicates = 1 }, StatusBad, "ESCAPE: a is called safe on f over 1 mount"},
		{"a miss escapes", func(f *File) { f.Engine[0].Protocols[0].Missed = 1 }, StatusBad, "ESCAPE: a"},
		{"a part is missing", func(f *File) { f.Missing = []Missing{{"good", "no root"}} }, StatusPartial, ""},
		{"interrupted", func(f *File) { f.Incomplete = "interrupted" }, StatusPartial, ""},
		{"bad and missing", func(f *File) { f.Missing, f.Good[0].Alarms = []Missing{{"engine", "no root"}}, 1 }, StatusBad, "FALSE ALARM"},
	} {
		f := good()
		c.change(f)
		all := strings.Join(f.Problems(), "\n")
		if f.Status() != c.status || !strings.Contains(all, c.says) || (c.says == "") != (all == "") {
			t.Errorf("%s: status %d, want %d; problems %q, want %q", c.name, f.Status(), c.status, all, c.says)
		}
	}
}

func TestAHungVerdictIsAnAlarmToo(t *testing.T) {
	hung := &result.Finding{Verdict: result.Hung, Figures: map[string]float64{}}
	var g Good
	g.judge(hung)
	var e Exhibit
	e.judge(&museum.Exhibit{Verdict: result.Holds}, hung)
	if g.Alarms != 1 || e.Alarms != 1 {
		t.Errorf("%d and %d alarms", g.Alarms, e.Alarms)
	}
}

func TestWhereNothingCanBeToldNothingIsFound(t *testing.T) {
	for v, want := range map[result.Verdict]bool{result.Broken: true, result.Unsupported: true, result.Hung: true, result.Holds: false, result.Unproven: false} {
		if e := (Exhibit{Verdict: v}); e.mustBeFound() != want {
			t.Errorf("%s: must be found: %v", v, !want)
		}
	}
}

func TestViolationsWhereNothingWasPlantedAreNoneThatWereCaught(t *testing.T) {
	d := probes.Dilution{P: 0.5, Seed: 1}
	right := 0
	for d.Wrong(right) || d.Wrong(right+1) {
		right++
	}
	wrong := right
	for !d.Wrong(wrong) || d.Wrong(wrong+1) {
		wrong++
	}
	violated := func(w *watcher, number int) bool { return w.watch(&race.Round{Number: number}, true, true) }
	w := &watcher{dilution: d, stop: true}
	if !violated(w, right) || w.seen != 0 || w.stray != 1 {
		t.Errorf("nothing was planted: %+v", w)
	}
	if violated(w, wrong) || w.seen != 1 || w.stray != 1 || w.contested != 2 {
		t.Errorf("it was planted: %+v", w)
	}
	for _, late := range []bool{false, true} {
		w := &watcher{dilution: d, late: late}
		w.watch(&race.Round{Number: wrong}, true, false)
		violated(w, wrong+1)
		violated(w, right+1)
		if seen := map[bool]int{true: 1}[late]; w.seen != seen || w.stray != 2-seen {
			t.Errorf("in the next round, where that is late %v: %+v", late, w)
		}
	}
}

func TestPlantedRoundsAreThinnedWhereTheyAreContestedMoreOften(t *testing.T) {
	for _, c := range []struct {
		bad       int
		due, want float64
	}{{200, 100, 0.5}, {100, 200, 1}, {0, 0, 1}} {
		if d := (Diluted{Bad: c.bad, BadDue: c.due}); d.thinned() != c.want {
			t.Errorf("%d, due %g: %g, want %g", c.bad, c.due, d.thinned(), c.want)
		}
	}
}

func TestThePageSaysWhatWouldRefuteIt(t *testing.T) {
	if got := refutedBy(20); !strings.HasPrefix(got, "14 or fewer") {
		t.Error(got)
	}
	if got := refutedBy(1); got != "So few runs cannot refute it." {
		t.Error(got)
	}
}

func TestEveryFormatTellsTheProblems(t *testing.T) {
	f := good()
	f.Good[0].Alarms, f.Missing = 1, []Missing{{"good", "no root"}, {"engine", "no root"}}
	for format, want := range map[string]string{"table": "FALSE ALARM: mkdir on tmpfs", "markdown": "FALSE ALARM: mkdir on tmpfs", "json": `"alarms": 1`} {
		var out bytes.Buffer
		if err := f.Write(&out, format, 0); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
		if format != "json" && !strings.Contains(out.String(), "good, engine: no root") {
			t.Errorf("%s does not tell in a line what is missing:\n%s", format, out.String())
		}
	}
	if err := f.Write(new(bytes.Buffer), "yaml", 0); err == nil {
		t.Error("yaml is no format")
	}
}

func TestASelectionIsSpread(t *testing.T) {
	for _, c := range []struct{ n, most, want, last int }{{10, 0, 10, 9}, {10, 3, 3, 8}, {184, 10, 10, 171}, {3, 10, 3, 2}, {0, 3, 0, 0}} {
		all := make([]int, c.n)
		for i := range all {
			all[i] = i
		}
		some := spread(all, c.most)
		if len(some) != c.want || len(some) > 0 && some[len(some)-1] != c.last {
			t.Errorf("%d of %d: %v", c.most, c.n, some)
		}
	}
}

func TestPlotsAreDistinctAndMustShowSomething(t *testing.T) {
	got := plots([]museum.Exhibit{
		{Faults: "a", Mounts: 2, Verdict: result.Broken}, {Faults: "a", Mounts: 2, Verdict: result.Broken},
		{Faults: "a", Mounts: 1, Verdict: result.Holds}, {Faults: "b", Verdict: result.Unsupported}, {Faults: "c", Verdict: result.Unproven},
	})
	if want := []plot{{"a", 2}, {"b", 1}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDilutedRoundsAreAsManyAsWereAskedFor(t *testing.T) {
	for _, p := range []float64{0, 1e-3, 0.05, 0.5, 1} {
		const n = 200000
		wrong := 0
		for i := range n {
			if (probes.Dilution{P: p, Seed: 7}).Wrong(i) {
				wrong++
			}
		}
		if sd := math.Sqrt(n*p*(1-p)) + 1; math.Abs(float64(wrong)-n*p) > 5*sd {
			t.Errorf("%d of %d rounds are wrong at %g", wrong, n, p)
		}
	}
}
