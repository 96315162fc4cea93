package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// TextOptions say what the table is written to.
type TextOptions struct {
	Width   int    // columns of the terminal; 0 is no limit
	Color   bool   // of the verdicts
	Verbose bool   // every figure of every finding, and every mount option
	Table   string // one of Tables, with all files side by side; "" is the whole report
}

// Text writes for each target the verdict in a sentence and for each protocol, what the target is, a table for
// each workload of the bench, one row for each promise, and the evidence for everything that does not hold.
func Text(w io.Writer, files []*result.File, o TextOptions) error {
	if o.Table != "" {
		return sideText(w, files, o)
	}
	p := &page{o: o}
	for i, f := range files {
		if i > 0 {
			p.line("", "")
		}
		if err := p.file(f); err != nil {
			return err
		}
	}
	_, err := p.out.WriteTo(w)
	return err
}

// A page is text that keeps to the width of the terminal.
type page struct {
	o   TextOptions
	out bytes.Buffer
}

func (p *page) file(f *result.File) error {
	if f.Incomplete != "" {
		p.line("", "INCOMPLETE: "+f.Incomplete)
		for _, b := range bequests(f) {
			p.line("", b)
		}
		p.line("", "")
	}
	for i := range f.Targets {
		if err := p.target(&f.Targets[i]); err != nil {
			return err
		}
		p.line("", "")
	}
	if len(f.Targets) == 0 {
		p.line("", "Nothing was surveyed.")
		p.line("", "")
	}
	p.facts(runFacts(f, p.o.Verbose))
	return nil
}

func (p *page) target(t *result.Target) error {
	p.line("", sentence(t))
	p.line("", "")
	if err := p.protocols(t); err != nil {
		return err
	}
	p.facts(targetFacts(t, p.o.Verbose))
	p.line("", "")
	if err := p.bench(t); err != nil {
		return err
	}
	return p.promises(t)
}

// promises are a table, the evidence for what does not hold, and what the survey warns of.
func (p *page) promises(t *result.Target) error {
	notes := newFootnotes(t)
	if len(t.Findings) == 0 {
		p.line("", "No promise was tested.")
	} else if err := p.table(t, notes); err != nil {
		return err
	}
	for i := range t.Findings {
		if f := &t.Findings[i]; f.Verdict != result.Holds || p.o.Verbose {
			p.line("", "")
			p.finding(f)
		}
	}
	p.warnings(t, notes)
	return nil
}

func (p *page) table(t *result.Target, notes *footnotes) error {
	rows := make([][]string, len(t.Findings))
	for i := range t.Findings {
		f := &t.Findings[i]
		for _, c := range columns() {
			rows[i] = append(rows[i], clean(c.cell(f)))
		}
		rows[i][0] += notes.marks(f)
	}
	g, without := fit(rows, p.o.Width)
	text, err := g.render()
	if err != nil {
		return err
	}
	p.out.WriteString(g.paintVerdicts(text, p.paint))
	if len(without) > 0 {
		p.line("", fmt.Sprintf("(Not shown at %d columns: %s.)", p.o.Width, strings.Join(without, ", ")))
	}
	return nil
}

func (p *page) warnings(t *result.Target, notes *footnotes) {
	if len(t.Warnings)+len(notes.texts) > 0 {
		p.line("", "")
	}
	for _, w := range t.Warnings {
		p.line("warning: ", w)
	}
	for i, w := range notes.texts {
		p.line(fmt.Sprintf("[%d] ", i+1), w)
	}
}

// facts writes labelled lines with the texts aligned.
func (p *page) facts(facts [][2]string) {
	for _, f := range facts {
		p.line(fmt.Sprintf("%-9s", f[0]), f[1])
	}
}

// line writes s behind a label and indents what does not fit on the first line under its beginning.
func (p *page) line(label, s string) {
	width := p.o.Width
	if width > 0 {
		width = max(width-len(label), 20)
	}
	for _, part := range wrap(clean(s), width) {
		fmt.Fprintln(&p.out, strings.TrimRight(label+part, " "))
		label = strings.Repeat(" ", len(label))
	}
}

// paint colours the verdict that s starts with.
func (p *page) paint(s string) string {
	if !p.o.Color {
		return s
	}
	for verdict, color := range map[string]string{
		string(result.Holds): "32", string(result.Broken): "31", string(result.Hung): "31",
		string(result.Unsupported): "33", string(result.Unproven): "33", // of a protocol, too
		string(result.ProtocolSafe): "32", string(result.ProtocolUnsafe): "31",
	} {
		if rest, found := strings.CutPrefix(s, verdict+" ("); found {
			return "\x1b[" + color + "m" + verdict + "\x1b[0m (" + rest
		}
	}
	return s
}

func sentence(t *result.Target) string {
	if t.Sentence == "" {
		return t.Name + ": no verdict was reached."
	}
	return t.Sentence
}

// Footnotes number the warnings of a target's findings; the same warning has one number.
type footnotes struct {
	texts  []string
	number map[string]int
}

func newFootnotes(t *result.Target) *footnotes {
	n := &footnotes{number: map[string]int{}}
	for _, f := range t.Findings {
		for _, w := range f.Warnings {
			if n.number[w] == 0 {
				n.texts = append(n.texts, w)
				n.number[w] = len(n.texts)
			}
		}
	}
	return n
}

// marks are the numbers of a finding's warnings, as they stand behind the promise.
func (n *footnotes) marks(f *result.Finding) string {
	s := ""
	for _, w := range f.Warnings {
		s += fmt.Sprintf(" [%d]", n.number[w])
	}
	return s
}
