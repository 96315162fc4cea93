package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claimbench/claimbench/internal/result"
)

func TestUnits(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{group(0), "0"}, {group(999), "999"}, {group(1000), "1 000"}, {group(20312), "20 312"}, {group(1234567), "1 234 567"}, {group(-123456), "-123 456"}, {group(-100), "-100"},
		{share(0, 0), "-"}, {share(0, 10), "0 %"}, {share(10, 10), "100 %"}, {share(99999, 100000), "99.9 %"}, {share(1, 100000), "< 0.1 %"}, {share(1, 1000), "0.1 %"}, {share(2, 3), "66.6 %"},
		{bound(1.475e-4), "≤ 1.5e-4"}, {bound(1.41e-4), "≤ 1.5e-4"}, {bound(9.91e-5), "≤ 1.0e-4"}, {bound(1.5e-4), "≤ 1.5e-4"}, {bound(2.4e-12), "≤ 2.4e-12"},
		{bound(0.0412), "≤ 0.042"}, {bound(0.991), "≤ 1"}, {bound(1), "≤ 1"}, {bound(0), "≤ 0"}, {bound(0.001), "≤ 0.001"}, {bound(9.99e-4), "≤ 0.001"},
		{span(0), "0 s"}, {span(1.234e-5), "12.3 µs"}, {span(9.996e-4), "1 ms"}, {span(4e-9), "4 ns"}, {span(0.25), "250 ms"}, {span(58.71), "58.7 s"}, {span(3600), "3 600 s"}, {span(999.4e-6), "999 µs"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestBoundsAreNeverRoundedDown(t *testing.T) {
	for p := 1e-9; p < 1; p *= 1.0137 {
		var shown float64
		if _, err := fmt.Sscan(strings.TrimPrefix(bound(p), "≤ "), &shown); err != nil {
			t.Fatal(err)
		}
		if shown < p || shown > p*1.11 {
			t.Errorf("%g is shown as %s", p, bound(p))
		}
	}
}

func TestFiguresTakeTheirUnitFromTheirName(t *testing.T) {
	for _, test := range []struct {
		name  string
		value float64
		want  string
	}{
		{"round_p50_us", 12.34, "round p50 12.3 µs"},
		{"granularity_ns", 4e6, "granularity 4 ms"},
		{"first_s", 2, "first 2 s"},
		{"name_max_bytes", 255, "name max 255 bytes"},
		{"claims_per_s", 12345, "claims 12 345 per s"},
		{"wins_min_share", 0.21, "wins min share 0.21"},
		{"plain", 3, "plain 3"},
	} {
		if label, text := figure(test.name, test.value); label+" "+text != test.want {
			t.Errorf("%s is %q %q, want %q", test.name, label, text, test.want)
		}
	}
}

func TestWrapBreaksAtSpacesWhereItCan(t *testing.T) {
	for _, test := range []struct {
		s     string
		width int
		want  string
	}{
		{"one two three", 0, "one two three"},
		{"one two three", 7, "one two|three"},
		{"one two three", 3, "one|two|thr|ee"},
		{"abcdefgh ij", 4, "abcd|efgh|ij"},
		{"漢字漢字", 5, "漢字|漢字"},
		{"漢字", 1, "漢|字"},
		{"", 5, ""},
		{"all 96 000 of them", 8, "all|96 000|of them"},
		{"is 97.5 % of", 7, "is|97.5 %|of"},
	} {
		if got := strings.Join(wrap(test.s, test.width), "|"); got != test.want {
			t.Errorf("%q at %d: %q, want %q", test.s, test.width, got, test.want)
		}
	}
}

func TestCleanShowsWhatWouldNotShow(t *testing.T) {
	for in, want := range map[string]string{
		"a\n\tb":         "a b",
		"\x1b[2J":        `\x1b[2J`,
		"\u202eevil":     `\u202eevil`,
		"\xff":           "\ufffd",
		"é 漢 ≤ µ":        "é 漢 ≤ µ",
		"no\u00a0gap":    "no gap",
		"\x00\x7f\u200b": `\x00\x7f\u200b`,
	} {
		if got := clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestCellsSayWhatTheEvidenceIs(t *testing.T) {
	for _, test := range []struct {
		name string
		cell func(*result.Finding) string
		f    result.Finding
		want string
	}{
		{"over contested rounds", violations, result.Finding{Verdict: result.Holds, Rounds: 20640, Contested: 20312}, "0/20 312"},
		{"a race that nobody ran", violations, result.Finding{Verdict: result.Unproven, Rounds: 40}, "-"},
		{"no race at all", violations, result.Finding{Verdict: result.Holds, Rounds: 64}, "0/64"},
		{"broken one after the other", violations, result.Finding{Verdict: result.Broken, Rounds: 64, Violations: 5}, "5/64"},
		{"broken in both ways", violations, result.Finding{Verdict: result.Broken, Rounds: 64, Contested: 4, Violations: 5}, "5/64"},
		{"nothing", violations, result.Finding{Verdict: result.Hung}, "-"},
		{"no meeting", contested, result.Finding{Verdict: result.Unproven, Rounds: 40}, "0 %"},
		{"no race", contested, result.Finding{Verdict: result.Holds, Rounds: 64}, "-"},
		{"no control", control, result.Finding{}, "-"},
		{"silent control", control, result.Finding{Control: &result.Control{Rounds: 9, Contested: 9}}, "DID NOT FIRE"},
		{"fired", control, result.Finding{Control: &result.Control{Rounds: 412, Contested: 400, Violations: 312}}, "fired 312/400"},
		{"fired in sequence", control, result.Finding{Control: &result.Control{Rounds: 10, Violations: 10}}, "fired 10/10"},
		{"no bound", upper, result.Finding{}, "-"},
		{"no figure", p50, result.Finding{}, "-"},
		{"a figure of 0", p50, result.Finding{Figures: map[string]float64{"round_p50_us": 0}}, "0 s"},
		{"class", verdict, result.Finding{Verdict: result.Broken, Scope: result.ScopeMount, Class: "no-op"}, "broken (mount), no-op"},
		{"note", note, result.Finding{Verdict: result.Broken, Reason: "r", Kinds: map[string]int{"a": 1, "b": 2}, Errnos: map[string]int{"EIO": 1}}, "b 2, a 1; EIO; r"},
		{"note of what holds", note, result.Finding{Verdict: result.Holds, Reason: "r", Errnos: map[string]int{"EEXIST": 1}}, "EEXIST"},
	} {
		if got := test.cell(&test.f); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestOnlyClassesOfLocksAreMeasuredLocks(t *testing.T) {
	target := result.Target{Findings: []result.Finding{
		{Promise: "flock", Verdict: result.Holds, Scope: result.ScopeProcess, Class: "enforced"},
		{Promise: "inode-reuse", Verdict: result.Holds, Scope: result.ScopeProcess, Class: "reused"},
	}}
	if got, want := locks(&target), "no mount option weakens them; measured: flock holds (process), enforced"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
