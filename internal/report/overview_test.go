package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

func overview(t *testing.T, files []Published, missing ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := Overview(&out, files, missing); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func publishedAs(t *testing.T, names ...string) []Published {
	t.Helper()
	var files []Published
	for i, f := range load(t, names...) {
		files = append(files, Published{Named: Named{names[i], f}})
	}
	return files
}

// fromTheLab makes a result one of the lab, of which something is expected.
func fromTheLab(f Published) Published {
	f.File.Lab, f.About = f.Name, "a share"
	f.Expected = []Expected{
		{Name: "excl-create", Claim: "open(2): exclusive"},
		{Name: "mkdir", Verdict: "broken or holds", Because: "the server | replies late", Claim: "nothing"},
		{Name: "flock", Claim: "flock(2): excludes"},
		{Name: "generations", Verdict: "safe", Because: "the server decides"},
	}
	return f
}

func TestOverview(t *testing.T) {
	files := publishedAs(t, "bench-ext4", "bench-nfs", "bench-odd", "ext4", "empty", "nfs")
	files[1], files[5] = fromTheLab(files[1]), fromTheLab(files[5])
	files[1].Deviations = []string{"bench-nfs: generations: expected safe, found unsafe: an exclusive create had two winners"}
	files[5].Unproven = []string{"nfs: generations: expected safe: no budget was left"}
	files[4].File.Lab, files[4].File.Incomplete = "empty", "the survey has refused the routes: one of them is elsewhere"
	golden(t, "overview.md", []byte(overview(t, files, "xfs", "smb-none")))
}

func TestThePageOfAPublishedResult(t *testing.T) {
	f := fromTheLab(publishedAs(t, "bench-nfs")[0])
	f.Deviations = []string{"bench-nfs: generations: expected safe, found unsafe"}
	var out bytes.Buffer
	if err := MarkdownPublished(&out, &f); err != nil {
		t.Fatal(err)
	}
	golden(t, "published.md", out.Bytes())
}

func TestTheOverviewOfResultsWithoutABenchSaysSo(t *testing.T) {
	out := overview(t, publishedAs(t, "ext4", "nfs"))
	for _, want := range []string{"No result here has this workload yet.", "No result here judges protocols yet.", "- **INCOMPLETE: nfs: "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for _, not := range []string{"Not as expected", "without a result", "What manuals say"} {
		if strings.Contains(out, not) {
			t.Errorf("%q is in\n%s", not, out)
		}
	}
}

func TestEveryPromiseHasItsPlaceInTheTablesOfTheOverview(t *testing.T) {
	var want []string
	for _, p := range probes.All {
		want = append(want, p.Name)
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(slices.Concat(overviewGroups...))); !slices.Equal(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

func TestMarksOfPromises(t *testing.T) {
	row := overviewRow{place: place{target: &result.Target{Scope: result.ScopeClient, Findings: []result.Finding{
		{Promise: "a", Verdict: result.Holds, Scope: result.ScopeClient, Rounds: 1300, Contested: 1200},
		{Promise: "b", Verdict: result.Broken, Scope: result.ScopeClient, Rounds: 9, Contested: 9, Violations: 4, Class: "local-only"},
		{Promise: "c", Verdict: result.Unsupported, Scope: result.ScopeProcess, Errnos: map[string]int{"EINVAL": 3}},
		{Promise: "d", Verdict: result.Unproven, Scope: result.ScopeClient},
		{Promise: "e", Verdict: result.Hung, Scope: result.ScopeClient, Rounds: 1},
		{Promise: "f", Verdict: result.Holds, Scope: result.ScopeClient, Rounds: 5, Contested: 5, Class: "enforced"},
	}}}}
	for name, want := range map[string]string{
		"a": "✓ 0/1200", "b": "**✗ 4/9** local-only", "c": "∅ EINVAL (process)", "d": "?", "e": "hung", "f": "✓ 0/5", "g": "-",
	} {
		if got := row.promise(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestCellsOfForty(t *testing.T) {
	target := &result.Target{Bench: []result.Bench{
		{Workload: "forty", Protocol: "unguarded", Control: true, Trials: 20, Expected: 20, Executed: 800, Duplicates: 780, Contested: 1},
		{Workload: "forty", Protocol: "check-then-create", Control: true, Trials: 20, Expected: 20, Executed: 20, Contested: 19},
		{Workload: "forty", Protocol: "excl", Trials: 18, Void: 2, Expected: 18, Executed: 17, Missed: 1, Contested: 9},
		{Workload: "forty", Protocol: "flock-key", Void: 3},
		{Workload: "forty", Protocol: "flock-dir"},
		{Workload: "storm", Protocol: "generations", Trials: 1, Expected: 1, Executed: 1},
	}}
	for name, want := range map[string]string{
		"unguarded": "**800/20**", "check-then-create": "20/20 (silent)", "excl": "17/18 (1 missed)", "flock-key": "3 void",
		"flock-dir": "not judged", "generations": "-",
	} {
		if got := fortyOf(target, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := fortyTrials(target) + ", " + fortyContested(target); got != "0 to 20, 50.0 %" {
		t.Error(got)
	}
}

func TestAVerdictOfAnotherScopeThanTheTargetsNamesIt(t *testing.T) {
	target := &load(t, "bench-ext4")[0].Targets[0]
	if got := verdictOf(target, "generations"); got != "safe" {
		t.Errorf("%q", got)
	}
	target.Scope = "client"
	if got := verdictOf(target, "generations"); got != "safe (process)" {
		t.Errorf("%q", got)
	}
	if got := verdictOf(target, "unknown"); got != "-" {
		t.Errorf("%q", got)
	}
}
