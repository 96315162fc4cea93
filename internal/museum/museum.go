// Package museum is the known ways in which filesystems break promises, and protocols rely on what was never promised:
// each with a fault that imitates it and with what a probe, or a workload, must say of it. The tests, and the
// calibration, show them to the probes.
package museum

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/result"
)

// An Exhibit is a filesystem with faults, and the finding that a probe must make on it; or, where nobody but a protocol
// is at fault, what a workload must show of that protocol and must not show of another.
type Exhibit struct {
	Name    string
	Kind    string   // of failure, as in Kinds. This and the next two are of what was reported.
	Sources []string // repository#number
	Story   string

	Faults string // as faultfs.Parse reads them
	Mounts int    // of the one share, between which the contenders are divided

	Probe      string
	Verdict    result.Verdict
	Class      string   // any, where it depends on the machine
	Violations []string // kinds: the first must be seen, the others may
	Reason     string   // a part of the finding's
	Warning    string   // a part of one of the finding's

	Workload string // in place of a probe; without mounts it runs in a plain directory
	Protocol string // in which it must show ...
	Shows    string // ... these: duplicates, missed, blocked or accepted
	Right    string // protocol in which it must show none of them; generations if empty
}

// A Kind is a group of failures that were reported.
type Kind struct{ Key, Title string }

// Kinds are all of them, in the order of the museum's page.
var Kinds = []Kind{
	{"A1", "exclusive create"},
	{"A2", "mkdir"},
	{"A3", "flock and fcntl locks"},
	{"A4", "hard links"},
	{"A5", "rename"},
	{"A6", "visibility and caches"},
	{"A7", "clocks and timestamps"},
	{"A8", "names"},
	{"A9", "fsync"},
	{"A10", "permissions"},
	{"B1", "a claim seen empty or torn"},
	{"B2", "taking over what is stale"},
	{"B3", "whether the holder lives"},
	{"B4", "TTL and heartbeat"},
	{"B5", "how wide a lock is, and what is said of it"},
	{"B6", "growth and cleaning up"},
	{"B7", "applications on top"},
}

var (
	//go:embed planted.yaml
	planted []byte
	//go:embed museum.yaml
	reported []byte
)

// Planted is the faults that were thought of, Reported what people reported.
var (
	Planted  = load(planted)
	Reported = load(reported)
)

// load reads what the tests have read before: it cannot fail later.
func load(text []byte) (all []Exhibit) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		panic(fmt.Sprintf("museum: %v", err))
	}
	for i := range all {
		x := &all[i]
		if _, err := faultfs.Parse(x.Faults); err != nil {
			panic(fmt.Sprintf("museum: %s: %v", x.Name, err))
		}
		if x.Workload != "" && x.Right == "" {
			x.Right = "generations"
		}
	}
	return all
}

// Shown is how much a row of the workload has of what the exhibit must show.
func (x *Exhibit) Shown(r *result.Bench) int {
	switch x.Shows {
	case "duplicates":
		return r.Duplicates
	case "missed":
		return r.Missed
	case "blocked":
		return r.Blocked
	case "accepted":
		return r.Accepted
	}
	panic("museum: a workload does not show " + x.Shows)
}

// Differs says in what a finding is not the one that must come out; it is empty where it is.
func (x *Exhibit) Differs(f *result.Finding) string {
	switch {
	case f.Verdict != x.Verdict || f.Class != x.Class && x.Class != "any":
		return fmt.Sprintf("%s %q, and must be %s %q", f.Verdict, f.Class, x.Verdict, x.Class)
	case !strings.Contains(f.Reason, x.Reason):
		return fmt.Sprintf("the reason does not say %q: %s", x.Reason, f.Reason)
	case x.Warning != "" && !slices.ContainsFunc(f.Warnings, func(w string) bool { return strings.Contains(w, x.Warning) }):
		return fmt.Sprintf("no warning says %q: %q", x.Warning, f.Warnings)
	case f.Verdict != result.Holds && f.Advice == "":
		return "no advice"
	case len(x.Violations) == 0 && (f.Counterexample != nil || len(f.Kinds) > 0):
		return fmt.Sprintf("violations: %v", f.Kinds)
	case len(x.Violations) > 0 && f.Kinds[x.Violations[0]] == 0:
		return fmt.Sprintf("no %s", x.Violations[0])
	}
	for kind := range f.Kinds {
		if !slices.Contains(x.Violations, kind) {
			return fmt.Sprintf("%s is none of %q", kind, x.Violations)
		}
	}
	return ""
}
