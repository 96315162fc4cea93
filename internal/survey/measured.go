package survey

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// enoughTrials is how many contested trials without a violation are evidence, over all workloads of a protocol. None
// in 20 bounds the rate of violation at 14 %.
const enoughTrials = 20

// costs is the workload that measures what claims cost. It has nothing to show of controls.
const costs = "scale"

// measured looks at what the bench saw of the protocol. An execution beside one whose lease had run out is no
// violation: no file protocol prevents it.
func (c *joint) measured() {
	trials, contested := 0, 0
	var workloads []string
	var scopes []remark
	for i := range c.t.Bench {
		r := &c.t.Bench[i]
		if r.Protocol != c.spec.Name || r.Workload == result.HostDeath && r.Violations() == 0 { // that is not asked for
			continue
		}
		c.row(r)
		trials += r.Trials
		contested += r.Contested
		scopes = append(scopes, remark{scope: r.Scope})
		if !slices.Contains(workloads, r.Workload) {
			workloads = append(workloads, r.Workload)
		}
	}
	if len(workloads) == 0 {
		c.clear = append(c.clear, remark{text: "not measured: the verdict is from the promises alone"})
		return
	}
	for _, w := range workloads {
		c.control(w)
	}
	scope := narrowest(c.t.Scope, scopes)
	if contested < enoughTrials {
		c.unproven = append(c.unproven, remark{
			fmt.Sprintf("measured: only %d of %s were contested; at least %d are needed (scope %s)", contested, plural(trials, "trial"), enoughTrials, scope),
			scope, "Repeat the bench with more trials, on an idle machine, and with at least two CPUs.",
		})
		return
	}
	c.clear = append(c.clear, remark{
		text:  fmt.Sprintf("measured: no violation in %s of %s, %d of them contested (scope %s)", plural(trials, "trial"), list(workloads), contested, scope),
		scope: scope,
	})
}

// row looks for violations, and for a workload of which no trial could be judged.
func (c *joint) row(r *result.Bench) {
	what := r.Workload
	if r.Variant != "" {
		what += ", " + r.Variant
	}
	switch {
	case r.Violations() > 0:
		text := fmt.Sprintf("measured: %s in %s of %s (scope %s)", counted(r), plural(r.Trials, "trial"), what, r.Scope)
		c.unsafe = append(c.unsafe, remark{text: text, scope: r.Scope})
	case r.Trials == 0:
		text := fmt.Sprintf("measured: no trial of %s could be judged, %d are void", what, r.Void)
		if len(r.Voided) > 0 {
			text += ": " + strings.Join(r.Voided, "; ")
		}
		c.unproven = append(c.unproven, remark{
			fmt.Sprintf("%s (scope %s)", text, r.Scope), r.Scope, "Repeat the bench: see why its trials are void.",
		})
	}
}

// control looks whether the workload could have seen a violation: of the protocols that are known to be wrong it has
// to have flagged one. Not every workload breaks every one of them.
func (c *joint) control(workload string) {
	var missed []string
	for i := range c.t.Bench {
		r := &c.t.Bench[i]
		switch {
		case r.Workload != workload || !r.Control || workload == costs:
		case r.Violations() > 0:
			return
		case !slices.Contains(missed, r.Protocol):
			missed = append(missed, r.Protocol)
		}
	}
	if len(missed) > 0 {
		c.unproven = append(c.unproven, remark{
			text:   fmt.Sprintf("measured: %s did not flag %s, so it could not have seen a violation (control of the bench)", workload, list(missed)),
			advice: "Repeat the bench with more trials: a protocol that is known to be wrong has to be flagged first.",
		})
	}
}

// counted names the violations of a row.
func counted(r *result.Bench) string {
	var parts []string
	if r.Duplicates > 0 {
		parts = append(parts, plural(r.Duplicates, "duplicate"))
	}
	if r.Missed > 0 {
		parts = append(parts, fmt.Sprintf("%d missed", r.Missed))
	}
	if r.Blocked > 0 {
		parts = append(parts, fmt.Sprintf("%d blocked", r.Blocked))
	}
	if r.Illegal > 0 {
		parts = append(parts, fmt.Sprintf("%d that no order explains", r.Illegal))
	}
	return list(parts)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
