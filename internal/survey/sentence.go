package survey

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// between says for a person how far apart the contenders were.
var between = map[result.Scope]string{
	result.ScopeProcess: "between processes on one mount",
	result.ScopeMount:   "between mounts of one client",
	result.ScopeClient:  "between clients on one kernel",
	result.ScopeHost:    "between hosts",
}

// sentence is the verdict on a target: which protocol to use, or, where none was judged, which promises hold. It never
// says more than the scope allows.
func sentence(t *result.Target) string {
	if len(t.Protocols) > 0 {
		return bottomLine(t.Protocols)
	}
	return promises(t)
}

func promises(t *result.Target) string {
	by := map[result.Verdict][]string{}
	contested, rounds := 0, 0
	for _, f := range t.Findings {
		by[f.Verdict] = append(by[f.Verdict], f.Promise)
		contested += f.Contested
		rounds += f.Rounds
	}
	where := fmt.Sprintf("%s (scope %s)", between[t.Scope], t.Scope)
	if len(t.Findings) == 0 {
		return "Nothing was tested."
	}
	holding, n := len(by[result.Holds]), len(t.Findings)
	if holding == n {
		subject := map[int]string{1: "The promise holds", 2: "Both promises hold"}[n]
		in := grouped(contested) + " contested rounds"
		if contested == 0 {
			in = grouped(rounds) + " scripted checks"
		}
		return fmt.Sprintf("%s %s: no violation in %s.", cmp.Or(subject, fmt.Sprintf("All %d promises hold", n)), where, in)
	}
	var parts []string
	for _, v := range []result.Verdict{result.Broken, result.Hung, result.Unsupported, result.Unproven} {
		if names := by[v]; len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", v, strings.Join(names, ", ")))
		}
	}
	hold := "hold"
	if holding == 1 {
		hold = "holds"
	}
	return fmt.Sprintf("%d of %d promises %s %s; %s.", holding, n, hold, where, strings.Join(parts, "; "))
}

// grouped writes a count with its thousands apart.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// A Decision is what a survey says about the protocols and promises that were required of every target.
type Decision int

// The decisions; each is also the exit status.
const (
	Safe     Decision = 0
	Unsafe   Decision = 1
	Unproven Decision = 3
)

// Decide looks at the required protocols and promises only; no protocol has the name of a promise. A promise that is
// refused or hangs cannot be relied on: unsafe. What an incomplete survey has not come to is unproven.
func Decide(f *result.File, require []string) Decision {
	d := Safe
	for i := range f.Targets {
		for _, name := range require {
			switch decide(&f.Targets[i], name) {
			case Unsafe:
				return Unsafe
			case Unproven:
				d = Unproven
			}
		}
	}
	if len(f.Targets) == 0 || f.Incomplete != "" {
		return Unproven
	}
	return d
}

func decide(t *result.Target, name string) Decision {
	for _, p := range t.Protocols {
		if p.Name == name {
			return decisionOn(p.Verdict)
		}
	}
	for _, f := range t.Findings {
		if f.Promise == name {
			return decisionOf(f.Verdict)
		}
	}
	return Unproven
}

func decisionOn(v result.Safety) Decision {
	switch v {
	case result.ProtocolSafe:
		return Safe
	case result.ProtocolUnsafe:
		return Unsafe
	}
	return Unproven
}

func decisionOf(v result.Verdict) Decision {
	switch v {
	case result.Holds:
		return Safe
	case result.Broken, result.Unsupported, result.Hung:
		return Unsafe
	}
	return Unproven
}
