package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// Overview writes a page of many results: what was surveyed, executions of one key by forty contenders, and which
// protocol may be used where. Each result has a page of its own beside it, called as the result with .md.
func Overview(w io.Writer, files []Named) error {
	var out bytes.Buffer
	fmt.Fprint(&out, "# Results\n\nWritten from the result files in this directory by `go test ./results -rewrite`; not edited by hand.\n\n")
	fmt.Fprint(&out, "## What was surveyed\n\n")
	overviewTargets(&out, files)
	fmt.Fprint(&out, "## Forty contenders, one key\n\n")
	overviewForty(&out, files)
	fmt.Fprint(&out, "## Which protocol may be used where\n\n")
	overviewProtocols(&out, files)
	_, err := w.Write(append(bytes.TrimRight(out.Bytes(), "\n"), '\n'))
	return err
}

func overviewTargets(out *bytes.Buffer, files []Named) {
	markdownRow(out, []string{"result", "host", "kernel", "CPUs", "filesystem", "scope", "run", "promises", "in a sentence"})
	markdownRow(out, slices.Repeat([]string{"---"}, 9))
	for _, f := range files {
		link := fmt.Sprintf("[%s](%s.md)", escape(f.Name), url.PathEscape(f.Name))
		if f.File.Incomplete != "" {
			link += " **INCOMPLETE**"
		}
		for _, p := range places([]*result.File{f.File}) {
			cells := []string{link}
			for _, s := range overviewCells(p) {
				cells = append(cells, escape(cmp.Or(s, "-")))
			}
			markdownRow(out, cells)
		}
		if len(f.File.Targets) == 0 {
			markdownRow(out, []string{link, escape(f.File.Host.Name), "-", "-", "-", "-", "-", "-", "Nothing was surveyed."})
		}
	}
	fmt.Fprintln(out)
}

func overviewCells(p place) []string {
	h := &p.file.Host
	return []string{
		h.Name, h.Kernel, unlessZero(h.CPUs), fsName(p.target), string(p.target.Scope),
		p.file.Started.UTC().Format("2006-01-02"), verdictCounts(p.target), sentence(p.target),
	}
}

// verdictCounts is how many promises have each verdict, in the order of the verdicts.
func verdictCounts(t *result.Target) string {
	var parts []string
	for _, v := range result.Verdicts() {
		n := 0
		for i := range t.Findings {
			if t.Findings[i].Verdict == v {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(parts, ", ")
}

func overviewForty(out *bytes.Buffer, files []Named) {
	all := placesNamed(files)
	if !slices.ContainsFunc(all, func(p place) bool { return len(rowsOf(p.target, "forty")) > 0 }) {
		fmt.Fprint(out, "No result here has this workload yet.\n\n")
		return
	}
	markdownSheets(out, []*sheet{sideBench(all, "forty")})
}

func placesNamed(files []Named) []place {
	var all []*result.File
	for _, f := range files {
		all = append(all, f.File)
	}
	return places(all)
}

// overviewProtocols has a row for each target and a column for each protocol.
func overviewProtocols(out *bytes.Buffer, files []Named) {
	s := &sheet{heads: []head{{name: "result"}, {name: "host"}, {name: "filesystem"}, {name: "scope"}}}
	protocols := protocolNames(placesNamed(files))
	for _, name := range protocols {
		s.heads = append(s.heads, head{name: name})
	}
	for _, f := range files {
		for _, p := range places([]*result.File{f.File}) {
			row := []string{f.Name, p.file.Host.Name, fsName(p.target), string(p.target.Scope)}
			for _, name := range protocols {
				row = append(row, verdictOf(p.target, name))
			}
			s.rows = append(s.rows, row)
		}
	}
	if len(protocols) == 0 {
		fmt.Fprint(out, "No result here judges protocols yet.\n\n")
		return
	}
	s.markdown(out)
}

func protocolNames(all []place) []string {
	var names []string
	for _, p := range all {
		for i := range p.target.Protocols {
			if name := p.target.Protocols[i].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
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
