package explore

import (
	"testing"

	"github.com/claimbench/claimbench/engine"
)

// BenchmarkExplore reports operations of the seam explored per second on one
// processor, with nothing known beforehand.
func BenchmarkExplore(b *testing.B) {
	for _, name := range []string{"generations", "generations-linked", "quarantine"} {
		b.Run(name, func(b *testing.B) {
			spec, _ := engine.Find(name)
			operations, states := 0, 0
			for b.Loop() {
				r := Explore(spec, Scenario{Contenders: 2, Deaths: 2, Ticks: 2, Stale: true})
				operations += r.Operations
				states += r.States
			}
			b.ReportMetric(float64(operations)/b.Elapsed().Seconds(), "operations/s")
			b.ReportMetric(float64(states)/float64(b.N), "states/op")
		})
	}
}
