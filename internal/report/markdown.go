package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// Markdown writes for each target the verdict in a sentence and for each protocol, what was surveyed in a line,
// the whole tables, and what to change.
func Markdown(w io.Writer, files []*result.File) error {
	var out bytes.Buffer
	for _, f := range files {
		if f.Incomplete != "" {
			fmt.Fprintf(&out, "**INCOMPLETE: %s**\n\n", escape(f.Incomplete))
			for _, b := range bequests(f) {
				fmt.Fprintf(&out, "%s\n\n", escape(b))
			}
		}
		if len(f.Targets) == 0 {
			fmt.Fprintf(&out, "Nothing was surveyed.\n\n%s; %s\n\n", escape(host(&f.Host, false)), escape(run(f)))
		}
		for i := range f.Targets {
			markdownTarget(&out, f, &f.Targets[i])
		}
	}
	_, err := w.Write(append(bytes.TrimRight(out.Bytes(), "\n"), '\n'))
	return err
}

func markdownTarget(out *bytes.Buffer, f *result.File, t *result.Target) {
	fmt.Fprintf(out, "**%s**\n\n", escape(sentence(t)))
	if len(t.Protocols) > 0 {
		protocolSheet(t.Protocols).markdown(out)
		markdownReasons(out, t.Protocols)
	}
	facts := []string{host(&f.Host, false)}
	for i := range t.Routes {
		facts = append(facts, route(t, i, false))
	}
	facts = append(facts, run(f))
	fmt.Fprintf(out, "%s\n\n", escape(strings.Join(facts, " · ")))
	markdownSheets(out, benchSheets(t))
	notes := newFootnotes(t)
	if len(t.Findings) > 0 {
		markdownTable(out, t, notes)
	} else {
		fmt.Fprintln(out, "No promise was tested.")
	}
	fmt.Fprintln(out)
	markdownEvidence(out, t)
	markdownWarnings(out, t, notes)
}

func markdownReasons(out *bytes.Buffer, protocols []result.Protocol) {
	all := reasons(protocols)
	for _, r := range all {
		fmt.Fprintf(out, "- **%s.** %s\n", escape(r[0]), escape(r[1]))
	}
	if len(all) > 0 {
		fmt.Fprintln(out)
	}
}

func markdownTable(out *bytes.Buffer, t *result.Target, notes *footnotes) {
	s := new(sheet)
	for _, c := range columns() {
		s.heads = append(s.heads, head{name: c.name, right: c.right})
	}
	for i := range t.Findings {
		f := &t.Findings[i]
		var cells []string
		for _, c := range columns() {
			cells = append(cells, c.cell(f))
		}
		cells[0] += notes.marks(f)
		s.rows = append(s.rows, cells)
	}
	s.markdownTable(out)
}

// markdownSheets are tables with one legend for all.
func markdownSheets(out *bytes.Buffer, sheets []*sheet) {
	var shown []head
	for _, s := range sheets {
		s.markdown(out)
		shown = append(shown, s.heads...)
	}
	lines := legend(shown)
	for _, line := range lines {
		fmt.Fprintf(out, "- %s\n", escape(line))
	}
	if len(lines) > 0 {
		fmt.Fprintln(out)
	}
}

func markdownEvidence(out *bytes.Buffer, t *result.Target) {
	some := false
	for i := range t.Findings {
		f := &t.Findings[i]
		if f.Verdict == result.Holds || f.Advice == "" && f.Counterexample == nil {
			continue // the row says it all
		}
		some = true
		fmt.Fprintf(out, "- **%s: %s.**", escape(f.Promise), escape(verdict(f)))
		if f.Advice != "" {
			fmt.Fprintf(out, " %s", stop(escape(f.Advice)))
		}
		if f.Counterexample != nil {
			fmt.Fprintf(out, " Seen: %s", stop(escape(f.Counterexample.Sentence)))
		}
		fmt.Fprintln(out)
	}
	if some {
		fmt.Fprintln(out)
	}
}

func markdownWarnings(out *bytes.Buffer, t *result.Target, notes *footnotes) {
	for _, w := range t.Warnings {
		fmt.Fprintf(out, "Warning: %s\n\n", escape(w))
	}
	for i, w := range notes.texts {
		fmt.Fprintf(out, "\\[%d\\] %s\n\n", i+1, escape(w))
	}
}

// stop ends a sentence that does not end itself.
func stop(s string) string {
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}

// escape makes text of a file into text of a page.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "|", `\|`, "<", "&lt;", ">", "&gt;",
		"[", `\[`, "]", `\]`, "~", `\~`, "&", "&amp;").Replace(clean(s))
}
