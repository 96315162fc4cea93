package report

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/claimbench/claimbench/internal/result"
)

// readBench reads as benchstat does, and in its units.
func readBench(t *testing.T, text string) (results []*benchfmt.Result, units benchfmt.UnitMetadataMap) {
	t.Helper()
	r := benchfmt.NewReader(strings.NewReader(text), "test")
	for r.Scan() {
		switch record := r.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Error(record)
		case *benchfmt.Result:
			results = append(results, record.Clone())
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return results, r.Units()
}

func TestBenchstatReadsEverySample(t *testing.T) {
	results, units := readBench(t, formatted(t, "gobench", TextOptions{}, "bench-ext4"))
	var got []float64
	var rates []float64
	for _, r := range results {
		if string(r.Name) != "Storm/protocol=generations/keys=1/contenders=16" {
			continue
		}
		ns, ok := r.Value("sec/op")
		if !ok {
			t.Errorf("no time in %v", r.Values)
		}
		got = append(got, ns)
		if perS, ok := r.Value("claims/s"); ok {
			rates = append(rates, perS)
		}
	}
	var want []float64
	for _, b := range load(t, "bench-ext4")[0].Targets[0].Bench {
		if b.Workload == "storm" && b.Protocol == "generations" {
			want = b.LatencyUS.Samples
		}
	}
	if len(want) != 40 || !slices.EqualFunc(got, want, func(s, us float64) bool { return s/us > 0.999999e-6 && s/us < 1.000001e-6 }) {
		t.Errorf("%v seconds\nwant %v µs", got, want)
	}
	if !slices.Equal(rates, []float64{3571}) {
		t.Errorf("claims/s %v", rates)
	}
	for unit, want := range map[string]int{"ns/op": -1, "p99-ns": -1, "takeover-ns": -1, "claims/s": 1} {
		if better := units.GetBetter(unit); better != want {
			t.Errorf("%s: better is %d", unit, better)
		}
	}
}

func TestBenchstatSeesTheConditions(t *testing.T) {
	results, _ := readBench(t, formatted(t, "gobench", TextOptions{}, "bench-odd", "bench-ext4", "bench-nfs"))
	last := results[len(results)-1]
	for key, want := range map[string]string{
		"goos": "linux", "goarch": "amd64", "host": "node9.example.net", "kernel": "6.8.0-45-generic", "fs": "nfs4 4.2", "scope": "client", "target": "/mnt/a/claims",
	} {
		if got := last.GetConfig(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if got := results[0].GetConfig("goarch"); got != "unknown" {
		t.Errorf("goarch is %q where there is none", got)
	}
}

func TestArchitecturesHaveTheNamesOfGo(t *testing.T) {
	for of, want := range map[string]string{"x86_64": "amd64", "aarch64": "arm64", "riscv64": "riscv64", "": "unknown"} {
		f := &result.File{Host: result.Host{Arch: of}, Targets: []result.Target{{Bench: []result.Bench{{Workload: "w", Trials: 1, ClaimsPerS: 1}}}}}
		if out := written(t, GoBench, f); !strings.Contains(out, "goarch: "+want+"\n") {
			t.Errorf("%s: no %s in\n%s", of, want, out)
		}
	}
}

func TestNamesForBenchstatTellExperimentsApart(t *testing.T) {
	for _, test := range []struct {
		b    result.Bench
		want string
	}{
		{result.Bench{Workload: "storm", Protocol: "excl", Keys: 1, Contenders: 16}, "Storm/protocol=excl/keys=1/contenders=16"},
		{result.Bench{Workload: "forced", Protocol: "quarantine/no-margin", Variant: "late rename-2", Keys: 1, Contenders: 2}, "Forced/protocol=quarantine:no-margin/variant=late_rename-2/keys=1/contenders=2"},
		{result.Bench{Workload: "peers", Protocol: "sqlite", Settings: "a=1, b=2", Keys: 50, Contenders: 8}, "Peers/protocol=sqlite/settings=a=1,_b=2/keys=50/contenders=8"},
		{result.Bench{Workload: "élan", Protocol: "x\ny", Keys: 1, Contenders: 2}, "Élan/protocol=x_y/keys=1/contenders=2"},
	} {
		got := goBenchName(&test.b)
		if got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
		if _, parts := benchfmt.Name(got).Parts(); strings.HasPrefix(string(parts[len(parts)-1]), "-") {
			t.Errorf("%s ends in what reads as GOMAXPROCS", got)
		}
	}
}

func TestWhatWasNotJudgedIsNoBenchmark(t *testing.T) {
	b := result.Bench{Workload: "storm", Protocol: "excl", Void: 4, ClaimsPerS: 9, LatencyUS: &result.Latency{N: 1, P50: 3}}
	f := &result.File{Targets: []result.Target{{Bench: []result.Bench{b}}}}
	if out := written(t, GoBench, f); strings.Contains(out, "Benchmark") {
		t.Error(out)
	}
}
