package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// A place is where rows were measured.
type place struct {
	file   *result.File
	target *result.Target
}

func places(files []*result.File) []place {
	var all []place
	for _, f := range files {
		for i := range f.Targets {
			all = append(all, place{f, &f.Targets[i]})
		}
	}
	return all
}

// The tables that any file has. The others are the workloads of the bench.
const (
	tablePromises  = "promises"
	tableProtocols = "protocols"
	tableBench     = "bench" // every workload
)

// Tables names the tables that the files can be shown side by side in.
func Tables(files []*result.File) []string {
	names := []string{tableProtocols, tablePromises, tableBench}
	for _, c := range captions() {
		names = append(names, c[0])
	}
	for _, w := range workloads(targetsOf(files)...) {
		if !slices.Contains(names, w) {
			names = append(names, w)
		}
	}
	return names
}

func targetsOf(files []*result.File) []*result.Target {
	var targets []*result.Target
	for _, p := range places(files) {
		targets = append(targets, p.target)
	}
	return targets
}

// workloadsNamed is the workload of that name, or all of them.
func workloadsNamed(files []*result.File, table string) []string {
	if table == tableBench {
		return workloads(targetsOf(files)...)
	}
	return []string{table}
}

func sideText(w io.Writer, files []*result.File, o TextOptions) error {
	p := &page{o: o}
	if err := p.sheets(sideSheets(files, o.Table)); err != nil {
		return err
	}
	_, err := w.Write(append(bytes.TrimRight(p.out.Bytes(), "\n"), '\n'))
	return err
}

func sideMarkdown(w io.Writer, files []*result.File, table string) error {
	var out bytes.Buffer
	markdownSheets(&out, sideSheets(files, table))
	_, err := w.Write(append(bytes.TrimRight(out.Bytes(), "\n"), '\n'))
	return err
}

func sideSheets(files []*result.File, table string) []*sheet {
	var sheets []*sheet
	switch table {
	case tableProtocols:
		sheets = append(sheets, sideProtocols(places(files)))
	case tablePromises:
		sheets = append(sheets, sidePromises(places(files)))
	default:
		for _, w := range workloadsNamed(files, table) {
			sheets = append(sheets, sideBench(places(files), w))
		}
	}
	if len(sheets) == 0 {
		sheets = append(sheets, &sheet{title: "No file has a bench."})
	}
	return sheets
}

// sideways is a table of several places: what a row is called, where it was measured, and its other cells. Rows of
// one name stand together, those of the files in their order.
type sideways struct {
	sheet
	first int // so many heads name a row; behind them are those of the place
}

func newSideways(title string, heads []head, first int) *sideways {
	return &sideways{sheet{title: title, heads: slices.Insert(heads, first, placeHeads()...)}, first}
}

func placeHeads() []head {
	return []head{
		{name: "host", wrap: 12, cut: "."},
		{name: "kernel", drop: 80, wrap: 16},
		{name: "filesystem", wrap: 14},
		{name: "target", wrap: 24},
		{name: "run", wrap: 10},
	}
}

func (s *sideways) add(p place, cells []string) {
	s.rows = append(s.rows, slices.Insert(cells, s.first, placeCells(p)...))
}

func placeCells(p place) []string {
	cells := []string{p.file.Host.Name, p.file.Host.Kernel, fsName(p.target), p.target.Name, p.file.Started.UTC().Format("2006-01-02 15:04 UTC")}
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
	}
	return cells
}

// fsName is the filesystem behind the first route; a share has the same behind each.
func fsName(t *result.Target) string {
	if len(t.Routes) == 0 || t.Routes[0].FSType == "" {
		return ""
	}
	name := t.Routes[0].FSType
	if nfs := t.Routes[0].NFS; nfs != nil && nfs.Version != "" {
		name += " " + nfs.Version
	}
	return name
}

// done groups the rows, and leaves target and run out where the other columns tell places apart.
func (s *sideways) done(all []place) *sheet {
	var order []string
	key := func(row []string) string { return strings.Join(row[:s.first], "\x00") }
	for _, row := range s.rows {
		if k := key(row); !slices.Contains(order, k) {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(s.rows, func(a, b []string) int { return slices.Index(order, key(a)) - slices.Index(order, key(b)) })
	withTarget := func(p place) string { return whereabouts(p) + "\x00" + p.target.Name }
	run := s.first + len(placeHeads()) - 1
	if distinct(all, withTarget) {
		s.remove(run)
	}
	if distinct(all, whereabouts) || !distinctTargets(all) {
		s.remove(run - 1)
	}
	return s.condense()
}

func distinct(all []place, name func(place) string) bool {
	seen := map[string]bool{}
	for _, p := range all {
		seen[name(p)] = true
	}
	return len(seen) == len(all)
}

// distinctTargets is whether the names of targets tell apart anything that host and filesystem do not.
func distinctTargets(all []place) bool {
	first := map[string]string{}
	for _, p := range all {
		if name, seen := first[whereabouts(p)]; seen && name != p.target.Name {
			return true
		}
		first[whereabouts(p)] = p.target.Name
	}
	return false
}

func whereabouts(p place) string {
	return fmt.Sprintf("%s (%s, scope %s)", p.file.Host.Name, fsName(p.target), p.target.Scope)
}

func sideProtocols(all []place) *sheet {
	heads := protocolHeads()
	heads[len(heads)-1].below = false // it differs from host to host
	heads[len(heads)-2].text = 20     // beside a host and a filesystem in 80 columns
	s := newSideways("protocols: which may be used where", heads, 1)
	for _, p := range all {
		for i := range p.target.Protocols {
			s.add(p, protocolCells(&p.target.Protocols[i]))
		}
		s.absent(p, len(p.target.Protocols), "no protocol was judged")
	}
	return s.done(all)
}

func sidePromises(all []place) *sheet {
	var heads []head
	for _, c := range columns() {
		heads = append(heads, head{name: c.name, right: c.right, text: map[string]int{"note": noteLeast}[c.name], drop: promiseDrops()[c.name], wrap: promiseWraps()[c.name]})
	}
	s := newSideways("promises", heads, 1)
	for _, p := range all {
		for i := range p.target.Findings {
			var cells []string
			for _, c := range columns() {
				cells = append(cells, c.cell(&p.target.Findings[i]))
			}
			s.add(p, cells)
		}
		s.absent(p, len(p.target.Findings), "no promise was tested")
	}
	return s.done(all)
}

func promiseDrops() map[string]int {
	return map[string]int{"note": 90, "p50": 85, "contested": 30, "control": 20}
}

func promiseWraps() map[string]int {
	return map[string]int{"promise": nameWidth, "verdict": verdictWidth, "control": controlWidth}
}

func sideBench(all []place, workload string) *sheet {
	var heads []head
	for _, c := range benchColumns() {
		if c.name == "scope" {
			c.drop = 0 // evidence at one scope says nothing about a wider one
		}
		heads = append(heads, c.head)
	}
	s := newSideways(caption(workload), heads, 2) // protocol and variant
	for _, p := range all {
		rows := rowsOf(p.target, workload)
		for _, b := range rows {
			s.add(p, benchCells(b))
			s.remark(b.Bench, whereabouts(p))
		}
		s.absent(p, len(rows), "not run")
	}
	return s.done(all)
}

// absent notes what a place has no rows of, or not all.
func (s *sideways) absent(p place, rows int, what string) {
	if p.file.Incomplete != "" {
		s.loud = append(s.loud, "INCOMPLETE: "+whereabouts(p)+": "+stop(p.file.Incomplete))
	}
	if rows == 0 {
		s.notes = append(s.notes, whereabouts(p)+": "+what+".")
	}
}
