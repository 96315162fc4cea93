package report

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/claimbench/claimbench/internal/result"
)

func TestBenchReports(t *testing.T) {
	for _, test := range []struct {
		golden, format, files string
		o                     TextOptions
	}{
		{"bench-ext4.txt", "table", "bench-ext4", TextOptions{}},
		{"bench-ext4.80.txt", "table", "bench-ext4", TextOptions{Width: 80}},
		{"bench-ext4.md", "markdown", "bench-ext4", TextOptions{}},
		{"bench-odd.txt", "table", "bench-odd", TextOptions{Verbose: true}},
		{"bench-odd.md", "markdown", "bench-odd", TextOptions{}},
		{"side-storm.txt", "table", "bench-ext4 bench-nfs", TextOptions{Table: "storm"}},
		{"side-storm.80.txt", "table", "bench-ext4 bench-nfs", TextOptions{Table: "storm", Width: 80}},
		{"side-storm.md", "markdown", "bench-ext4 bench-nfs bench-ext4-later empty", TextOptions{Table: "storm"}},
		{"side-storm.csv", "csv", "bench-ext4 bench-nfs", TextOptions{Table: "storm"}},
		{"side-bench.80.txt", "table", "bench-nfs bench-odd", TextOptions{Table: "bench", Width: 80}},
		{"side-protocols.txt", "table", "bench-ext4 bench-nfs", TextOptions{Table: "protocols"}},
		{"side-protocols.80.txt", "table", "bench-ext4 bench-nfs", TextOptions{Table: "protocols", Width: 80}},
		{"side-protocols.md", "markdown", "bench-ext4 bench-nfs bench-odd ext4", TextOptions{Table: "protocols"}},
		{"side-protocols.csv", "csv", "bench-ext4 bench-nfs bench-odd ext4", TextOptions{Table: "protocols"}},
		{"side-promises.80.txt", "table", "ext4 nfs", TextOptions{Table: "promises", Width: 80}},
		{"gobench.txt", "gobench", "bench-odd bench-nfs", TextOptions{}},
	} {
		t.Run(test.golden, func(t *testing.T) {
			golden(t, test.golden, []byte(formatted(t, test.format, test.o, strings.Fields(test.files)...)))
		})
	}
}

func formatted(t *testing.T, format string, o TextOptions, files ...string) string {
	t.Helper()
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.Name == format })
	return written(t, func(w io.Writer, files []*result.File) error { return Formats[i].Write(w, files, o) }, load(t, files...)...)
}

func TestTheFixtureHasEveryWorkloadAndIsValid(t *testing.T) {
	for _, name := range []string{"bench-ext4", "bench-ext4-later", "bench-nfs", "bench-odd"} {
		data, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if err := result.Validate(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	found := workloads(&load(t, "bench-ext4")[0].Targets[0])
	var want []string
	for _, c := range captions() {
		want = append(want, c[0])
	}
	if !slices.Equal(found, want) {
		t.Errorf("workloads %v, want %v", found, want)
	}
}

func TestTheBenchFitsTheTerminal(t *testing.T) {
	for _, width := range []int{1, 20, 59} { // nobody's terminal, and no reason to fail
		formatted(t, "table", TextOptions{Width: width}, "bench-ext4")
		compared2(t, compareText, TextOptions{Width: width}, "bench-ext4", "bench-nfs")
	}
	for width := 80; width <= 240; width += 8 {
		for what, out := range map[string]string{
			"report":    formatted(t, "table", TextOptions{Width: width}, "bench-ext4"),
			"storm":     formatted(t, "table", TextOptions{Width: width, Table: "storm"}, "bench-ext4", "bench-nfs"),
			"protocols": formatted(t, "table", TextOptions{Width: width, Table: "protocols"}, "bench-ext4", "bench-nfs"),
			"promises":  formatted(t, "table", TextOptions{Width: width, Table: "promises"}, "ext4", "nfs"),
			"compare":   compared2(t, compareText, TextOptions{Width: width}, "bench-ext4", "bench-ext4-later"),
			"itself":    compared2(t, compareText, TextOptions{Width: width}, "bench-ext4", "bench-ext4"),
		} {
			for line := range strings.Lines(out) {
				if n := columnsOf(strings.TrimRight(line, "\n")); n > width {
					t.Fatalf("%s: %d of %d columns: %s", what, n, width, line)
				}
			}
		}
	}
}

func TestTheVerdictOnProtocolsComesBeforeTheBenchAndThatBeforeThePromises(t *testing.T) {
	for _, format := range []string{"table", "markdown"} {
		out := formatted(t, format, TextOptions{}, "bench-ext4")
		at := -1
		for _, text := range []string{"/srv/work (ext4): generations", "unproven (process)", "forty: ", "peers: ", "rename-dir-occupied  ", "fired 77/190"} {
			text = strings.TrimSuffix(text, "  ")
			next := strings.Index(out[at+1:], text)
			if text == "rename-dir-occupied" {
				next = strings.LastIndex(out[at+1:], text)
			}
			if next < 0 {
				t.Fatalf("%s: %q is not behind what comes before it", format, text)
			}
			if text != "rename-dir-occupied" {
				at += next + 1
			}
		}
	}
}

// cell is what a column of a workload's row says.
func cell(t *testing.T, b result.Bench, column string) string {
	t.Helper()
	for _, c := range benchColumns() {
		if c.name == column {
			return c.cell(benchRow{Bench: &b})
		}
	}
	t.Fatalf("no column %s", column)
	return ""
}

func TestBenchCellsSayWhatTheEvidenceIs(t *testing.T) {
	p99, slope := 0.0012, -0.004
	full := result.Bench{Trials: 40, Expected: 640, Executed: 1253, Duplicates: 613, Contested: 39,
		LatencyUS: &result.Latency{N: 40, P50: 12.5, P99: &p99, Max: 99}, TakeoverMS: &result.Latency{N: 3, P50: 210, Max: 2200}, ClaimsPerS: 12345, Exponent: &slope}
	for _, test := range []struct {
		name   string
		b      result.Bench
		column string
		want   string
	}{
		{"executed of expected", full, "executed", "1 253/640"},
		{"void trials are no pass", result.Bench{Void: 10}, "duplicates", "-"},
		{"nor is their missing", result.Bench{Void: 10}, "missed", "-"},
		{"nor executed", result.Bench{Void: 10}, "executed", "-"},
		{"trials without the void", result.Bench{Trials: 38, Void: 2}, "trials", "38"},
		{"void", result.Bench{Trials: 38, Void: 2}, "void", "2"},
		{"no void", result.Bench{Trials: 38}, "void", "-"},
		{"no fault", result.Bench{Trials: 38, Times: make([]result.TrialTime, 38)}, "under fault", "0"},
		{"nobody looked for faults", result.Bench{Trials: 38}, "under fault", "-"},
		{"under faults", result.Bench{Trials: 38, Times: make([]result.TrialTime, 38), UnderFault: 12}, "under fault", "12"},
		{"recoveries", result.Bench{Trials: 38, RecoveryMS: &result.Latency{N: 3, P50: 10500, Max: 14000}}, "recoveries", "3"},
		{"recovery", result.Bench{Trials: 38, RecoveryMS: &result.Latency{N: 3, P50: 10500, Max: 14000}}, "recovery p50", "10.5 s"},
		{"longest recovery", result.Bench{Trials: 38, RecoveryMS: &result.Latency{N: 3, P50: 10500, Max: 14000}}, "recovery max", "14 s"},
		{"no recovery", result.Bench{Trials: 38}, "recovery max", "-"},
		{"contested", full, "contested", "97.5 %"},
		{"p50", full, "claim p50", "12.5 µs"},
		{"p99", full, "claim p99", "1.2 ns"},
		{"no p99", result.Bench{Trials: 1, LatencyUS: &result.Latency{N: 1, P50: 1}}, "claim p99", "-"},
		{"no latency", result.Bench{Trials: 1}, "claim p50", "-"},
		{"take-over", full, "take-over p50", "210 ms"},
		{"slowest take-over", full, "take-over max", "2.2 s"},
		{"rate", full, "claims/s", "12 345"},
		{"no rate", result.Bench{}, "claims/s", "-"},
		{"growth", full, "growth", "-0.00"},
		{"no bound with a duplicate", full, "95 % bound", "-"},
		{"bound", result.Bench{Trials: 60, Contested: 59}, "95 % bound", "≤ 0.05"},
		{"no bound without contest", result.Bench{Trials: 60}, "95 % bound", "-"},
		{"fence", result.Bench{Trials: 1, Refused: 19, Accepted: 1}, "late writes refused", "19/20"},
		{"no fence", result.Bench{Trials: 1}, "late writes refused", "-"},
		{"protocol", result.Bench{Protocol: "x", Trials: 1}, "protocol", "x"},
		{"control", result.Bench{Protocol: "x", Control: true, Trials: 1, Missed: 1}, "protocol", "x (control)"},
		{"a blocked control", result.Bench{Protocol: "x", Control: true, Trials: 1, Blocked: 1}, "protocol", "x (control)"},
		{"silent control", result.Bench{Protocol: "x", Control: true, Trials: 1, Overlaps: 1}, "protocol", "x (control, NOT FLAGGED)"},
		{"void control", result.Bench{Protocol: "x", Control: true}, "protocol", "x (control, NOT JUDGED)"},
	} {
		if got := cell(t, test.b, test.column); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestWhatNobodyMayMissIsLoud(t *testing.T) {
	for _, format := range []string{"table", "markdown"} {
		for _, o := range []TextOptions{{}, {Table: "storm"}} {
			out := formatted(t, format, o, "bench-odd")
			for _, want := range []string{
				"CONTROL NOT FLAGGED: unguarded", "is known to be wrong, and nothing went wrong in 10 trials",
				"NOT JUDGED: check-then-create (control)", "NOT JUDGED: excl", "10 trials void: no reason was recorded.",
				"2 of 10 trials void: one", "in trial 3: Both",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("%s %s: %q is not in\n%s", format, o.Table, want, out)
				}
			}
		}
		if out := formatted(t, format, TextOptions{}, "bench-ext4"); strings.Contains(out, "NOT FLAGGED") || strings.Contains(out, "NOT JUDGED") {
			t.Errorf("%s: a false alarm in\n%s", format, out)
		}
	}
}

func TestPeersAreMeasuredByGenerations(t *testing.T) {
	target := &load(t, "bench-ext4")[0].Targets[0]
	ratios := map[string][2]string{}
	for _, b := range rowsOf(target, "peers") {
		ratios[b.Protocol+" "+b.Variant] = [2]string{p50Ratio(b), rateRatio(b)}
	}
	for name, want := range map[string][2]string{
		"generations ": {"1×", "1×"}, "gofrs/flock ": {"0.629×", "1.59×"}, "sqlite write-ahead log": {"11.9×", "0.0837×"},
	} {
		if ratios[name] != want {
			t.Errorf("%s: %v, want %v", name, ratios[name], want)
		}
	}
	for _, b := range rowsOf(target, "storm") {
		if b.base != nil {
			t.Errorf("storm, %s: has a base", b.Protocol)
		}
	}
	for i := range target.Bench {
		if b := &target.Bench[i]; b.Workload == "peers" && b.Protocol == "generations" {
			b.Contenders++ // no longer the same work
		}
	}
	for _, b := range rowsOf(target, "peers") {
		if b.Protocol != "generations" && b.base != nil {
			t.Errorf("%s is measured by other work", b.Protocol)
		}
	}
}

func TestNothingInABenchSteersTheTerminal(t *testing.T) {
	outs := []string{
		formatted(t, "table", TextOptions{Verbose: true}, "bench-odd"), formatted(t, "markdown", TextOptions{}, "bench-odd"),
		formatted(t, "gobench", TextOptions{}, "bench-odd"),
		compared2(t, compareText, TextOptions{}, "bench-odd", "bench-odd"), compared2(t, compareMarkdown, TextOptions{}, "bench-odd", "bench-ext4"),
	}
	for _, table := range []string{"bench", "protocols", "promises"} {
		for _, width := range []int{0, 80} {
			outs = append(outs, formatted(t, "table", TextOptions{Table: table, Width: width}, "bench-odd", "odd"))
		}
		outs = append(outs, formatted(t, "markdown", TextOptions{Table: table}, "bench-odd", "odd"))
	}
	for _, out := range outs {
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q in the output: ...%q...", out[i], out[max(0, i-20):i+10])
		}
	}
}

// A bar in a cell must not begin another.
func TestRowsOfMarkdownHaveTheCellsOfTheirHead(t *testing.T) {
	outs := []string{formatted(t, "markdown", TextOptions{}, "bench-odd"), compared2(t, compareMarkdown, TextOptions{}, "bench-odd", "bench-ext4")}
	for _, table := range []string{"bench", "protocols", "promises"} {
		outs = append(outs, formatted(t, "markdown", TextOptions{Table: table}, "bench-odd", "bench-nfs", "odd"))
	}
	for _, out := range outs {
		cells := 0
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "|") {
				cells = 0
				continue
			}
			n := strings.Count(strings.ReplaceAll(strings.ReplaceAll(line, `\\`, ""), `\|`, ""), "|")
			if cells != 0 && n != cells {
				t.Errorf("%d bars, its head has %d: %s", n, cells, line)
			}
			cells = n
		}
	}
}

func TestEveryTableReturnsTheErrorOfItsWriter(t *testing.T) {
	for _, f := range Formats {
		for _, table := range []string{"", "storm", "protocols"} {
			if err := f.Write(full{}, load(t, "bench-nfs"), TextOptions{Table: table}); !errors.Is(err, errFull) {
				t.Errorf("%s %s: error %v", f.Name, table, err)
			}
		}
	}
	files := []Named{{"a", load(t, "bench-nfs")[0]}, {"b", load(t, "bench-nfs")[0]}}
	for _, f := range CompareFormats {
		if err := f.Write(full{}, files, TextOptions{}); !errors.Is(err, errFull) {
			t.Errorf("compare %s: error %v", f.Name, err)
		}
	}
	if err := Overview(full{}, []Published{{Named: files[0]}}, nil); !errors.Is(err, errFull) {
		t.Errorf("overview: error %v", err)
	}
	if err := MarkdownPublished(full{}, &Published{Named: files[0]}); !errors.Is(err, errFull) {
		t.Errorf("page: error %v", err)
	}
}

func TestTheBenchIsDeterministic(t *testing.T) {
	var first [][]byte
	for range 10 {
		var outs [][]byte
		for _, f := range Formats {
			outs = append(outs, []byte(formatted(t, f.Name, TextOptions{Verbose: true}, "bench-ext4", "bench-odd")))
		}
		for _, f := range CompareFormats {
			outs = append(outs, []byte(compared2(t, f.Write, TextOptions{}, "bench-ext4", "bench-nfs")))
		}
		if first == nil {
			first = outs
		}
		if !slices.EqualFunc(first, outs, bytes.Equal) {
			t.Fatal("differs from one time to the next")
		}
	}
}
