package probes

import (
	"testing"
	"time"
)

// What is late, but not very, breaks nothing, and is told.
func TestALateSightIsInTheFigures(t *testing.T) {
	b := smallBench(t, 4, newFaulty(t, 2, "negative=cached,for=200ms")...)
	b.Time = time.Second
	f := insist(t, b, "visibility", holds)
	if f.Verdict != holds || f.Figures["slowest_us"] < 1e3 || len(f.Warnings) == 0 || f.Figures["within_a_route_max_us"] > 0 {
		t.Errorf("%s, %v", describe(&f), f.Figures)
	}
	for _, name := range []string{"created_seen_by_stat_after_an_earlier_look_max_us", "directory_made_max_us"} {
		if f.Figures[name] < 1e3 {
			t.Errorf("%s is %v", name, f.Figures[name])
		}
	}
	if late := f.Figures["created_seen_by_stat_max_us"]; late > 0 {
		t.Errorf("without an earlier look there is nothing to be late: %v µs", late)
	}
}
