package bench

import (
	"testing"

	"github.com/claimbench/claimbench/internal/result"
)

func TestASinkOfSeveralHostsRefusesTheLateWriter(t *testing.T) {
	all := []attempted{
		{Attempt: result.Attempt{Key: 1, Generation: 1, Ended: 300}, sink: sinkAccepted}, // its own host's sink knew nothing of the other
		{Attempt: result.Attempt{Key: 1, Generation: 2, Ended: 200}, sink: sinkAccepted},
		{Attempt: result.Attempt{Key: 2, Generation: 1, Ended: 100}, sink: sinkRefused},
		{Attempt: result.Attempt{Key: 3, Generation: 0, Ended: 400}, sink: sinkAccepted}, // no fencing token
		{Attempt: result.Attempt{Key: 3, Generation: 0, Ended: 300}, sink: sinkAccepted},
		{Attempt: result.Attempt{Key: 1, Generation: 3, Ended: 0}}, // never wrote
	}
	fence(all)
	for i, want := range []int64{sinkRefused, sinkAccepted, sinkAccepted, sinkAccepted, sinkAccepted, 0} {
		if all[i].sink != want {
			t.Errorf("%d: %d, expected %d", i, all[i].sink, want)
		}
	}
}
