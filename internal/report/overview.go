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

// A Published is a result with a page of its own beside that of all results, called as the result with .md, and what
// was known of its target before. Of a target that nobody expected anything of there is only the result.
type Published struct {
	Named
	About      string     // what the target is, in one line
	Expected   []Expected // in the order of tables
	Deviations []string   // from what is expected, a line each
	Unproven   []string   // what there was too little evidence of, a line each
}

// An Expected is what is expected of a promise or a protocol, or what a manual says of it.
type Expected struct {
	Name    string
	Verdict string // "" is nothing in particular: a promise holds
	Because string
	Claim   string // of the manual
}

// Overview writes the page of all results: what was surveyed, what was found of each promise, which protocol may be used
// where, how often forty contenders did one work, and what manuals say. A row is a target in each of its tables.
// Missing are targets that have no result here.
func Overview(w io.Writer, files []Published, missing []string) error {
	var out bytes.Buffer
	fmt.Fprint(&out, "# Results\n\nWritten from the result files in this directory by `go test ./results -rewrite`; not edited by hand. "+
		"The page of a target has all figures, the evidence, and what to change.\n\n")
	rows := overviewRows(files)
	fmt.Fprint(&out, "## What was surveyed\n\n")
	overviewTargets(&out, files, rows)
	if len(missing) > 0 {
		fmt.Fprintf(&out, "Targets of the lab without a result here: %s.\n\n", escape(strings.Join(missing, ", ")))
	}
	overviewDeviations(&out, files)
	fmt.Fprint(&out, "## What the filesystems promise\n\n")
	overviewPromises(&out, rows)
	fmt.Fprint(&out, "## Which protocol may be used where\n\n")
	overviewProtocols(&out, rows)
	fmt.Fprint(&out, "## Forty contenders, one key\n\n")
	overviewForty(&out, rows)
	overviewClaims(&out, files)
	_, err := w.Write(append(bytes.TrimRight(out.Bytes(), "\n"), '\n'))
	return err
}

// An overviewRow is a target, as it is called in every table.
type overviewRow struct {
	place
	published *Published
	name      string
}

func overviewRows(files []Published) []overviewRow {
	var rows []overviewRow
	for i := range files {
		f := &files[i]
		for _, p := range places([]*result.File{f.File}) {
			name := f.Name
			if len(f.File.Targets) > 1 {
				name += ": " + p.target.Name
			}
			rows = append(rows, overviewRow{p, f, name})
		}
	}
	return rows
}

// link is Markdown.
func (f *Published) link(name string) string {
	return fmt.Sprintf("[%s](%s.md)", escape(name), url.PathEscape(f.Name))
}

func (r *overviewRow) cells() []string {
	return []string{r.published.link(r.name), string(r.target.Scope)}
}

func overviewTargets(out *bytes.Buffer, files []Published, rows []overviewRow) {
	markdownHeads(out, "target", "what it is", "filesystem, options", "scope", "hosts", "routes", "kernel", "run", "promises", "as expected", "repeat it")
	var incomplete []string
	for i := range files {
		f := &files[i]
		for _, r := range rows {
			if r.published == f {
				t := r.target
				markdownRow(out, f.cells(r.name, mount(t), string(t.Scope), fmt.Sprint(max(1, len(f.File.Hosts))), fmt.Sprint(len(t.Routes)), verdictCounts(t)))
			}
		}
		why := stop(f.File.Incomplete)
		if len(f.File.Targets) == 0 {
			markdownRow(out, f.cells(f.Name, "", "", "", "", cmp.Or(why, "Nothing was surveyed.")))
		} else if why != "" {
			line := fmt.Sprintf("- **INCOMPLETE: %s: %s**", escape(f.Name), escape(why))
			for _, b := range bequests(f.File) {
				line += " " + escape(b)
			}
			incomplete = append(incomplete, line)
		}
	}
	fmt.Fprintln(out)
	for _, line := range incomplete {
		fmt.Fprintf(out, "%s\n\n", line)
	}
}

// cells are those of a row of targets; the last ones are what was made where.
func (f *Published) cells(name, mount, scope, hosts, routes, found string) []string {
	h := &f.File.Host
	kernel := h.Kernel
	if h.Virtualization == "uml" {
		kernel = strings.TrimSpace(kernel + " (uml)")
	}
	cells := []string{f.link(name)}
	for _, c := range []string{f.About, mount, scope, hosts, routes, kernel, f.File.Started.UTC().Format("2006-01-02"), found} {
		cells = append(cells, escape(cmp.Or(c, "-")))
	}
	return append(cells, f.asExpected(), cmp.Or(f.repeat(), "-"))
}

// repeat is the command that makes such a result again; "" is not known. It is Markdown.
func (f *Published) repeat() string {
	if f.File.Lab == "" {
		return ""
	}
	return "`claimbench lab run " + strings.ReplaceAll(clean(f.File.Lab), "`", "") + "`"
}

// asExpected is Markdown.
func (f *Published) asExpected() string {
	switch {
	case f.File.Lab == "":
		return "-"
	case len(f.Deviations) > 0:
		return fmt.Sprintf("**no: %d**", len(f.Deviations))
	case len(f.Unproven) > 0:
		return fmt.Sprintf("unproven: %d", len(f.Unproven))
	}
	return "yes"
}

func overviewDeviations(out *bytes.Buffer, files []Published) {
	if !slices.ContainsFunc(files, func(f Published) bool { return len(f.Deviations) > 0 }) {
		return
	}
	fmt.Fprint(out, "**Not as expected:**\n\n")
	for _, f := range files {
		for _, d := range f.Deviations {
			fmt.Fprintf(out, "- %s\n", escape(d))
		}
	}
	fmt.Fprintln(out)
}

// mount is the filesystem behind the first route and those of its options that bear on a promise and are not what most
// mounts have.
func mount(t *result.Target) string {
	if len(t.Routes) == 0 {
		return ""
	}
	r := &t.Routes[0]
	parts := []string{fsName(t)}
	for _, o := range options(r, false) {
		if !slices.Contains(usual, o) && !(r.NFS != nil && strings.HasPrefix(o, "vers=")) {
			parts = append(parts, o)
		}
	}
	return strings.Join(parts, ", ")
}

// usual are options of most NFS and SMB mounts, and of FUSE mounts by root. The page of a target has them.
var usual = []string{"hard", "proto=tcp", "sec=sys", "acregmin=3", "acregmax=60", "acdirmin=30", "acdirmax=60",
	"soft", "noforceuid", "noforcegid", "serverino", "mapposix", "iocharset=utf8", "echo_interval=60", "closetimeo=1",
	"allow_other", "default_permissions"}

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

func markdownHeads(out *bytes.Buffer, names ...string) {
	markdownRow(out, names)
	markdownRow(out, slices.Repeat([]string{"---"}, len(names)))
}
