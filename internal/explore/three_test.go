package explore

import (
	"testing"
	"time"
)

// TestThreeContenders explores three contenders, two deaths and three ticks.
// The bound of preemptions keeps it at seconds.
func TestThreeContenders(t *testing.T) {
	if testing.Short() {
		t.Skip("takes tens of seconds")
	}
	for _, name := range []string{"generations", "generations-linked"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, began := protocol(t, name), time.Now()
			r := Explore(spec, Scenario{Contenders: 3, Deaths: 2, Ticks: 3, Preemptions: 1})
			t.Logf("%d states, %d operations, %v", r.States, r.Operations, time.Since(began))
			for _, f := range r.Found {
				t.Errorf("%v: %s: %v", f.Kind, f.What, f.Schedule)
			}
		})
	}
}
