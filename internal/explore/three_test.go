package explore

import (
	"testing"
	"time"
)

// TestThreeContenders explores three contenders and two deaths. The bound of preemptions keeps it at seconds.
func TestThreeContenders(t *testing.T) {
	if testing.Short() {
		t.Skip("takes tens of seconds")
	}
	for name, ticks := range map[string]int{"generations": 3, "generations-linked": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, began := protocol(t, name), time.Now()
			r := Explore(spec, Scenario{Contenders: 3, Deaths: 2, Ticks: ticks, Preemptions: 1})
			t.Logf("%d ticks: %d states, %d operations, %v", ticks, r.States, r.Operations, time.Since(began))
			for _, f := range r.Found {
				t.Errorf("%v: %s: %v", f.Kind, f.What, f.Schedule)
			}
		})
	}
}
