package lab

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// An Expectation is what a survey must find of a promise or a protocol, and why that is right.
type Expectation struct {
	Verdict string   `yaml:"verdict"`
	Or      []string `yaml:"or"`      // other verdicts that are as right, where it depends on luck
	Class   string   `yaml:"class"`   // "" is any
	Because string   `yaml:"because"` // one sentence
}

func (t *Target) validateExpectations() error {
	if !slices.Contains([]result.Scope{result.ScopeProcess, result.ScopeMount, result.ScopeClient, result.ScopeHost}, t.Scope) && t.Refuse == "" {
		return fmt.Errorf("scope: %q is none; there are process, mount, client, host", t.Scope)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Expect)) {
		if err := t.Expect[name].validate(name); err != nil {
			return fmt.Errorf("expect: %s: %w", name, err)
		}
	}
	for name := range t.Claims {
		if !isPromise(name) {
			return fmt.Errorf("claims: %s is no promise", name)
		}
	}
	return nil
}

func (e Expectation) validate(name string) error {
	verdicts := promiseVerdicts()
	if isProtocol(name) {
		verdicts = []string{string(result.ProtocolSafe), string(result.ProtocolUnsafe), string(result.ProtocolUnproven)}
	} else if !isPromise(name) {
		return errors.New("neither a promise nor a protocol")
	}
	for _, v := range e.verdicts() {
		if !slices.Contains(verdicts, v) {
			return fmt.Errorf("verdict %q is none; there are %s", v, strings.Join(verdicts, ", "))
		}
	}
	if e.Because == "" {
		return errors.New("because is missing: why is that right?")
	}
	return nil
}

func (e Expectation) verdicts() []string { return append([]string{e.Verdict}, e.Or...) }

func promiseVerdicts() []string {
	var names []string
	for _, v := range result.Verdicts() {
		names = append(names, string(v))
	}
	return names
}

func isPromise(name string) bool {
	_, ok := probes.Find(name)
	return ok
}

func isProtocol(name string) bool {
	return slices.ContainsFunc(engine.Protocols, func(s engine.Spec) bool { return s.Name == name })
}

// CompareFile is Compare for the whole result of a survey, which must be of this target alone, or of none if the routes
// had to be refused.
func (t *Target) CompareFile(f *result.File) (deviations, unproven []string) {
	switch {
	case t.Refuse != "" && len(f.Targets) == 0 && strings.Contains(f.Incomplete, t.Refuse):
		return nil, nil
	case t.Refuse != "" && len(f.Targets) > 0:
		return []string{fmt.Sprintf("%s: expected that the survey refuses the routes (%s), but it surveyed them", t.Name, t.Refuse)}, nil
	case len(f.Targets) != 1:
		return []string{fmt.Sprintf("%s: expected one target, found %d: %s", t.Name, len(f.Targets), f.Incomplete)}, nil
	}
	return t.Compare(&f.Targets[0], t.due(f))
}

// Compare gives the differences between what was found and what is expected, in both directions, a line each. Deviations
// are verdicts that are not the expected ones; unproven is what this run had too little evidence for. A promise that the
// target does not name is expected to hold; a protocol that it does not name may be anything, but generations with
// duplicates. What is due and was not found is a deviation, too.
func (t *Target) Compare(found *result.Target, due []string) (deviations, unproven []string) {
	differs := func(format string, args ...any) {
		deviations = append(deviations, t.Name+": "+fmt.Sprintf(format, args...))
	}
	if found.Scope != t.Scope {
		differs("scope: expected %s, found %s (%s)", t.Scope, found.Scope, found.ScopeWhy)
	}
	seen := map[string]bool{}
	for _, f := range allFound(found) {
		seen[f.name] = true
		if _, named := t.Expect[f.name]; !named && isProtocol(f.name) {
			continue
		}
		switch e := t.expectation(f.name); {
		case e.met(f.verdict, f.class):
		case f.verdict == string(result.Unproven):
			unproven = append(unproven, fmt.Sprintf("%s: %s: expected %s: %s", t.Name, f.name, e, f.why))
		default:
			differs("%s: expected %s, found %s%s: %s", f.name, e, f.verdict, class(f.class), f.why)
		}
	}
	for _, line := range t.rows(found) {
		differs("%s", line)
	}
	for _, name := range due {
		if isProtocol(name) && len(found.Protocols) == 0 {
			if why := t.silent(name, found); why != "" {
				unproven = append(unproven, fmt.Sprintf("%s: %s: expected %s: %s", t.Name, name, t.expectation(name), why))
			}
		} else if !seen[name] {
			differs("%s: expected %s, not tested", name, t.expectation(name))
		}
	}
	return deviations, unproven
}

// silent says why the bench tells nothing of a protocol that no verdict was made of.
func (t *Target) silent(protocol string, found *result.Target) string {
	trials, under := 0, 0
	for i := range found.Bench {
		if b := &found.Bench[i]; b.Protocol == protocol {
			trials, under = trials+b.Trials, under+b.UnderFault
		}
	}
	switch {
	case trials == 0:
		return "no trial of it could be judged"
	case len(found.Faults) > 0 && under == 0:
		return fmt.Sprintf("none of %d trials was under a fault", trials)
	}
	return ""
}

// rows are violations in the bench of protocols that are expected to be safe: under faults, which leave too little time for
// every probe, they are all that a survey says of a protocol. Of generations, which everybody is told to use, no target may
// have duplicates that does not say so.
func (t *Target) rows(found *result.Target) (wrong []string) {
	for i := range found.Bench {
		b := &found.Bench[i]
		e, named := t.Expect[b.Protocol]
		safe := slices.Equal(e.verdicts(), []string{string(result.ProtocolSafe)}) && b.Violations() > 0
		advised := !named && strings.HasPrefix(b.Protocol, "generations") && !b.Control && b.Duplicates > 0
		if !safe && !advised {
			continue
		}
		line := fmt.Sprintf("%s: expected safe, found in %d trials of %s: %d duplicates, %d missed, %d blocked, %d illegal",
			b.Protocol, b.Trials, strings.TrimSpace(b.Workload+" "+b.Variant), b.Duplicates, b.Missed, b.Blocked, b.Illegal)
		if b.Counterexample != nil {
			line += ": " + b.Counterexample.Sentence
		}
		wrong = append(wrong, line)
	}
	return wrong
}

// due are the names of all that must come out: of the promises that were to be tested those that do not need a disposable
// target, if it is none, and the protocols that the target names if any took part.
func (t *Target) due(f *result.File) (names []string) {
	if f.Incomplete != "" {
		return nil
	}
	for _, p := range probes.All {
		_, named := t.Expect[p.Name]
		if probed(f, p.Name) && (named || p.Suits(t.Scope, t.Disposable)) {
			names = append(names, p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Expect)) {
		if isProtocol(name) && !slices.Contains(f.Conditions, "workloads=") {
			names = append(names, name)
		}
	}
	return names
}

// probed says that a probe was to be run; an empty list stands for all.
func probed(f *result.File, name string) bool {
	for _, c := range f.Conditions {
		if list, ok := strings.CutPrefix(c, "probes="); ok {
			return list == "" || slices.Contains(strings.Split(list, ","), name)
		}
	}
	return false
}

// expectation is the one that the target names, or that the promise holds.
func (t *Target) expectation(name string) Expectation {
	if e, named := t.Expect[name]; named {
		return e
	}
	return Expectation{Verdict: string(result.Holds)}
}

// A verdict is what was found of a promise or a protocol.
type verdict struct{ name, verdict, class, why string }

func allFound(t *result.Target) []verdict {
	var all []verdict
	for i := range t.Findings {
		f := &t.Findings[i]
		all = append(all, verdict{f.Promise, string(f.Verdict), f.Class, f.Reason})
	}
	for i := range t.Protocols {
		p := &t.Protocols[i]
		all = append(all, verdict{p.Name, string(p.Verdict), "", strings.Join(p.Because, "; ")})
	}
	return all
}

func (e Expectation) met(verdict, class string) bool {
	return slices.Contains(e.verdicts(), verdict) && (e.Class == "" || class == "" || e.Class == class)
}

func (e Expectation) String() string { return strings.Join(e.verdicts(), " or ") + class(e.Class) }

func class(c string) string {
	if c == "" {
		return ""
	}
	return " (" + c + ")"
}
