package survey

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/claimbench/claimbench/internal/result"
)

// TestAWorseFindingNeverMakesAVerdictBetter makes one thing worse at a time, from any state.
func TestAWorseFindingNeverMakesAVerdictBetter(t *testing.T) {
	rank := []result.Safety{isSafe, isUnproven, isUnsafe}
	changed := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		x := anything(rng)
		for range 6 {
			before := Join(x)
			what := worsen(rng, x)
			after := Join(x)
			for i := range before {
				was, is := slices.Index(rank, before[i].Verdict), slices.Index(rank, after[i].Verdict)
				if is < was {
					t.Fatalf("seed %d, %s: %s was %s because %q, and is %s because %q", seed, what,
						before[i].Name, before[i].Verdict, before[i].Because, after[i].Verdict, after[i].Because)
				}
				if is > was {
					changed++
				}
			}
		}
	}
	if changed < 300 {
		t.Errorf("only %d verdicts became worse: the test does not test", changed)
	}
}

var someKinds = []string{
	"several-winners", "taken-name-given-away", "released-name-stays-taken", "success-denied", "no-winner", "content-torn",
	"another's-object", "lock-outlives-holder", "coarse",
}

// anything is a target of which much is good.
func anything(rng *rand.Rand) *result.Target {
	x := good()
	if rng.IntN(2) == 0 {
		x = shared()
	}
	for i := range x.Findings {
		switch f := &x.Findings[i]; rng.IntN(12) {
		case 0:
			unprove(f)
		case 1:
			breakIt(rng, f)
		}
	}
	for range rng.IntN(3) {
		_, row := benched(x, []string{"storm", "takeover", "scale"}[rng.IntN(3)])
		row.Protocol = preferred[rng.IntN(len(preferred))]
		row.Contested = rng.IntN(row.Trials + 1)
	}
	return x
}

// unprove leaves a finding that could not have said anything else.
func unprove(f *result.Finding) {
	f.Verdict, f.Rounds, f.Contested, f.Kinds = result.Unproven, 12, 12, nil
}

func breakIt(rng *rand.Rand, f *result.Finding) {
	f.Verdict = result.Broken
	if f.Kinds == nil {
		f.Kinds = map[string]int{}
	}
	f.Kinds[someKinds[rng.IntN(len(someKinds))]]++
	if f.Promise == "flock" && f.Class != "no-op" {
		f.Class = []string{"no-op", "local-only"}[rng.IntN(2)]
	}
}

func worsen(rng *rand.Rand, x *result.Target) string {
	switch n := rng.IntN(10); {
	case n == 0 && len(x.Bench) > 0:
		return worsenRow(rng, &x.Bench[rng.IntN(len(x.Bench))])
	case n == 1:
		x.Scope = result.ScopeHost
		return "a wider scope"
	case n == 2:
		i := rng.IntN(len(x.Findings))
		if f := x.Findings[i]; f.Verdict == result.Holds {
			x.Findings = slices.Delete(x.Findings, i, i+1)
			return f.Promise + " not tested"
		}
	}
	f := &x.Findings[rng.IntN(len(x.Findings))]
	worsenFinding(rng, f)
	return f.Promise + " now " + string(f.Verdict)
}

func worsenFinding(rng *rand.Rand, f *result.Finding) {
	switch how := rng.IntN(4); {
	case f.Verdict == result.Unsupported, f.Verdict == result.Hung:
	case how == 0 && f.Verdict == result.Holds:
		unprove(f)
	case how == 1 && f.Verdict != result.Broken:
		f.Verdict = []result.Verdict{result.Unsupported, result.Hung}[rng.IntN(2)]
	case how == 2 && f.Verdict == result.Broken:
		f.Rounds, f.Contested = 0, 0
	case how == 3 && f.Verdict == result.Broken:
		f.Control = &result.Control{Rounds: 50, Contested: 40}
	default:
		breakIt(rng, f)
	}
}

func worsenRow(rng *rand.Rand, r *result.Bench) string {
	switch how := rng.IntN(5); {
	case r.Control:
		r.Duplicates, r.Missed, r.Blocked, r.Illegal = 0, 0, 0, 0
		return r.Workload + ": control not flagged"
	case how == 0:
		r.Duplicates++
	case how == 1:
		r.Missed++
	case how == 2:
		r.Blocked++
	case how == 3:
		r.Contested /= 2
	case r.Violations() == 0:
		r.Void, r.Trials, r.Contested = r.Trials+r.Void, 0, 0
	}
	return r.Workload + ": worse row of " + r.Protocol
}
