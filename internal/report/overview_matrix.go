package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// A matrix has a row for each target and a column for each of some names. Its cells are Markdown, and "-" where there
// is nothing.
type matrix struct {
	names []string
	more  []string // columns before those
	cells func(r *overviewRow) (more []string, cell func(name string) string)
}

func (m *matrix) markdown(out *bytes.Buffer, rows []overviewRow) {
	heads := []string{"target", "scope"}
	for _, name := range slices.Concat(m.more, m.names) {
		heads = append(heads, escape(name))
	}
	markdownHeads(out, heads...)
	for i := range rows {
		more, cell := m.cells(&rows[i])
		cells := append(rows[i].cells(), more...)
		for _, name := range m.names {
			cells = append(cells, cell(name))
		}
		markdownRow(out, cells)
	}
	fmt.Fprintln(out)
}

// overviewGroups split the promises into tables that a page is wide enough for: names, locks, and what else a claim rests
// on. A promise that is not here is in the last.
var overviewGroups = [][]string{
	{"excl-create", "excl-create-clones", "mkdir", "symlink", "link", "rename-noreplace", "rename-dir-occupied", "rename-away", "rename-replace", "publish"},
	{"flock", "posix-lock", "ofd-lock", "lock-release", "lock-coherence", "lock-rules"},
	{"visibility", "path-agreement", "unlink-race", "timestamps", "clock-skew", "inode-reuse", "durability", "names", "errno-table", "full-disk"},
}

func overviewPromises(out *bytes.Buffer, rows []overviewRow) {
	names := namesIn(rows, func(t *result.Target) (names []string) {
		for i := range t.Findings {
			names = append(names, t.Findings[i].Promise)
		}
		return names
	})
	if len(names) == 0 {
		fmt.Fprint(out, "No result here has a promise that was tested.\n\n")
		return
	}
	known := slices.Concat(overviewGroups...)
	for i, group := range overviewGroups {
		m := matrix{cells: func(r *overviewRow) ([]string, func(string) string) { return nil, r.promise }}
		m.names = slices.DeleteFunc(slices.Clone(group), func(name string) bool { return !slices.Contains(names, name) })
		if i == len(overviewGroups)-1 {
			m.names = append(m.names, slices.DeleteFunc(names, func(name string) bool { return slices.Contains(known, name) })...)
		}
		if len(m.names) > 0 {
			m.markdown(out, rows)
		}
	}
	fmt.Fprint(out, "- ✓ holds, **✗** broken, ? unproven, which is never a pass, ∅ the filesystem refuses the operation, with the errno. "+
		"hung: an operation did not come back. A dash: not tested.\n"+
		"- a/n: a violations in n rounds in which contenders met, or of n tries where a promise needs no race. None in n is not never: "+
		"it is less than 3/n with 95 % confidence.\n"+
		"- The scope of a verdict that is not that of its row stands behind it, and so does the class of a broken lock.\n"+
		"- What each promise means: [docs/probes](../docs/probes/README.md).\n\n")
}

// namesIn are all names that the targets have, in the order in which they come.
func namesIn(rows []overviewRow, of func(*result.Target) []string) []string {
	var names []string
	for _, r := range rows {
		for _, name := range of(r.target) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (r *overviewRow) promise(name string) string {
	for i := range r.target.Findings {
		if f := &r.target.Findings[i]; f.Promise == name {
			cell := mark(f)
			if f.Class != "" && f.Class != "enforced" {
				cell += " " + escape(f.Class)
			}
			if f.Scope != r.target.Scope {
				cell += fmt.Sprintf(" (%s)", f.Scope)
			}
			return cell
		}
	}
	return "-"
}

// mark is a verdict and its evidence. A number is one word, which a page does not break.
func mark(f *result.Finding) string {
	n := strings.TrimPrefix(strings.ReplaceAll(violations(f), " ", ""), "-")
	switch f.Verdict {
	case result.Holds:
		return strings.TrimSpace("✓ " + n)
	case result.Broken:
		return "**" + strings.TrimSpace("✗ "+n) + "**"
	case result.Unsupported:
		return strings.TrimSpace("∅ " + escape(counts(f.Errnos, false)))
	case result.Unproven:
		return strings.TrimSpace("? " + n)
	}
	return string(f.Verdict)
}

func overviewProtocols(out *bytes.Buffer, rows []overviewRow) {
	names := namesIn(rows, protocolsOf)
	if len(names) == 0 {
		fmt.Fprint(out, "No result here judges protocols yet.\n\n")
		return
	}
	m := matrix{names: names, cells: func(r *overviewRow) ([]string, func(string) string) {
		return nil, func(name string) string { return verdictOf(r.target, name) }
	}}
	m.markdown(out, rows)
	fmt.Fprint(out, "- What the protocol requires, what the filesystem keeps and what was measured decide together, and the worst of them counts. "+
		"What decided it is on the page of the target.\n- A scope that is not that of the row stands behind the verdict.\n\n")
}

func protocolsOf(t *result.Target) (names []string) {
	for i := range t.Protocols {
		names = append(names, t.Protocols[i].Name)
	}
	return names
}

// verdictOf never goes without its scope where that is not the target's.
func verdictOf(t *result.Target, protocol string) string {
	for i := range t.Protocols {
		p := &t.Protocols[i]
		switch {
		case p.Name != protocol:
		case p.Scope != t.Scope:
			return safety(p)
		default:
			return string(p.Verdict)
		}
	}
	return "-"
}

const forty = "forty"

func overviewForty(out *bytes.Buffer, rows []overviewRow) {
	var run []overviewRow
	var not []string
	for _, r := range rows {
		if len(rowsOf(r.target, forty)) > 0 {
			run = append(run, r)
		} else {
			not = append(not, r.name)
		}
	}
	if len(run) == 0 {
		fmt.Fprint(out, "No result here has this workload yet.\n\n")
		return
	}
	m := matrix{more: []string{"trials", "contested"}, cells: func(r *overviewRow) ([]string, func(string) string) {
		return []string{fortyTrials(r.target), fortyContested(r.target)}, func(name string) string { return fortyOf(r.target, name) }
	}}
	// Where time runs out the rows of the bench are in no order; the verdicts always are.
	ordered, ran := namesIn(rows, protocolsOf), namesIn(run, func(t *result.Target) (names []string) {
		for _, b := range rowsOf(t, forty) {
			names = append(names, b.Protocol)
		}
		return names
	})
	place := func(name string) int { return cmp.Or(slices.Index(ordered, name)+1, len(ordered)+1) }
	slices.SortStableFunc(ran, func(a, b string) int { return place(a) - place(b) })
	m.names = ran
	m.markdown(out, run)
	fmt.Fprint(out, "- Every contender calls once, all for one key. a/n: a executions where n were due, one in each trial. 800/20 is 40 to 1. "+
		"**Bold**: work was done more than once. (a missed): keys that nobody finished.\n"+
		"- trials: those that were judged, of each protocol. A trial that something else disturbed is void; where all are, there is no other number.\n"+
		"- contested: the share of the trials in which the winner's claim overlapped another's, of the protocol with the least of it; "+
		"unguarded has no claim to overlap.\n"+
		"- (silent): a protocol that is known to be wrong was right here, so that a failure of the others could have gone unseen.\n")
	if len(not) > 0 {
		fmt.Fprintf(out, "- Not run: %s.\n", escape(strings.Join(not, ", ")))
	}
	fmt.Fprintln(out)
}

// fortyOf is the row of a protocol. There is one, unless contenders of several numbers took part.
func fortyOf(t *result.Target, protocol string) string {
	var cells []string
	for _, b := range rowsOf(t, forty) {
		if b.Protocol != protocol {
			continue
		}
		cell := strings.ReplaceAll(executed(b), " ", "")
		switch {
		case b.Trials == 0 && b.Void == 0:
			cell = "not judged"
		case b.Trials == 0:
			cell = fmt.Sprintf("%d void", b.Void)
		case b.Duplicates > 0:
			cell = "**" + cell + "**"
		}
		if b.Missed > 0 {
			cell += fmt.Sprintf(" (%d missed)", b.Missed)
		}
		if b.Control && !flagged(b.Bench) && b.Trials > 0 {
			cell += " (silent)"
		}
		cells = append(cells, cell)
	}
	if len(cells) == 0 {
		return "-"
	}
	return strings.Join(cells, "; ")
}

func fortyTrials(t *result.Target) string {
	var least, most int
	for i, b := range rowsOf(t, forty) {
		if i == 0 || b.Trials < least {
			least = b.Trials
		}
		most = max(most, b.Trials)
	}
	if least == most {
		return strconv.Itoa(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

func fortyContested(t *result.Target) string {
	least := benchRow{}
	for _, b := range rowsOf(t, forty) {
		if b.Trials == 0 || b.Protocol == "unguarded" {
			continue
		}
		if least.Bench == nil || b.Contested*least.Trials < least.Contested*b.Trials {
			least = b
		}
	}
	if least.Bench == nil {
		return "-"
	}
	return share(least.Contested, least.Trials)
}
