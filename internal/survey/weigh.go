package survey

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// enoughRounds is how many contested rounds must have shown nothing worse, where a promise is broken in a way that
// the protocol survives: a probe may end before that, as soon as it has seen enough of one kind of violation. None in
// 100 bounds the rate of another kind at 3 %.
const enoughRounds = 100

// weighAll looks at every finding, and then at what there is no finding of.
func (c *joint) weighAll() {
	rests := c.rests()
	for i := range c.t.Findings {
		f := &c.t.Findings[i]
		c.weigh(f, slices.Contains(rests, f.Promise) || c.stops(f))
		rests = slices.DeleteFunc(rests, func(p string) bool { return p == f.Promise })
	}
	c.untested(rests)
}

// stops is a finding with which the protocol gets nowhere, though it does not name the promise: each makes its files by
// an exclusive create, if only under a private name, each needs its names, and that a name is one file for all.
func (c *joint) stops(f *result.Finding) bool {
	switch f.Promise {
	case "excl-create":
		return f.Verdict == result.Unsupported || f.Verdict == result.Hung
	case "names", "path-agreement":
		return f.Verdict == result.Broken
	case "inode-reuse":
		return f.Kinds["unstable-number"] > 0 && slices.Contains(byInode, c.spec.Name)
	}
	return false
}

// byInode are the protocols that tell a file by its inode number, while they hold it open or look at it.
var byInode = []string{"flock-held", "quarantine", "quarantine-eager"}

// weigh judges one finding. Its weaknesses concern any protocol that breaks by them, and the rest those that rest on
// the promise.
func (c *joint) weigh(f *result.Finding, rests bool) {
	weak, all := shown(f)
	for _, w := range weak {
		if what, breaks := c.breaks(w); breaks {
			c.unsafe = append(c.unsafe, c.remark(f, state(f)), remark{text: what})
			return
		}
	}
	switch {
	case !rests:
	case f.Verdict == result.Holds:
		c.holds(f)
	case f.Verdict == result.Broken && all:
		c.survives(f)
	case f.Verdict == result.Broken, f.Verdict == result.Unsupported, f.Verdict == result.Hung:
		c.unsafe = append(c.unsafe, c.remark(f, state(f)), remark{text: c.spec.Name + " rests on it"})
	default:
		c.unproven = append(c.unproven, c.remark(f, state(f)))
		if f.Reason != "" {
			c.unproven = append(c.unproven, remark{text: f.Promise + ": " + f.Reason})
		}
	}
}

// holds believes the finding, but for what it leaves open.
func (c *joint) holds(f *result.Finding) {
	for _, p := range proofs {
		if _, breaks := c.breaks(p.weakness); !breaks || p.promise != f.Promise || p.zero == "" {
			continue
		}
		if n, ok := f.Figures[p.zero]; !ok || n > 0 {
			c.unproven = append(c.unproven, c.remark(f, fmt.Sprintf("%s is not shown to be absent here: %s holds, but not all attempts in sequence succeeded", p.weakness, f.Promise)))
			return
		}
	}
	c.clear = append(c.clear, c.remark(f, f.Promise+" holds"))
}

// survives is for what is broken in ways that were explored and do the protocol no harm. That nothing else is wrong
// needs evidence, as ever.
func (c *joint) survives(f *result.Finding) {
	text := state(f) + ", which " + c.spec.Name + " survives"
	if n, what := evidence(f); n < enoughRounds || f.Control != nil && f.Control.Violations == 0 {
		text += fmt.Sprintf(", but that nothing else is wrong is not shown by %d %s", n, what)
		c.unproven = append(c.unproven, c.remark(f, text))
		return
	}
	c.clear = append(c.clear, c.remark(f, text))
}

// evidence is how many rounds of a finding count: those that were contested, where contenders race.
func evidence(f *result.Finding) (n int, what string) {
	if p, ok := probes.Find(f.Promise); ok && p.Alone {
		return f.Rounds, "rounds"
	}
	return f.Contested, "contested rounds"
}

// untested judges the promises that there is no finding of.
func (c *joint) untested(promises []string) {
	var kept, open []string
	for _, p := range promises {
		if slices.Contains(given, p) && oneKernel(c.t) {
			kept = append(kept, p)
		} else {
			open = append(open, p)
		}
	}
	if len(open) > 0 {
		c.unproven = append(c.unproven, remark{"not tested: " + strings.Join(open, ", "), c.t.Scope, toTest(open)})
	}
	if len(kept) > 0 {
		keeps := "; one kernel keeps them"
		if len(kept) == 1 {
			keeps = "; one kernel keeps it"
		}
		c.clear = append(c.clear, remark{text: "not tested: " + strings.Join(kept, ", ") + keeps, scope: c.t.Scope})
	}
}

// toTest is the advice for what was not tested.
func toTest(promises []string) string {
	var missing []string
	for _, p := range promises {
		if _, ok := probes.Find(p); !ok {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return "Survey with all probes."
	}
	return "There is no probe of " + list(missing) + " yet: keep claims on a local filesystem of one machine, or find out by other means."
}

// remark is a reason that ends in where it comes from.
func (c *joint) remark(f *result.Finding, text string) remark {
	return remark{fmt.Sprintf("%s (probe %s, scope %s)", text, f.Promise, f.Scope), f.Scope, c.change(f)}
}

// change is what to do about a finding: the mount options that make locks local, where the target has any, or else
// what the probe advises.
func (c *joint) change(f *result.Finding) string {
	if f.Promise == "flock" && (f.Verdict == result.Broken || f.Verdict == result.Unsupported) {
		var options []string
		for _, r := range c.t.Routes {
			options = append(options, r.LockOpts...)
		}
		slices.Sort(options)
		if options = slices.Compact(options); len(options) > 0 {
			return "Mount without " + list(options) + ", and survey again; or use a protocol without locks."
		}
	}
	return f.Advice
}

// state says in a few words what a finding is.
func state(f *result.Finding) string {
	switch {
	case f.Verdict == result.Broken && f.Class != "":
		return fmt.Sprintf("%s is %s here", f.Promise, f.Class)
	case f.Verdict == result.Broken && len(f.Kinds) > 0:
		return fmt.Sprintf("%s is broken here: %s", f.Promise, namesOf(f.Kinds))
	case f.Verdict == result.Unsupported && len(f.Errnos) > 0:
		return fmt.Sprintf("%s is unsupported here: %s", f.Promise, namesOf(f.Errnos))
	case f.Verdict == result.Hung:
		return f.Promise + " hangs here"
	}
	return fmt.Sprintf("%s is %s here", f.Promise, cmp.Or(f.Verdict, result.Unproven))
}

func namesOf(counts map[string]int) string {
	return strings.Join(slices.Sorted(maps.Keys(counts)), ", ")
}
