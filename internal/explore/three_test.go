package explore

import (
	"os"
	"testing"
	"time"
)

// TestThreeContenders explores three contenders, two deaths and three ticks.
// It takes minutes: the bound of preemptions keeps it that short.
func TestThreeContenders(t *testing.T) {
	if os.Getenv("CLAIMBENCH_THREE") == "" {
		t.Skip("takes minutes; CLAIMBENCH_THREE=1 runs it")
	}
	for _, name := range []string{"generations", "generations-linked"} {
		for bound := 1; bound <= 2; bound++ {
			spec, began := protocol(t, name), time.Now()
			r := Explore(spec, Scenario{Contenders: 3, Deaths: 2, Ticks: 3, Preemptions: bound, States: 60_000_000})
			t.Logf("%s, at most %d preemptions: %d states, %.2g schedules, %d operations, %v, cut %v", name, bound, r.States, r.Schedules, r.Operations, time.Since(began), r.Cut)
			for _, f := range r.Found {
				t.Errorf("%s: %v: %s: %v", name, f.Kind, f.What, f.Schedule)
			}
		}
	}
}
