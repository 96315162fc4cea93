package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// A layout is one way to make the table narrower.
type layout struct {
	shortControl bool // "312/400" for "fired 312/400"
	wrapVerdict  bool
	without      []string
}

// layouts go from the fullest table to the smallest. Promise, verdict and violations always stay.
func layouts() []layout {
	return []layout{
		{},
		{shortControl: true},
		{shortControl: true, wrapVerdict: true},
		{without: []string{"note"}},
		{shortControl: true, without: []string{"note"}},
		{shortControl: true, wrapVerdict: true, without: []string{"note"}},
		{shortControl: true, without: []string{"p50", "note"}},
		{shortControl: true, wrapVerdict: true, without: []string{"p50", "note"}},
		{shortControl: true, wrapVerdict: true, without: []string{"contested", "p50", "note"}},
		{shortControl: true, wrapVerdict: true, without: []string{"contested", "95 % bound", "p50", "note"}},
		{shortControl: true, wrapVerdict: true, without: []string{"contested", "95 % bound", "control", "p50", "note"}},
	}
}

const (
	promiseWidth = 28
	verdictWidth = 16 // "holds (process),"
	controlWidth = 8
	noteLeast    = 22
	noteMost     = 50
	noteLines    = 2
	gap          = 2
)

// A grid is the table's text: columns of cells of lines, the header first.
type grid struct {
	columns []column
	cells   [][][]string
}

// fit arranges the rows for a terminal of so many columns and names the columns that had to go.
func fit(rows [][]string, width int) (*grid, []string) {
	for _, l := range layouts() {
		if g := arrange(rows, l, width); width < 1 || g.width() <= width {
			return g, l.without
		}
	}
	least := layouts()[len(layouts())-1]
	return arrange(rows, least, width), least.without
}

func arrange(rows [][]string, l layout, width int) *grid {
	g := new(grid)
	for i, c := range columns() {
		if slices.Contains(l.without, c.name) {
			continue
		}
		cells := [][]string{{c.name}}
		if c.name == "95 % bound" {
			cells[0] = []string{"95 %", "bound"}
		}
		limit := l.limit(c.name, width-g.width()-gap)
		for _, row := range rows {
			cells = append(cells, l.lines(c.name, row[i], limit))
		}
		g.columns, g.cells = append(g.columns, c), append(g.cells, cells)
	}
	return g
}

func (l layout) lines(name, cell string, limit int) []string {
	if l.shortControl && name == "control" {
		cell = strings.TrimPrefix(cell, "fired ")
	}
	lines := wrap(cell, limit)
	if name == "note" && len(lines) > noteLines {
		lines = lines[:noteLines] // the evidence under the table has it whole
		last := &lines[noteLines-1]
		*last = strings.TrimRight(prefix(*last, limit-len(" ...")), " ") + " ..."
	}
	return lines
}

// limit is the width at which a column wraps; left is what the columns before it have left.
func (l layout) limit(name string, left int) int {
	switch {
	case name == "promise":
		return promiseWidth
	case name == "note":
		return min(max(left, noteLeast), noteMost)
	case l.wrapVerdict && name == "verdict":
		return verdictWidth
	case l.shortControl && name == "control":
		return controlWidth
	}
	return 0
}

func (g *grid) width() int {
	total := 0
	for _, cells := range g.cells {
		total += widest(cells) + gap
	}
	return max(total-gap, 0)
}

func widest(cells [][]string) int {
	width := 0
	for _, line := range slices.Concat(cells...) {
		width = max(width, columnsOf(line))
	}
	return width
}

// render draws the grid.
func (g *grid) render() (string, error) {
	var buf bytes.Buffer
	table := tablewriter.NewTable(&buf, tableOptions(g.columns)...)
	for i := range g.cells[0] {
		line := make([]any, len(g.columns))
		for j, cells := range g.cells {
			line[j] = strings.Join(cells[i], "\n")
		}
		if i == 0 {
			table.Header(line...)
		} else if err := table.Append(line...); err != nil {
			return "", fmt.Errorf("lay out table: %w", err)
		}
	}
	if err := table.Render(); err != nil {
		return "", fmt.Errorf("lay out table: %w", err)
	}
	return trimLines(buf.String()), nil
}

// paintVerdicts colours a rendered grid. Colours in the cells would do, but for the reset that tablewriter then
// puts behind the padding of every one.
func (g *grid) paintVerdicts(text string, paint func(string) string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		before := prefix(line, widest(g.cells[0])+gap)
		lines[i] = before + paint(line[len(before):])
	}
	return strings.Join(lines, "\n")
}

func tableOptions(columns []column) []tablewriter.Option {
	align, padding := make([]tw.Align, len(columns)), make([]tw.Padding, len(columns))
	for i, c := range columns {
		padding[i] = tw.Padding{Right: strings.Repeat(" ", gap), Overwrite: true}
		align[i] = tw.AlignLeft
		if c.right {
			align[i] = tw.AlignRight
		}
	}
	padding[len(padding)-1].Right = ""
	cell := tw.CellConfig{
		// Auto-format would print "p99 µs" as "P 99 ΜS".
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Alignment:  tw.CellAlignment{PerColumn: align},
		Padding:    tw.CellPadding{PerColumn: padding},
	}
	return []tablewriter.Option{
		tablewriter.WithConfig(tablewriter.Config{Header: cell, Row: cell}),
		tablewriter.WithEastAsian(tw.Off), // as columnsOf does
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbolCustom("plain").WithRow("-").WithColumn("").WithCenter("-"),
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.On},
			},
		})),
	}
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}
