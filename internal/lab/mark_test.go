package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimbench/claimbench/internal/result"
)

const ms = int64(1e6)

func TestTrialsThatAFaultOverlapsAreMarked(t *testing.T) {
	for _, c := range []struct {
		name  string
		trial result.TrialTime
		want  bool
	}{
		{"before", result.TrialTime{Begin: 10, End: 99}, false},
		{"into it", result.TrialTime{Begin: 10, End: 100}, true},
		{"within", result.TrialTime{Begin: 110, End: 120}, true},
		{"around it", result.TrialTime{Begin: 10, End: 900}, true},
		{"out of it", result.TrialTime{Begin: 200, End: 300}, true},
		{"after", result.TrialTime{Begin: 201, End: 300}, false},
		{"in one that lasts", result.TrialTime{Begin: 5000, End: 6000}, true},
	} {
		target := result.Target{Bench: []result.Bench{{Trials: 2, Times: []result.TrialTime{{Begin: 1, End: 2}, c.trial}}}}
		mark(&target, []result.Fault{{Begin: 100, End: 200}, {Begin: 4000}})
		b := target.Bench[0]
		if b.Times[1].UnderFault != c.want || (b.UnderFault == 1) != c.want || b.Times[0].UnderFault || len(target.Faults) != 2 {
			t.Errorf("%s: %+v", c.name, b)
		}
	}
}

// In a workload whose keys wait for leases to expire the time until something is done says nothing of a fault.
func TestRecoveryIsOfStormAlone(t *testing.T) {
	row := result.Bench{Trials: 1, Times: []result.TrialTime{{Begin: 10, End: 900, Done: 800}}}
	target := result.Target{Bench: []result.Bench{row, row}}
	target.Bench[0].Workload, target.Bench[1].Workload = "storm", "takeover"
	mark(&target, []result.Fault{{Begin: 100, End: 200}})
	if target.Bench[0].RecoveryMS == nil || target.Bench[1].RecoveryMS != nil {
		t.Errorf("%+v", target.Bench)
	}
}

func TestAFaultThatNeverHappenedIsNoticed(t *testing.T) {
	recurring, lasting := Fault{Kind: "cut", For: 5e9, Every: 30e9}, Fault{Kind: "latency", For: 2e7}
	for _, c := range []struct {
		fault Fault
		all   []result.Fault
		want  bool
	}{
		{recurring, nil, false},
		{recurring, []result.Fault{{Fault: "cut 5s every 30s", Begin: 1}}, false},
		{recurring, []result.Fault{{Fault: "restart 5s every 30s", Begin: 1, End: 2}}, false},
		{recurring, []result.Fault{{Fault: "cut 5s every 30s", Begin: 1}, {Fault: "cut 5s every 30s", Begin: 3, End: 4}}, true},
		{lasting, []result.Fault{{Fault: "latency 20ms", Begin: 1}}, true},
	} {
		if got := happened(c.fault, c.all); got != c.want {
			t.Errorf("%v in %+v: %v", c.fault, c.all, got)
		}
	}
}

// Two faults of 100 ms, and what a row says of the time after them.
func TestRecoveryIsFromTheEndOfAFaultToTheFirstKeyDone(t *testing.T) {
	faults := []result.Fault{{Begin: 100 * ms, End: 200 * ms}, {Begin: 1100 * ms, End: 1200 * ms}, {Begin: 1}}
	trial := func(begin, done int64) result.TrialTime {
		return result.TrialTime{Begin: begin * ms, End: (done + 10) * ms, Done: done * ms}
	}
	for _, c := range []struct {
		name   string
		trials []result.TrialTime
		want   []float64
	}{
		{"no trial", nil, nil},
		{"done before", []result.TrialTime{trial(10, 150)}, nil},
		{"begun after", []result.TrialTime{trial(300, 350)}, nil},
		{"never done", []result.TrialTime{{Begin: 10 * ms, End: 900 * ms}}, nil},
		{"done after", []result.TrialTime{trial(10, 250)}, []float64{50}},
		{"the first of several", []result.TrialTime{trial(10, 450), trial(20, 230), trial(205, 210)}, []float64{30}},
		{"the first of several, which ends first", []result.TrialTime{trial(20, 230), trial(10, 450)}, []float64{30}},
		{"each fault", []result.TrialTime{trial(10, 250), trial(1000, 1300)}, []float64{50, 100}},
		{"one trial through both", []result.TrialTime{trial(10, 1300)}, []float64{1100, 100}},
	} {
		var got []float64
		if l := recovery(c.trials, faults); l != nil {
			got = l.Samples
			if l.N != len(got) || l.Max < l.P50 {
				t.Errorf("%s: %+v", c.name, l)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
