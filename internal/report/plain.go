package report

import (
	"bytes"
	"io"
)

// A Table is rows of text under headers, for figures that are in no result file.
type Table struct {
	Title string
	Heads []Head
	Rows  [][]string // a cell for each head
	Notes []string
}

// A Head is a column of a Table.
type Head struct {
	Name  string
	Right bool // for numbers
	Text  int  // of a sentence, which wraps: the least width that it needs; 0 is no sentence
	Drop  int  // in a table that is too wide the highest goes first; 0 always stays
}

func (t *Table) sheet() *sheet {
	s := &sheet{title: t.Title, rows: t.Rows, notes: t.Notes}
	for _, h := range t.Heads {
		s.heads = append(s.heads, head{name: h.Name, right: h.Right, text: h.Text, drop: h.Drop})
	}
	return s
}

// Text writes the table for a terminal of so many columns; 0 is no limit.
func (t *Table) Text(w io.Writer, width int) error {
	p := &page{o: TextOptions{Width: width}}
	if _, err := p.sheet(t.sheet()); err != nil {
		return err
	}
	_, err := p.out.WriteTo(w)
	return err
}

// Markdown writes the table for a page.
func (t *Table) Markdown(w io.Writer) error {
	var out bytes.Buffer
	t.sheet().markdown(&out)
	_, err := out.WriteTo(w)
	return err
}

// Escape makes plain text into text of a Markdown page.
func Escape(text string) string { return escape(text) }
