package probes

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

func TestMain(m *testing.M) {
	race.Contend(slices.Concat(Ops(), DilutedOps()))
	os.Exit(m.Run())
}

// newLine starts contenders in directories, for the length of the test.
func newLine(t testing.TB, n int, hangAfter time.Duration, dirs ...string) *race.Line {
	t.Helper()
	line, err := race.Start(race.Config{Ops: slices.Concat(Ops(), DilutedOps()), Contenders: n, HangAfter: hangAfter, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := line.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := line.Enter(t.Context(), dirs...); err != nil {
		t.Fatal(err)
	}
	return line
}

func newBench(t testing.TB, n int, dirs ...string) Bench {
	t.Helper()
	return Bench{
		Line: newLine(t, n, 3*time.Second, dirs...), Routes: len(dirs), Scope: result.ScopeProcess, Contenders: []int{2, n}, Rounds: 2000,
		Time: 300 * time.Millisecond, Spare: 10 * time.Second, ScanShare: 0.25, ColdRounds: 16, ColdPause: time.Millisecond,
		MinProof: 100, HoldWait: 3 * time.Second,
	}
}

// harmless are the probes that may be run anywhere, and on one kernel.
func harmless() []Probe {
	return slices.DeleteFunc(slices.Clone(All), func(p Probe) bool { return p.Disposable || p.Hosts })
}

func TestProbesAndOperationsHaveUniqueNames(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All {
		if seen[p.Name] {
			t.Errorf("two probes are called %s", p.Name)
		}
		seen[p.Name] = true
	}
	ops := map[string]bool{}
	for _, op := range Ops() {
		if ops[op.Name] {
			t.Errorf("two operations are called %s", op.Name)
		}
		ops[op.Name] = true
	}
}

func TestEveryProbeIsDocumented(t *testing.T) {
	for _, p := range All {
		for what, text := range map[string]string{
			"promise": p.Promise, "why": p.Why, "how": p.How, "broken": p.Broken, "refused": p.Refused,
		} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is no sentence: %q", p.Name, what, text)
			}
		}
		if p.Control == "" {
			t.Errorf("%s has no positive control", p.Name)
		}
	}
}

func TestThePagesAreThoseOfTheRegistry(t *testing.T) {
	for name, want := range Docs() {
		got, err := os.ReadFile("../docs/probes/" + name)
		if err != nil || string(got) != want {
			t.Errorf("docs/probes/%s is stale (%v); run make docs", name, err)
		}
	}
	pages, err := os.ReadDir("../docs/probes")
	if err != nil || len(pages) != len(Docs()) {
		t.Errorf("%d pages in docs/probes, %d probes and an index; remove those of former probes (%v)", len(pages), len(All), err)
	}
}
