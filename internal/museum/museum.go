// Package museum is the known ways in which filesystems break promises: each with a fault that imitates it and with
// what a probe must say of it. The tests, and the calibration, show them to the probes.
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

// An Exhibit is a filesystem with faults, and the finding that a probe must make on it.
type Exhibit struct {
	Name       string
	Faults     string // as faultfs.Parse reads them
	Mounts     int    // of the one share, between which the contenders are divided
	Probe      string
	Verdict    result.Verdict
	Class      string   // any, where it depends on the machine
	Violations []string // kinds: the first must be seen, the others may
	Reason     string   // a part of the finding's
}

//go:embed planted.yaml
var planted []byte

// Planted is the faults that were thought of.
var Planted = load(planted)

// load reads what the tests have read before: it cannot fail later.
func load(text []byte) (all []Exhibit) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		panic(fmt.Sprintf("museum: %v", err))
	}
	for _, x := range all {
		if _, err := faultfs.Parse(x.Faults); err != nil {
			panic(fmt.Sprintf("museum: %s: %v", x.Name, err))
		}
	}
	return all
}

// Differs says in what a finding is not the one that must come out; it is empty where it is.
func (x *Exhibit) Differs(f *result.Finding) string {
	switch {
	case f.Verdict != x.Verdict || f.Class != x.Class && x.Class != "any":
		return fmt.Sprintf("%s %q, and must be %s %q", f.Verdict, f.Class, x.Verdict, x.Class)
	case !strings.Contains(f.Reason, x.Reason):
		return fmt.Sprintf("the reason does not say %q: %s", x.Reason, f.Reason)
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
