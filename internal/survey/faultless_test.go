package survey

import (
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/result"
)

// TestASurveyThroughTwoMountsOfAShareWithoutFaultsHolds takes the promises on which a claim alone can rest.
func TestASurveyThroughTwoMountsOfAShareWithoutFaultsHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	c, err := config.Named("quick")
	if err != nil {
		t.Fatal(err)
	}
	c.Probes = []string{"excl-create", "mkdir", "link", "flock", "rename-replace"}
	c.Workloads, c.Budget, c.ProbeTime, c.Rounds = nil, 5*time.Minute, time.Minute, 400
	f, err := Run(t.Context(), Options{Targets: [][]string{mounted(t, 2)}, Config: c, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(f.Targets[0].Findings); got != len(c.Probes) {
		t.Errorf("%d findings for %d probes", got, len(c.Probes))
	}
	for _, finding := range f.Targets[0].Findings {
		if finding.Verdict != result.Holds || finding.Scope != result.ScopeMount {
			t.Errorf("%s %s (%s): %s", finding.Promise, finding.Verdict, finding.Scope, finding.Reason)
		}
	}
}
