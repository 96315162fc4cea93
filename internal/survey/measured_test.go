package survey

import (
	"slices"
	"strings"
	"testing"

	"github.com/claimbench/claimbench/internal/result"
)

func TestWhatWasMeasuredOverrides(t *testing.T) {
	for _, c := range []struct {
		what    string
		change  func(x *result.Target, control, row *result.Bench)
		want    result.Safety
		because string
	}{
		{"no violation", nil, isSafe, "measured: no violation in 20 trials of takeover, 20 of them contested (scope process)"},
		{"duplicates", func(_ *result.Target, _, r *result.Bench) { r.Duplicates = 3 }, isUnsafe, "measured: 3 duplicates in 20 trials of takeover (scope process)"},
		{"one missed", func(_ *result.Target, _, r *result.Bench) { r.Missed, r.Trials = 1, 1 }, isUnsafe, "measured: 1 missed in 1 trial of takeover (scope process)"},
		{"blocked, in a variant", func(_ *result.Target, _, r *result.Bench) { r.Blocked, r.Duplicates, r.Variant = 2, 1, "64 keys" },
			isUnsafe, "measured: 1 duplicate and 2 blocked in 20 trials of takeover, 64 keys (scope process)"},
		{"blocked", func(_ *result.Target, _, r *result.Bench) { r.Blocked = 2 }, isUnsafe, "measured: 2 blocked in 20 trials of takeover (scope process)"},
		{"a history that no order explains", func(_ *result.Target, _, r *result.Bench) { r.Illegal = 1 }, isUnsafe, "measured: 1 that no order explains in 20 trials of takeover (scope process)"},
		{"before what the probes found", func(x *result.Target, _, r *result.Bench) {
			r.Duplicates = 1
			set(x, "excl-create", result.Broken, "", "several-winners")
		}, isUnsafe, "measured: 1 duplicate in 20 trials"},
		{"and not for the better", func(x *result.Target, _, _ *result.Bench) {
			set(x, "excl-create", result.Broken, "", "several-winners")
		}, isUnsafe, "excl-create is broken here"},
		{"overlaps alone", func(_ *result.Target, _, r *result.Bench) { r.Overlaps, r.Accepted = 9, 9 }, isSafe, "measured: no violation"},
		{"all void", func(_ *result.Target, _, r *result.Bench) {
			r.Trials, r.Contested, r.Void, r.Voided = 0, 0, 20, []string{"a contender died"}
		}, isUnproven, "measured: no trial of takeover could be judged, 20 are void: a contender died (scope process)"},
		{"all void, of one workload", func(x *result.Target, _, _ *result.Bench) {
			_, r := benched(x, "deaths")
			r.Trials, r.Contested, r.Void = 0, 0, 5
		}, isUnproven, "measured: no trial of deaths could be judged, 5 are void (scope process)"},
		{"too few contested", func(_ *result.Target, _, r *result.Bench) { r.Contested = 19 }, isUnproven, "measured: only 19 of 20 trials were contested; at least 20 are needed (scope process)"},
		{"enough in two workloads", func(x *result.Target, _, r *result.Bench) { r.Contested = 10; benched(x, "storm") }, isSafe,
			"measured: no violation in 40 trials of takeover and storm, 30 of them contested (scope process)"},
		{"the control was not flagged", func(_ *result.Target, k, _ *result.Bench) { k.Duplicates = 0 }, isUnproven,
			"measured: takeover did not flag unguarded, so it could not have seen a violation (control of the bench)"},
		{"the control is void", func(_ *result.Target, k, _ *result.Bench) {
			*k = result.Bench{Workload: "takeover", Protocol: "unguarded", Control: true, Void: 20}
		}, isUnproven,
			"measured: takeover did not flag unguarded"},
		{"another of the controls was flagged", func(x *result.Target, _, _ *result.Bench) {
			x.Bench = append(x.Bench, result.Bench{Workload: "takeover", Protocol: "excl", Control: true, Trials: 20, Contested: 20})
		}, isSafe, "measured: no violation"},
		{"the control of another workload", func(x *result.Target, _, _ *result.Bench) {
			k := result.Bench{Workload: "deaths", Protocol: "excl", Control: true, Trials: 20, Contested: 20}
			x.Bench = append(x.Bench, k)
		}, isSafe, "measured: no violation"},
		{"what claims cost", func(x *result.Target, _, _ *result.Bench) { k, _ := benched(x, "scale"); k.Duplicates = 0 }, isSafe, "measured: no violation"},
		{"another protocol alone", func(x *result.Target, _, _ *result.Bench) {
			x.Bench = slices.DeleteFunc(x.Bench, func(r result.Bench) bool { return r.Protocol == "generations" })
		}, isSafe, "not measured: the verdict is from the promises alone"},
	} {
		x := good()
		control, row := benched(x, "takeover")
		if c.change != nil {
			c.change(x, control, row)
		}
		if p := joined(t, x, "generations"); p.Verdict != c.want || !strings.HasPrefix(p.Because[0], c.because) {
			t.Errorf("%s: %s because %q\nwant %s because %q", c.what, p.Verdict, p.Because, c.want, c.because)
		}
	}
}

func TestTheScopeIsThatOfWhatWasMeasured(t *testing.T) {
	x := shared()
	_, row := benched(x, "storm")
	row.Scope = result.ScopeProcess
	if p := joined(t, x, "generations"); p.Verdict != isSafe || p.Scope != result.ScopeProcess {
		t.Errorf("%s (%s)", p.Verdict, p.Scope)
	}
	row.Scope = result.ScopeMount
	if p := joined(t, x, "generations"); p.Verdict != isSafe || p.Scope != result.ScopeMount {
		t.Errorf("%s (%s)", p.Verdict, p.Scope)
	}
}
