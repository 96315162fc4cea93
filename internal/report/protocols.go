package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// protocolSheet is the bottom line of a target: which protocol may be used on it, and what decided it first.
func protocolSheet(protocols []result.Protocol) *sheet {
	s := &sheet{heads: protocolHeads()}
	for i := range protocols {
		s.rows = append(s.rows, protocolCells(&protocols[i]))
	}
	return s.condense()
}

// reasons are all that decided, of the protocols of which the table has only the first.
func reasons(protocols []result.Protocol) [][2]string {
	var all [][2]string
	for i := range protocols {
		if p := &protocols[i]; len(p.Because) > 1 {
			all = append(all, [2]string{p.Name + ": " + safety(p), stop(strings.Join(p.Because, "; "))})
		}
	}
	return all
}

func protocolHeads() []head {
	return []head{
		{name: "protocol", wrap: 18},
		{name: "verdict"},
		{name: "why", text: 24},
		{name: "what to change", text: 24, drop: 10, below: true},
	}
}

func protocolCells(p *result.Protocol) []string {
	why := "-"
	if len(p.Because) > 0 {
		why = p.Because[0]
	}
	return []string{p.Name, safety(p), why, cmp.Or(p.Advice, "-")}
}

// safety never goes without its scope, as a verdict does not.
func safety(p *result.Protocol) string { return fmt.Sprintf("%s (%s)", p.Verdict, p.Scope) }
