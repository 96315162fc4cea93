package report

import (
	"bytes"
	"encoding/csv"
	"io"
	"strconv"

	"github.com/claimbench/claimbench/internal/result"
)

// A Named is a result file and what it is called in a comparison.
type Named struct {
	Name string
	File *result.File
}

// A CompareFormat is one way to write a comparison.
type CompareFormat struct {
	Name  string
	Write func(io.Writer, []Named, TextOptions) error
}

// CompareFormats is every such format, in the order in which help texts list them.
var CompareFormats = []CompareFormat{{"table", compareText}, {"markdown", compareMarkdown}, {"csv", compareCSV}}

func compareText(w io.Writer, files []Named, o TextOptions) error {
	p := &page{o: o}
	for _, s := range compareSheets(files) {
		if _, err := p.sheet(s); err != nil {
			return err
		}
		p.line("", "")
	}
	_, err := w.Write(append(bytes.TrimRight(p.out.Bytes(), "\n"), '\n'))
	return err
}

func compareMarkdown(w io.Writer, files []Named, _ TextOptions) error {
	var out bytes.Buffer
	for _, s := range compareSheets(files) {
		s.markdown(&out)
	}
	_, err := w.Write(append(bytes.TrimRight(out.Bytes(), "\n"), '\n'))
	return err
}

func compareSheets(files []Named) []*sheet {
	var sheets []*sheet
	for _, c := range comparisons(files) {
		sheets = append(sheets, c.sheets()...)
	}
	if len(sheets) == 0 {
		sheets = append(sheets, &sheet{title: "Nothing was surveyed."})
	}
	return sheets
}

// compareCSV writes a line for each row and each file but the first, in base units.
func compareCSV(w io.Writer, files []Named, _ TextOptions) error {
	out := csv.NewWriter(w)
	out.Write([]string{"baseline", "file", "target", "section", "name", "variant", "measure", "baseline_value", "value", // Error has its error
		"delta_percent", "p", "baseline_n", "n", "difference"})
	for _, c := range comparisons(files) {
		for _, s := range c.sections {
			for _, row := range s.rows {
				for i := 1; i < len(row.sides); i++ {
					if row.sides[0].cell != "" || row.sides[i].cell != "" {
						out.Write(csvComparison(c, s, row, i))
					}
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvComparison(c *comparison, s section, row compared, i int) []string {
	base, other := row.sides[0], row.sides[i]
	record := []string{c.files[0].Name, c.files[i].Name, c.target, s.name, row.name, row.variant, row.inUnit, base.raw, other.raw}
	if t := other.test; t != nil {
		return append(record, t.percent(), float(t.P), strconv.Itoa(t.N1), strconv.Itoa(t.N2), t.warning())
	}
	return append(record, "", "", "", "", other.mark)
}

// A comparison is one target in all files, the first of which the others are compared to.
type comparison struct {
	files    []Named
	target   string
	targets  []*result.Target // nil in a file that does not have it
	sections []section
}

type section struct {
	name  string // protocols, promises or a workload
	title string
	rows  []compared
	times bool
}

// A compared is one row: what each file says of the same thing.
type compared struct {
	name, variant, measure string
	inUnit                 string // the measure, with the unit of the raw values
	sides                  []side
}

// What a row can be marked with, beside its change.
const (
	onlyInA     = "only in A"
	notInA      = "not in A"
	notCompared = "not compared: "
)

// countsMeasure is the measure of a row of counts.
const countsMeasure = "counts"

// A side is what one file says, and how it differs from what the first file says.
type side struct {
	cell string // "" where the file says nothing
	raw  string // in base units
	mark string
	test *test // of a timing
}

// comparisons pair the targets of the first file with those of the others: by name or, where both files have
// only one, that one.
func comparisons(files []Named) []*comparison {
	var all []*comparison
	for i := range files[0].File.Targets {
		t := &files[0].File.Targets[i]
		c := &comparison{files: files, target: t.Name, targets: []*result.Target{t}}
		for _, other := range files[1:] {
			c.targets = append(c.targets, counterpart(files[0].File, other.File, t))
		}
		all = append(all, c.fill())
	}
	for i, other := range files[1:] {
		for j := range other.File.Targets {
			if t := &other.File.Targets[j]; !paired(all, i+1, t) {
				c := &comparison{files: files, target: t.Name, targets: make([]*result.Target, len(files))}
				c.targets[i+1] = t
				for k := i + 2; k < len(files); k++ {
					c.targets[k] = named(files[k].File, t.Name)
				}
				all = append(all, c.fill())
			}
		}
	}
	return all
}

func paired(all []*comparison, file int, t *result.Target) bool {
	for _, c := range all {
		if c.targets[file] == t {
			return true
		}
	}
	return false
}

func counterpart(first, other *result.File, t *result.Target) *result.Target {
	if len(first.Targets) == 1 && len(other.Targets) == 1 {
		return &other.Targets[0]
	}
	return named(other, t.Name)
}

func named(f *result.File, name string) *result.Target {
	for i := range f.Targets {
		if f.Targets[i].Name == name {
			return &f.Targets[i]
		}
	}
	return nil
}

func (c *comparison) fill() *comparison {
	c.sections = append(c.sections, c.protocols(), c.promises())
	for _, w := range c.workloads() {
		c.sections = append(c.sections, c.counts(w), c.timings(w))
	}
	return c
}
