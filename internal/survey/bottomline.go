package survey

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// bottomLine says which protocol to use, which not, and what to change. Of the protocols that are wrong everywhere it
// does not speak.
func bottomLine(all []result.Protocol) string {
	parts := []string{use(all)}
	if not := together(all, result.ProtocolUnsafe); not != "" {
		parts = append(parts, "Not here: "+not+".")
	}
	if open := together(all, result.ProtocolUnproven); open != "" {
		parts = append(parts, "Unproven: "+open+".")
	}
	if change := toChange(all); change != "" {
		parts = append(parts, "To change: "+change)
	}
	return strings.Join(parts, " ")
}

// use recommends the safe protocol that needs least, at its scope.
func use(all []result.Protocol) string {
	safe := named(all, result.ProtocolSafe)
	if len(safe) == 0 && len(named(all, result.ProtocolUnproven)) > 0 {
		return "No protocol is shown to be safe."
	}
	if len(safe) == 0 {
		return "Use no protocol: none is safe."
	}
	scope := find(all, safe[0]).Scope
	s := fmt.Sprintf("Use %s %s (scope %s)", safe[0], between[scope], scope)
	others := safe[1:]
	for i, name := range others {
		if p := find(all, name); p.Scope != scope {
			others[i] = fmt.Sprintf("%s (scope %s)", name, p.Scope)
		}
	}
	switch len(others) {
	case 0:
		return s + "."
	case 1:
		return s + "; " + others[0] + " is safe, too."
	}
	return s + "; " + list(others) + " are safe, too."
}

func find(all []result.Protocol, name string) *result.Protocol {
	return &all[slices.IndexFunc(all, func(p result.Protocol) bool { return p.Name == name })]
}

// together names the protocols with that verdict, those with one reason together: "a, b: why; c: why".
func together(all []result.Protocol, v result.Safety) string {
	var reasons []string
	by := map[string][]string{}
	for _, name := range named(all, v) {
		why := reason(find(all, name))
		if by[why] == nil {
			reasons = append(reasons, why)
		}
		by[why] = append(by[why], name)
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(by[why], ", ") + ": " + why
	}
	return strings.Join(reasons, "; ")
}

// reason is what decided, without the parenthesis at its end that says where it comes from.
func reason(p *result.Protocol) string {
	if len(p.Because) == 0 {
		return "no reason is given"
	}
	why := p.Because[0]
	if i := strings.LastIndex(why, " ("); i > 0 && strings.HasSuffix(why, ")") {
		return why[:i]
	}
	return why
}

// toChange is the advice for the first protocol that lacks something here, unless it is to use another one, which the
// bottom line has said already.
func toChange(all []result.Protocol) string {
	for _, name := range preferred {
		i := slices.IndexFunc(all, func(p result.Protocol) bool { return p.Name == name })
		if i >= 0 && all[i].Verdict != result.ProtocolSafe && all[i].Advice != "" && !strings.HasPrefix(all[i].Advice, "Use ") {
			return all[i].Advice
		}
	}
	return ""
}
