package probes

import (
	"slices"
	"testing"

	"github.com/claimbench/claimbench/internal/race"
)

func TestEveryDilutedOperationIsOneOfAProbe(t *testing.T) {
	ops := slices.Concat(Ops(), DilutedOps())
	for _, d := range dilutions {
		p, ok := Find(d.probe)
		if !ok || !slices.ContainsFunc(p.Ops, func(op race.Op) bool { return op.Name == d.right }) {
			t.Errorf("%s has no operation %s", d.probe, d.right)
		}
		if n := len(slices.DeleteFunc(slices.Clone(ops), func(op race.Op) bool { return op.Name != dilutedPrefix+d.right })); n != 1 {
			t.Errorf("%d operations are %s, diluted", n, d.right)
		}
	}
	for i := range ops {
		if ops[i].Attempt == nil {
			t.Errorf("%s has no attempt", ops[i].Name)
		}
	}
}

// A violation is seen in wrong rounds, and in no others: but for an update that was lost, which the next round finds.
func TestADilutedRaceIsSeen(t *testing.T) {
	b := newBench(t, 4, t.TempDir())
	for _, d := range Dilutables() {
		name := d.Probe
		t.Run(name, func(t *testing.T) {
			b := b
			b.Contenders, b.MinProof = []int{4}, 10
			b.Dilution = Dilution{P: 0.2, Seed: 3}
			seen, elsewhere := 0, 0
			b.Watch = func(r *race.Round, _, violated bool) bool {
				switch {
				case !violated:
				case b.Dilution.Wrong(r.Number):
					seen++
				default:
					elsewhere++
				}
				return seen < 3
			}
			f := insist(t, b, name, broken)
			if f.Verdict != broken || seen == 0 || elsewhere > 0 && name != "lock-coherence" {
				t.Errorf("seen in %d wrong rounds and %d others: %s", seen, elsewhere, describe(&f))
			}
			if first := f.Figures["first_violation_s"]; first <= 0 || first > f.DurationS {
				t.Errorf("the first was seen after %g s of %g", first, f.DurationS)
			}
		})
	}
}
