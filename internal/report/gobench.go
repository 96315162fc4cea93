package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/perf/benchfmt"

	"github.com/claimbench/claimbench/internal/result"
)

// GoBench writes the bench in the format of Go's benchmarks, which benchstat reads: one line for each trial, so
// that it can tell a difference from noise. Host, kernel, filesystem, scope and target are configuration;
// benchstat compares across those that it is told to ignore.
func GoBench(w io.Writer, files []*result.File) error {
	out := benchfmt.NewWriter(w)
	for _, u := range [][2]string{
		{"ns/op", "lower"}, {"p99-ns", "lower"}, {"takeover-ns", "lower"}, {"takeover-p99-ns", "lower"}, {"claims/s", "higher"},
	} {
		for _, about := range [][2]string{{"better", u[1]}, {"assume", "nothing"}} {
			key := benchfmt.UnitMetadataKey{Unit: u[0], Key: about[0]}
			if err := out.Write(&benchfmt.UnitMetadata{UnitMetadataKey: key, OrigUnit: u[0], Value: about[1]}); err != nil {
				return err
			}
		}
	}
	for _, p := range places(files) {
		for i := range p.target.Bench {
			if err := goBenchRow(out, p, &p.target.Bench[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func goBenchRow(out *benchfmt.Writer, p place, b *result.Bench) error {
	if b.Trials == 0 {
		return nil
	}
	for _, values := range goBenchValues(b) {
		if err := out.Write(&benchfmt.Result{Config: goBenchConfig(p, b), Name: benchfmt.Name(goBenchName(b)), Iters: 1, Values: values}); err != nil {
			return err
		}
	}
	return nil
}

// goBenchValues are the medians of the trials, one to a line, and what there is only one of on the first.
func goBenchValues(b *result.Bench) [][]benchfmt.Value {
	var lines [][]benchfmt.Value
	put := func(line int, value float64, unit string) {
		for len(lines) <= line {
			lines = append(lines, nil)
		}
		lines[line] = append(lines[line], benchfmt.Value{Value: value, Unit: unit})
	}
	for i, x := range medians(b.LatencyUS) {
		put(i, nanoseconds(x*1e3), "ns/op")
	}
	for i, x := range medians(b.TakeoverMS) {
		put(i, nanoseconds(x*1e6), "takeover-ns")
	}
	if l := b.LatencyUS; l != nil && l.P99 != nil {
		put(0, nanoseconds(*l.P99*1e3), "p99-ns")
	}
	if l := b.TakeoverMS; l != nil && l.P99 != nil {
		put(0, nanoseconds(*l.P99*1e6), "takeover-p99-ns")
	}
	for i, x := range rates(b) {
		put(i, x, "claims/s")
	}
	return lines
}

// nanoseconds drops what the change of unit adds behind the last digit.
func nanoseconds(x float64) float64 { return math.Round(x*1e3) / 1e3 }

// medians are those of single trials or, where none were kept, the median of all.
func medians(l *result.Latency) []float64 {
	switch {
	case l == nil || l.N == 0:
		return nil
	case len(l.Samples) == 0:
		return []float64{l.P50}
	}
	return l.Samples
}

// rates are those of single trials or, where none were kept, the one there is.
func rates(b *result.Bench) []float64 {
	if len(b.Rates) == 0 && b.ClaimsPerS > 0 {
		return []float64{b.ClaimsPerS}
	}
	return b.Rates
}

func goBenchConfig(p place, b *result.Bench) []benchfmt.Config {
	h := &p.file.Host
	arch := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[h.Arch]
	var config []benchfmt.Config
	for _, c := range [][2]string{
		{"goos", "linux"}, {"goarch", cmp.Or(arch, h.Arch)}, {"host", h.Name}, {"kernel", h.Kernel},
		{"fs", fsName(p.target)}, {"scope", string(b.Scope)}, {"target", p.target.Name},
	} {
		value := cmp.Or(clean(c[1]), "unknown")
		config = append(config, benchfmt.Config{Key: c[0], Value: []byte(value), File: true})
	}
	return config
}

// goBenchName is the name without "Benchmark": all that makes rows comparable. The contenders come last, lest the end of a variant be read as
// GOMAXPROCS.
func goBenchName(b *result.Bench) string {
	first, size := utf8.DecodeRuneInString(goBenchWord(b.Workload))
	name := string(unicode.ToUpper(first)) + goBenchWord(b.Workload)[size:] + "/protocol=" + goBenchWord(b.Protocol)
	if b.Variant != "" {
		name += "/variant=" + goBenchWord(b.Variant)
	}
	if b.Settings != "" {
		name += "/settings=" + goBenchWord(b.Settings)
	}
	return fmt.Sprintf("%s/keys=%d/contenders=%d", name, b.Keys, b.Contenders)
}

// goBenchWord makes one word of s that does not end where it should not.
func goBenchWord(s string) string {
	return strings.NewReplacer(" ", "_", "/", ":").Replace(clean(s))
}
