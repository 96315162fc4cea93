package museum

import (
	"fmt"
	"testing"

	"github.com/claimbench/claimbench/internal/result"
)

func TestAFindingThatDiffersIsTold(t *testing.T) {
	x := &Exhibit{Verdict: result.Broken, Class: "local-only", Violations: []string{"a", "b"}, Reason: "two"}
	as := func(change func(*result.Finding)) *result.Finding {
		f := &result.Finding{Verdict: result.Broken, Class: "local-only", Reason: "two winners", Advice: "-", Kinds: map[string]int{"a": 1, "b": 2}}
		change(f)
		return f
	}
	for _, c := range []struct {
		change func(*result.Finding)
		says   string
	}{
		{func(*result.Finding) {}, ""},
		{func(f *result.Finding) { f.Verdict = result.Holds }, `holds "local-only", and must be broken "local-only"`},
		{func(f *result.Finding) { f.Class = "no-op" }, `broken "no-op", and must be broken "local-only"`},
		{func(f *result.Finding) { f.Reason = "one" }, `the reason does not say "two": one`},
		{func(f *result.Finding) { f.Advice = "" }, "no advice"},
		{func(f *result.Finding) { delete(f.Kinds, "a") }, "no a"},
		{func(f *result.Finding) { f.Kinds["c"] = 1 }, `c is none of ["a" "b"]`},
	} {
		if got := x.Differs(as(c.change)); got != c.says {
			t.Errorf("got %q, want %q", got, c.says)
		}
	}
	clean := &Exhibit{Verdict: result.Holds}
	if clean.Differs(&result.Finding{Verdict: result.Holds}) != "" || clean.Differs(&result.Finding{Verdict: result.Holds, Kinds: map[string]int{"a": 1}}) == "" {
		t.Error("where nothing is violated, no violation is allowed")
	}
}

func TestNamesOfExhibitsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range Planted {
		key := fmt.Sprintf("%s: %s, %s, %d mounts, %v", x.Probe, x.Name, x.Faults, x.Mounts, x.Violations)
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
	}
}
