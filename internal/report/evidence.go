package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/claimbench/claimbench/internal/result"
)

// finding writes what a row of the table has no room for.
func (p *page) finding(f *result.Finding) {
	fmt.Fprintln(&p.out, clean(f.Promise)+": "+p.paint(clean(verdict(f))))
	p.line("  ", f.Reason)
	if f.Advice != "" {
		p.line("  advice: ", f.Advice)
	}
	if p.o.Verbose {
		p.figures(f)
	}
	if f.Counterexample != nil {
		p.counterexample(f.Counterexample)
	}
}

func (p *page) figures(f *result.Finding) {
	if c := f.Control; c != nil {
		what := "rounds"
		if c.Contested > 0 {
			what = "contested rounds"
		}
		s := fmt.Sprintf("%s: %s %s", c.Name, cmp.Or(fired(c), "none"), what)
		if c.FirstS > 0 {
			s += ", the first after " + span(c.FirstS)
		}
		p.line("  control: ", s)
	}
	if len(f.Errnos) > 0 {
		p.line("  errnos: ", counts(f.Errnos, true))
	}
	if len(f.Kinds) > 0 {
		p.line("  kinds: ", counts(f.Kinds, true))
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.Figures)) {
		label, text := figure(name, f.Figures[name])
		all = append(all, label+" "+text)
	}
	if len(all) > 0 {
		p.line("  figures: ", strings.Join(all, ", "))
	}
	p.line("  took: ", fmt.Sprintf("%s; rounds %s, contested %s", span(f.DurationS), group(f.Rounds), group(f.Contested)))
}

func (p *page) counterexample(c *result.Counterexample) {
	p.line("  seen: ", c.Sentence)
	r := &c.Round
	p.line("  ", fmt.Sprintf("%s, round %d (%s); times in µs since the first call", r.Operation, r.Number, r.Phase))
	p.events(r.Events)
	if r.After != nil {
		p.line("  after: ", after(r.After))
	}
}

// eventsShown keeps a round of very many contenders readable; the file has them all.
const eventsShown = 32

func (p *page) events(events []result.Event) {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b result.Event) int { return cmp.Compare(a.Invoke, b.Invoke) })
	w := tabwriter.NewWriter(&p.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := eventColumns(events)
	row := func(cell func(eventColumn) string) {
		for _, c := range columns {
			fmt.Fprint(w, "\t", cell(c))
		}
		fmt.Fprintln(w, "\t")
	}
	if len(events) > 0 {
		row(func(c eventColumn) string { return c.name })
	}
	for i := range events[:min(len(events), eventsShown)] {
		row(func(c eventColumn) string { return clean(c.cell(&events[i])) })
	}
	w.Flush() // into memory
	if more := len(events) - eventsShown; more > 0 {
		p.line("    ", fmt.Sprintf("and %d more contenders in the result file", more))
	}
}

type eventColumn struct {
	name string
	cell func(*result.Event) string
}

// eventColumns leaves out what no event of the round recorded.
func eventColumns(events []result.Event) []eventColumn {
	if len(events) == 0 {
		return nil
	}
	first := events[0].Invoke
	since := func(ns int64) string { return fmt.Sprintf("%.1f", float64(ns-first)/1e3) }
	columns := []eventColumn{
		{"contender", func(e *result.Event) string { return fmt.Sprint(e.Contender) }},
		{"route", func(e *result.Event) string { return fmt.Sprint(e.Route) }},
		{"host", func(e *result.Event) string { return cmp.Or(e.Host, "-") }},
		{"tid", func(e *result.Event) string {
			if e.Host == "" {
				return "-" // of one host's contenders it tells nothing
			}
			return fmt.Sprint(e.TID)
		}},
		{"cpu", func(e *result.Event) string { return fmt.Sprint(e.CPU) }},
		{"did", func(e *result.Event) string { return cmp.Or(e.Did, "-") }},
		{"invoke", func(e *result.Event) string { return since(e.Invoke) }},
		{"return", func(e *result.Event) string {
			if e.Return == 0 {
				return "never"
			}
			return since(e.Return)
		}},
		{"result", outcome},
		{"released", func(e *result.Event) string {
			if e.Released == 0 {
				return "-"
			}
			return since(e.Released)
		}},
		{"inode", func(e *result.Event) string { return orDash(e.Inode) }},
		{"links", func(e *result.Event) string { return orDash(uint64(e.Links)) }},
		{"saw", func(e *result.Event) string { return orDash(e.Saw) }},
	}
	return slices.DeleteFunc(columns, func(c eventColumn) bool {
		return !slices.ContainsFunc(events, func(e result.Event) bool { return c.cell(&e) != "-" })
	})
}

// outcome of a call that never came back is not known: it may have happened.
func outcome(e *result.Event) string {
	switch {
	case e.Errno != "":
		return e.Errno
	case e.Return == 0:
		return "unknown"
	}
	return "ok"
}

func orDash(n uint64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func after(a *result.After) string {
	s := fmt.Sprintf("contender %d found ", a.By)
	if a.Errno != "" {
		return s + a.Errno
	}
	s += fmt.Sprintf("inode %d, links %d, mode %o, size %d, ", a.Inode, a.Links, a.Mode, a.Size)
	if a.Owner < 0 {
		return s + "nobody's mark"
	}
	return s + fmt.Sprintf("the mark of contender %d", a.Owner)
}
