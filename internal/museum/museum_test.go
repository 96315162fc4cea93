package museum

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/result"
)

func TestAFindingThatDiffersIsTold(t *testing.T) {
	x := &Exhibit{Verdict: result.Broken, Class: "local-only", Violations: []string{"a", "b"}, Reason: "two", Warning: "hash"}
	as := func(change func(*result.Finding)) *result.Finding {
		f := &result.Finding{Verdict: result.Broken, Class: "local-only", Reason: "two winners", Warnings: []string{"-", "put a hash in"}, Advice: "-", Kinds: map[string]int{"a": 1, "b": 2}}
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
		{func(f *result.Finding) { f.Warnings = f.Warnings[:1] }, `no warning says "hash": ["-"]`},
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

// What a probe says of an exhibit has to be what a result file may say.
func TestEveryClassIsOneOfAResultFile(t *testing.T) {
	file := &result.File{Schema: result.Schema, Tool: result.Tool{Version: "v", Go: "go"}, Started: time.Now().UTC(), Targets: []result.Target{{
		Name: "x", Scope: result.ScopeProcess, Routes: []result.Route{{Path: "/x", FSType: "tmpfs"}},
		Findings: []result.Finding{{Promise: "link", Verdict: result.Holds, Scope: result.ScopeProcess}},
	}}}
	for _, x := range slices.Concat(Planted, Reported) {
		if x.Class == "any" {
			continue
		}
		file.Targets[0].Findings[0].Class = x.Class
		data, err := file.Encode()
		if err == nil {
			err = result.Validate(data)
		}
		if err != nil {
			t.Fatalf("%s: %v", x.Name, err)
		}
	}
}

var source = regexp.MustCompile(`^[\w.-]+/[\w.-]+#[1-9][0-9]*$`)

func TestEveryExhibitHasItsStory(t *testing.T) {
	names, kinds := map[string]bool{}, map[string]int{}
	for _, x := range Reported {
		if names[x.Name] {
			t.Errorf("%s is there twice", x.Name)
		}
		names[x.Name] = true
		kinds[x.Kind]++
		if !slices.ContainsFunc(Kinds, func(k Kind) bool { return k.Key == x.Kind }) {
			t.Errorf("%s: no kind %q", x.Name, x.Kind)
		}
		if len(x.Sources) == 0 || slices.ContainsFunc(x.Sources, func(s string) bool { return !source.MatchString(s) }) {
			t.Errorf("%s: sources %q", x.Name, x.Sources)
		}
		if !strings.HasSuffix(x.Story, ".") || strings.ContainsAny(x.Name+x.Story, "|`") {
			t.Errorf("%s: no sentence for a table: %q", x.Name, x.Story)
		}
		x.shownOnce(t)
	}
	// B7 is not counted: those are applications of the others.
	delete(kinds, "B7")
	if len(Reported) < 60 || len(kinds) < 15 {
		t.Errorf("%d exhibits of %d kinds: %v", len(Reported), len(kinds), kinds)
	}
}

// shownOnce says that there is a probe or a workload, and what must come out.
func (x *Exhibit) shownOnce(t *testing.T) {
	switch probe, workload := x.Probe != "", x.Workload != ""; {
	case probe == workload:
		t.Errorf("%s: probe %q, workload %q", x.Name, x.Probe, x.Workload)
	case probe && (x.Verdict == "" || x.Mounts == 0 || x.Faults == "" || x.Shows+x.Protocol+x.Right != ""):
		t.Errorf("%s: %+v", x.Name, x)
	case probe && x.Verdict == result.Broken && len(x.Violations) == 0:
		t.Errorf("%s: nothing is violated", x.Name)
	case probe && x.Verdict == result.Holds && x.Class+x.Reason+x.Warning == "":
		t.Errorf("%s: it holds, and nothing tells it from any other filesystem", x.Name)
	case workload && (x.Protocol == "" || x.Protocol == x.Right || x.Verdict != "" || x.Faults != "" && x.Mounts == 0):
		t.Errorf("%s: %+v", x.Name, x)
	case workload:
		if n := x.Shown(&result.Bench{Duplicates: 1, Missed: 1, Blocked: 1, Accepted: 1}); n != 1 {
			t.Errorf("%s shows %s %d times", x.Name, x.Shows, n)
		}
	}
}

func TestThePageIsThatOfTheExhibits(t *testing.T) {
	got, err := os.ReadFile("../../docs/museum.md")
	if err != nil || string(got) != Page() {
		t.Errorf("docs/museum.md is stale (%v); run make docs", err)
	}
}
