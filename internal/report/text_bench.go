package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/claimbench/claimbench/internal/result"
)

func (p *page) protocols(t *result.Target) error {
	if len(t.Protocols) == 0 {
		return nil
	}
	s := protocolSheet(t.Protocols)
	more := reasons(t.Protocols)
	if len(more) > 0 && !p.o.Verbose {
		s.notes = append(s.notes, "The first reason of each; --verbose prints all of them.")
	}
	if _, err := p.sheet(s); err != nil {
		return err
	}
	p.line("", "")
	if p.o.Verbose {
		p.reasons(more)
	}
	return nil
}

func (p *page) reasons(all [][2]string) {
	for _, r := range all {
		p.line("", r[0])
		p.line("  ", r[1])
	}
	if len(all) > 0 {
		p.line("", "")
	}
}

func (p *page) bench(t *result.Target) error {
	if err := p.sheets(benchSheets(t)); err != nil {
		return err
	}
	if p.o.Verbose {
		for i := range t.Bench {
			p.claimViolation(&t.Bench[i])
		}
	}
	return nil
}

// sheets are tables with one legend for all.
func (p *page) sheets(sheets []*sheet) error {
	var shown []head
	for _, s := range sheets {
		without, err := p.sheet(s)
		if err != nil {
			return err
		}
		p.line("", "")
		shown = append(shown, slices.DeleteFunc(slices.Clone(s.heads), func(h head) bool { return slices.Contains(without, h.name) })...)
	}
	lines := legend(shown)
	for _, line := range lines {
		p.line("  ", line)
	}
	if len(lines) > 0 {
		p.line("", "")
	}
	return nil
}

func (p *page) claimViolation(b *result.Bench) {
	c := b.Counterexample
	if c == nil {
		return
	}
	name := strings.Join(slices.DeleteFunc([]string{b.Workload, b.Protocol, b.Variant}, func(s string) bool { return s == "" }), ", ")
	p.line("", fmt.Sprintf("%s: %s in trial %d; times in ms since the first call", name, c.Kind, c.Trial))
	p.line("  ", c.Sentence)
	p.attempts(c.Attempts)
	p.line("", "")
}

type attemptColumn struct {
	name string
	cell func(*result.Attempt) string
}

// attempts is the trial as a table, without what nobody in it did.
func (p *page) attempts(attempts []result.Attempt) {
	attempts = slices.Clone(attempts)
	slices.SortStableFunc(attempts, func(a, b result.Attempt) int { return cmp.Compare(a.Invoke, b.Invoke) })
	columns := attemptColumns(attempts)
	w := tabwriter.NewWriter(&p.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cell func(attemptColumn) string) {
		for _, c := range columns {
			fmt.Fprint(w, "\t", cell(c))
		}
		fmt.Fprintln(w, "\t")
	}
	if len(attempts) > 0 {
		row(func(c attemptColumn) string { return c.name })
	}
	for i := range attempts[:min(len(attempts), eventsShown)] {
		row(func(c attemptColumn) string { return clean(c.cell(&attempts[i])) })
	}
	w.Flush() // into memory
	if more := len(attempts) - eventsShown; more > 0 {
		p.line("    ", fmt.Sprintf("and %d more attempts in the result file", more))
	}
}

func attemptColumns(attempts []result.Attempt) []attemptColumn {
	if len(attempts) == 0 {
		return nil
	}
	first := attempts[0].Invoke
	at := func(name string, ns func(*result.Attempt) int64) attemptColumn {
		return attemptColumn{name, func(a *result.Attempt) string {
			if ns(a) == 0 {
				return "-"
			}
			return fmt.Sprintf("%.3f", float64(ns(a)-first)/1e6)
		}}
	}
	columns := []attemptColumn{
		{"contender", func(a *result.Attempt) string { return fmt.Sprint(a.Contender) }},
		{"route", func(a *result.Attempt) string { return fmt.Sprint(a.Route) }},
		{"key", func(a *result.Attempt) string { return fmt.Sprint(a.Key) }},
		at("invoke", func(a *result.Attempt) int64 { return a.Invoke }),
		at("return", func(a *result.Attempt) int64 { return a.Return }),
		{"outcome", func(a *result.Attempt) string { return cmp.Or(a.Outcome, "never") }},
		{"generation", func(a *result.Attempt) string { return orDash(a.Generation) }},
		at("expires", func(a *result.Attempt) int64 { return a.Expires }),
		at("began", func(a *result.Attempt) int64 { return a.Began }),
		at("ended", func(a *result.Attempt) int64 { return a.Ended }),
		at("done", func(a *result.Attempt) int64 { return a.Done }),
		at("died", func(a *result.Attempt) int64 { return a.Died }),
	}
	return slices.DeleteFunc(columns, func(c attemptColumn) bool {
		return !slices.ContainsFunc(attempts, func(a result.Attempt) bool { return c.cell(&a) != "-" })
	})
}
