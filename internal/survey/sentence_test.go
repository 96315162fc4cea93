package survey

import (
	"testing"

	"github.com/claimbench/claimbench/internal/result"
)

func target(scope result.Scope, verdicts ...result.Verdict) result.Target {
	t := result.Target{Scope: scope}
	for i, v := range verdicts {
		t.Findings = append(t.Findings, result.Finding{Promise: string(rune('a' + i)), Verdict: v, Contested: 1500})
	}
	return t
}

func TestTheSentenceNamesItsScopeAndWhatDoesNotHold(t *testing.T) {
	for _, c := range []struct {
		t    result.Target
		want string
	}{
		{target(result.ScopeProcess, result.Holds, result.Holds), "Both promises hold between processes on one mount (scope process): no violation in 3 000 contested rounds."},
		{target(result.ScopeMount, result.Holds), "The promise holds between mounts of one client (scope mount): no violation in 1 500 contested rounds."},
		{target(result.ScopeProcess, result.Holds, result.Holds, result.Holds), "All 3 promises hold between processes on one mount (scope process): no violation in 4 500 contested rounds."},
		{target(result.ScopeMount, result.Unproven, result.Holds, result.Broken, result.Hung, result.Unsupported), "1 of 5 promises holds between mounts of one client (scope mount); broken: c; hung: d; unsupported: e; unproven: a."},
		{target(result.ScopeProcess), "Nothing was tested."},
		{result.Target{Scope: result.ScopeProcess, Findings: []result.Finding{{Promise: "a", Verdict: result.Holds, Rounds: 31}}}, "The promise holds between processes on one mount (scope process): no violation in 31 scripted checks."},
	} {
		if got := sentence(&c.t); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestTheDecisionFollowsTheRequiredPromises(t *testing.T) {
	for _, c := range []struct {
		what     string
		verdicts []result.Verdict
		require  []string
		want     Decision
	}{
		{"holds", []result.Verdict{result.Holds}, []string{"a"}, Safe},
		{"another is broken", []result.Verdict{result.Holds, result.Broken}, []string{"a"}, Safe},
		{"broken", []result.Verdict{result.Broken}, []string{"a"}, Unsafe},
		{"refused: nothing can rest on it", []result.Verdict{result.Unsupported}, []string{"a"}, Unsafe},
		{"hung", []result.Verdict{result.Hung}, []string{"a"}, Unsafe},
		{"unproven is no pass", []result.Verdict{result.Unproven}, []string{"a"}, Unproven},
		{"not reached is no pass", nil, []string{"a"}, Unproven},
		{"unsafe outweighs unproven", []result.Verdict{result.Unproven, result.Broken}, []string{"a", "b"}, Unsafe},
		{"nothing required", []result.Verdict{result.Broken}, nil, Safe},
	} {
		f := &result.File{Targets: []result.Target{target(result.ScopeProcess, c.verdicts...)}}
		if got := Decide(f, c.require); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
	if got := Decide(&result.File{}, nil); got != Unproven {
		t.Errorf("no target: %d", got)
	}
	two := &result.File{Targets: []result.Target{target(result.ScopeProcess, result.Holds), target(result.ScopeProcess, result.Broken)}}
	if got := Decide(two, []string{"a"}); got != Unsafe {
		t.Errorf("every target counts: %d", got)
	}
}
