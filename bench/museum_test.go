package bench

import (
	"testing"

	"github.com/claimbench/claimbench/internal/museum"
	"github.com/claimbench/claimbench/internal/result"
)

// What people reported of protocols: the one that failed them must be seen to fail, and the right one must not.
func TestReportedFailuresOfProtocolsShow(t *testing.T) {
	for i, x := range museum.Reported {
		if x.Workload == "" || testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(x.Workload+"/"+x.Name, func(t *testing.T) {
			t.Parallel()
			w, ok := Find(x.Workload)
			if !ok || !Known(x.Protocol) || !Known(x.Right) {
				t.Fatalf("there is no workload %s, or no protocol %s or %s", x.Workload, x.Protocol, x.Right)
			}
			routes := []string{t.TempDir()}
			if x.Mounts > 0 {
				routes = faultyMounts(t, x.Mounts, x.Faults)
			}
			o := Options{Line: lineIn(t, w.Contenders, routes...), Trials: 3, Protocols: []string{x.Protocol, x.Right}}
			if w.Name == deaths.Name {
				o.TTL = usualTTL / 2 // each death waits for it
			}
			mustShow(t, &x, o)
		})
	}
}

// mustShow goes on for a while: on a busy machine trials are void.
func mustShow(t *testing.T, x *museum.Exhibit, o Options) {
	shown, tried := 0, 0
	for again := 0; again < 6 && (shown == 0 || tried == 0); again++ {
		o.Seed++
		for name, r := range rowsOf(t, x.Workload, o) {
			if r.Protocol == x.Protocol {
				shown += x.Shown(&r)
			} else {
				tried += r.Trials
				mustNotShow(t, x, name, r)
			}
		}
	}
	if shown == 0 || tried == 0 {
		t.Errorf("%d %s of %s, in %d trials of %s", shown, x.Shows, x.Protocol, tried, x.Right)
	}
}

func mustNotShow(t *testing.T, x *museum.Exhibit, name string, r result.Bench) {
	if r.Trials > 0 {
		clean(t, name, r)
	}
	if n := x.Shown(&r); n > 0 {
		t.Errorf("%s: %d %s", name, n, x.Shows)
	}
}
