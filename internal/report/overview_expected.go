package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// MarkdownPublished is Markdown for a published result, with what was expected of it and what manuals say beside what
// was measured.
func MarkdownPublished(w io.Writer, f *Published) error {
	var out bytes.Buffer
	if f.File.Lab != "" {
		fmt.Fprintf(&out, "# %s: %s\n\nTo repeat it: %s\n\n", escape(f.Name), escape(f.About), f.repeat())
	}
	for _, d := range f.Deviations {
		fmt.Fprintf(&out, "**Not as expected: %s**\n\n", escape(stop(d)))
	}
	if err := Markdown(&out, f.files()); err != nil {
		return err
	}
	if f.File.Lab != "" && len(f.File.Targets) > 0 {
		f.expectations(&out)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (f *Published) expectations(out *bytes.Buffer) {
	fmt.Fprint(out, "\n**What was expected, and what a manual says**\n\n")
	if len(f.Expected) == 0 {
		fmt.Fprint(out, "Every promise is expected to hold.\n")
		return
	}
	f.expectedSheet().markdown(out)
	fmt.Fprint(out, "A promise that is not named here is expected to hold.\n")
}

func (f *Published) expectedSheet() *sheet {
	s := &sheet{heads: []head{{name: "promise or protocol"}, {name: "measured"}, {name: "expected"}, {name: "because"}, {name: "a manual says"}}}
	for _, e := range f.Expected {
		s.rows = append(s.rows, []string{e.Name, cmp.Or(f.measured(e.Name), "not tested"), cmp.Or(e.Verdict, "holds"), cmp.Or(e.Because, "-"), cmp.Or(e.Claim, "-")})
	}
	return s.condense()
}

func (f *Published) files() []*result.File { return []*result.File{f.File} }

// measured is what was found of a promise or a protocol; "" is nothing.
func (f *Published) measured(name string) string {
	var all []string
	for _, p := range places(f.files()) {
		for i := range p.target.Findings {
			if found := &p.target.Findings[i]; found.Promise == name {
				all = append(all, verdict(found))
			}
		}
		if v := verdictOf(p.target, name); v != "-" {
			all = append(all, v)
		}
	}
	return strings.Join(all, "; ")
}

// overviewClaims is what manuals say, each claim once for all targets on which the same was found of it.
func overviewClaims(out *bytes.Buffer, files []Published) {
	var rows [][]string // promise, claim, measured, links
	for i := range files {
		f := &files[i]
		for _, e := range f.Expected {
			if e.Claim == "" {
				continue
			}
			row := []string{escape(e.Name), escape(e.Claim), escape(cmp.Or(f.measured(e.Name), "not tested"))}
			at := slices.IndexFunc(rows, func(other []string) bool { return slices.Equal(other[:3], row) })
			if at < 0 {
				rows = append(rows, append(row, f.link(f.Name)))
				continue
			}
			rows[at][3] += ", " + f.link(f.Name)
		}
	}
	if len(rows) == 0 {
		return
	}
	slices.SortStableFunc(rows, func(a, b []string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	fmt.Fprint(out, "## What manuals say\n\n")
	markdownHeads(out, "promise", "a manual says", "measured", "on")
	for _, row := range rows {
		markdownRow(out, row)
	}
	fmt.Fprintln(out)
}
