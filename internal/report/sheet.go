package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A head is what a column of a sheet is called, and how it gives way when the sheet is too wide.
type head struct {
	name  string
	right bool
	text  int    // of a sentence, which wraps at what the other columns leave: the least that it needs
	wrap  int    // the width at which it wraps in a sheet that is too wide; 0 is never
	cut   string // in a sheet that is too wide, cells end before this, if they still differ then
	drop  int    // the highest goes first; 0 always stays
	below bool   // if it goes, its cells are listed under the table
	blank string // a column of nothing but this says nothing; "" is "-"
	means string // what a reader may have to look up
}

// A sheet is one table, before it is known how and how wide it will be written. Its cells are plain.
type sheet struct {
	title string
	heads []head
	rows  [][]string // one cell for each head
	notes []string   // belong to the table
	loud  []string   // notes that nobody may miss
}

func (h head) isBlank(cell string) bool { return cell == "-" || cell == h.blank && h.blank != "" }

// condense leaves out the columns that say nothing, and notes those that are 0 in every row.
func (s *sheet) condense() *sheet {
	var zero []string
	for i := len(s.heads) - 1; i >= 0; i-- {
		h := s.heads[i]
		if !s.saysNothing(i) {
			continue
		}
		if h.blank == "0" && slices.ContainsFunc(s.rows, func(row []string) bool { return row[i] == "0" }) {
			zero = append(zero, h.name)
		}
		s.remove(i)
	}
	if len(zero) > 0 && len(s.rows) > 0 {
		slices.Reverse(zero)
		s.notes = append([]string{"0 in every row: " + strings.Join(zero, ", ") + "."}, s.notes...)
	}
	return s
}

func (s *sheet) saysNothing(column int) bool {
	return !slices.ContainsFunc(s.rows, func(row []string) bool { return !s.heads[column].isBlank(row[column]) })
}

// note adds a note once.
func (s *sheet) note(text string) {
	if !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

func (s *sheet) remove(i int) {
	s.heads = slices.Delete(slices.Clone(s.heads), i, i+1)
	rows := make([][]string, len(s.rows))
	for j, row := range s.rows {
		rows[j] = slices.Delete(slices.Clone(row), i, i+1)
	}
	s.rows = rows
}

// fit makes the sheet at most so many columns wide: first what is the same in every row is said once under the
// table, then columns go. It leaves s as it was.
func (s *sheet) fit(width int) (fitted *sheet, without []string) {
	t := *s
	if width < 1 || t.grid(0).width() <= width {
		return &t, nil
	}
	t.fold()
	t.cut()
	for t.grid(width).width() > width {
		next := -1
		for i, h := range t.heads {
			if h.drop > 0 && (next < 0 || h.drop > t.heads[next].drop) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		if h := t.heads[next]; h.below {
			t.list(next)
		} else {
			without = append(without, h.name)
		}
		t.remove(next)
	}
	slices.Reverse(without)
	return &t, without
}

// fold takes out the columns that may go and are the same in every row.
func (t *sheet) fold() {
	var same []string
	for i := len(t.heads) - 1; i >= 0 && len(t.rows) > 1; i-- {
		first := t.rows[0][i]
		if t.heads[i].drop == 0 || slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != first }) {
			continue
		}
		same = append(same, t.heads[i].name+" "+first)
		t.remove(i)
	}
	if len(same) > 0 {
		slices.Reverse(same)
		t.notes = append([]string{"In every row: " + strings.Join(same, ", ") + "."}, t.notes...)
	}
}

func (t *sheet) cut() {
	for i, h := range t.heads {
		short := map[string]string{}
		taken := map[string]bool{}
		for _, row := range t.rows {
			if _, seen := short[row[i]]; !seen {
				short[row[i]], _, _ = strings.Cut(row[i], h.cut)
				taken[short[row[i]]] = true
			}
		}
		if h.cut == "" || len(taken) < len(short) {
			continue
		}
		rows := make([][]string, len(t.rows))
		for j, row := range t.rows {
			rows[j] = slices.Clone(row)
			rows[j][i] = short[row[i]]
		}
		t.rows = rows
	}
}

// list puts a column's cells under the table, each text once with the rows that have it.
func (t *sheet) list(column int) {
	var texts []string
	rows := map[string][]string{}
	for _, row := range t.rows {
		text := row[column]
		if t.heads[column].isBlank(text) {
			continue
		}
		if rows[text] == nil {
			texts = append(texts, text)
		}
		rows[text] = append(rows[text], row[0])
	}
	for _, text := range texts {
		t.notes = append(t.notes, strings.Join(rows[text], ", ")+": "+text)
	}
}

const headLeast = 8 // a header of so many columns does not wrap

// grid lays the sheet out. Without a width nothing is wrapped but sentences.
func (t *sheet) grid(width int) *grid {
	g := new(grid)
	texts, left := 0, width
	for i, h := range t.heads {
		if h.text > 0 {
			texts++
			continue
		}
		left -= widest(t.column(i, h.wrap)) + gap
	}
	for i, h := range t.heads {
		limit := 0
		switch {
		case h.text > 0 && width > 0:
			limit = max((left-(texts-1)*gap)/texts, h.text)
		case h.text > 0:
			limit = noteMost
		case width > 0:
			limit = h.wrap
		}
		g.columns = append(g.columns, column{name: h.name, right: h.right})
		g.cells = append(g.cells, t.column(i, limit))
	}
	return g
}

// column is a column of cells of lines. The header breaks where it is wider than the cells.
func (t *sheet) column(i, limit int) [][]string {
	cells := make([][]string, 1, len(t.rows)+1)
	for _, row := range t.rows {
		cells = append(cells, wrapName(clean(row[i]), limit))
	}
	name := clean(t.heads[i].name)
	cells[0] = wrap(name, max(longestWord(name), widest(cells[1:]), headLeast))
	return cells
}

// wrapName is wrap that may also break behind a slash, as in the name of a variant of a protocol.
func wrapName(s string, limit int) []string {
	if limit < 1 || columnsOf(s) <= limit {
		return []string{s}
	}
	lines := wrap(strings.ReplaceAll(s, "/", "/ "), limit)
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "/ ", "/")
	}
	return lines
}

func longestWord(s string) int {
	longest := 1
	for word := range strings.FieldsSeq(s) {
		longest = max(longest, columnsOf(word))
	}
	return longest
}

// sheet writes one table with its title and notes, and names the columns that it had no room for.
func (p *page) sheet(s *sheet) (without []string, err error) {
	if s.title != "" {
		p.line("", s.title)
	}
	for _, note := range s.loud {
		p.line("! ", note)
	}
	if len(s.rows) > 0 {
		s, without = s.fit(p.o.Width)
		g := s.grid(p.o.Width)
		text, err := g.render()
		if err != nil {
			return nil, err
		}
		p.out.WriteString(g.paintVerdicts(text, p.paint))
		if len(without) > 0 {
			p.line("", fmt.Sprintf("(Not shown at %d columns: %s.)", p.o.Width, strings.Join(without, ", ")))
		}
	}
	for _, note := range s.notes {
		p.line("- ", note)
	}
	return without, nil
}

func (s *sheet) markdown(out *bytes.Buffer) {
	if s.title != "" {
		fmt.Fprintf(out, "**%s**\n\n", escape(s.title))
	}
	for _, note := range s.loud {
		fmt.Fprintf(out, "**%s**\n\n", escape(note))
	}
	if len(s.rows) > 0 {
		s.markdownTable(out)
		fmt.Fprintln(out)
	}
	for _, note := range s.notes {
		fmt.Fprintf(out, "- %s\n", escape(note))
	}
	if len(s.notes) > 0 {
		fmt.Fprintln(out)
	}
}

func (s *sheet) markdownTable(out *bytes.Buffer) {
	names, rules := make([]string, len(s.heads)), make([]string, len(s.heads))
	for i, h := range s.heads {
		names[i], rules[i] = escape(h.name), "---"
		if h.right {
			rules[i] = "---:"
		}
	}
	markdownRow(out, names)
	markdownRow(out, rules)
	for _, row := range s.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = escape(cell)
		}
		markdownRow(out, cells)
	}
}

func markdownRow(out *bytes.Buffer, cells []string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}
