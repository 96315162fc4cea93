package survey

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/explore"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// Join says of each protocol whether it may be used on the target. The requirement table says what the protocol
// rests on, the findings what the target keeps; what was measured with the protocol itself overrides both, and only
// for the worse. It is pure.
func Join(t *result.Target) []result.Protocol {
	out := make([]result.Protocol, len(engine.Protocols))
	for i, spec := range engine.Protocols {
		c := &joint{t: t, spec: spec}
		c.measured()
		if c.soundAtAll() {
			c.weighAll()
		}
		out[i] = c.protocol()
	}
	for i := range out {
		if p := &out[i]; p.Verdict != result.ProtocolSafe {
			p.Advice = cmp.Or(p.Advice, instead(out))
		}
	}
	return out
}

// A joint is what comes together about one protocol.
type joint struct {
	t    *result.Target
	spec engine.Spec

	unsafe   []remark
	unproven []remark
	clear    []remark // what speaks for it, and what was not tested and need not be
}

// A remark is a reason, or what explains the one before it.
type remark struct {
	text   string
	scope  result.Scope // of the evidence; "" is none
	advice string
}

// protocol has the gravest reasons alone, as they decide, except that a protocol that is safe or unproven is also
// told what speaks for it.
func (c *joint) protocol() result.Protocol {
	p := result.Protocol{Name: c.spec.Name, Verdict: result.ProtocolSafe}
	why := c.clear
	switch {
	case len(c.unsafe) > 0:
		p.Verdict, why = result.ProtocolUnsafe, c.unsafe
	case len(c.unproven) > 0:
		p.Verdict, why = result.ProtocolUnproven, slices.Concat(c.unproven, c.clear)
	}
	p.Scope = narrowest(c.t.Scope, why)
	for _, r := range why {
		p.Because = append(p.Because, r.text)
		if p.Verdict != result.ProtocolSafe {
			p.Advice = cmp.Or(p.Advice, r.advice)
		}
	}
	return p
}

// narrowest is the scope of the evidence; where there is none, that of the target.
func narrowest(of result.Scope, why []remark) result.Scope {
	order := result.Scopes()
	for _, r := range why {
		if r.scope != "" && slices.Index(order, r.scope) < slices.Index(order, of) {
			of = r.scope
		}
	}
	return of
}

// soundAtAll asks the requirement table about a filesystem that keeps every promise.
func (c *joint) soundAtAll() bool {
	for _, w := range explore.Weaknesses {
		if _, ok := cellOf(c.spec.Name, w.Weakness); !ok {
			c.unproven = append(c.unproven, remark{text: "not explored: " + w.Name})
		}
	}
	what, breaks := c.breaks(explore.Perfect)
	if breaks {
		c.unsafe = append(c.unsafe, remark{text: what + " (explored, where every promise is kept)"})
	}
	return !breaks
}

func cellOf(protocol string, w explore.Weakness) (explore.Cell, bool) {
	cells := explore.Requirements.Cells
	i := slices.IndexFunc(cells, func(c explore.Cell) bool { return c.Weakness == w && c.Protocol == protocol })
	if i < 0 {
		return explore.Cell{}, false
	}
	return cells[i], true
}

// breaks says what happens to the protocol on a filesystem with that weakness. What is only left lying about is no
// harm.
func (c *joint) breaks(w explore.Weakness) (what string, yes bool) {
	cell, _ := cellOf(c.spec.Name, w)
	if len(cell.Kinds) == 0 || cell.Kinds[0] >= explore.Leftover {
		return "", false
	}
	return cell.Kinds[0].String() + ": " + cell.Why, true
}

// rests are the promises that the protocol cannot do without: what it says itself, and those by which the weaknesses
// that break it are known to be absent.
func (c *joint) rests() []string {
	all := slices.Clone(c.spec.Needs)
	for _, p := range proofs {
		if _, breaks := c.breaks(p.weakness); breaks && !slices.Contains(all, p.promise) {
			all = append(all, p.promise)
		}
	}
	return all
}

// preferred are the protocols to recommend, the one that needs least first.
var preferred = []string{"generations", "generations-linked", "quarantine", "flock-held", "flock-reread"}

// instead is the advice to use another protocol.
func instead(all []result.Protocol) string {
	if safe := named(all, result.ProtocolSafe); len(safe) > 0 {
		return "Use " + safe[0] + "."
	}
	if open := named(all, result.ProtocolUnproven); len(open) > 0 {
		return "No protocol is shown to be safe here yet: see what " + open[0] + " lacks, or keep claims on another filesystem."
	}
	return "Keep claims on another filesystem."
}

// named are the names of the preferred protocols that have the verdict.
func named(all []result.Protocol, v result.Safety) []string {
	var names []string
	for _, name := range preferred {
		if slices.ContainsFunc(all, func(p result.Protocol) bool { return p.Name == name && p.Verdict == v }) {
			names = append(names, name)
		}
	}
	return names
}

// list writes names as a person would.
func list(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Needed are the promises that some protocol rests on, or that can stop all of them, in the order of the probes: what
// Join makes of a target is from their findings.
func Needed() (names []string) {
	needed := map[string]bool{"names": true, "path-agreement": true, "inode-reuse": true} // see stops
	for _, spec := range engine.Protocols {
		for _, promise := range (&joint{spec: spec}).rests() {
			needed[promise] = true
		}
	}
	for _, p := range probes.All {
		if needed[p.Name] {
			names = append(names, p.Name)
		}
	}
	return names
}
