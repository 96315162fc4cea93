package report

import (
	"cmp"
	"fmt"
	"strings"
)

// letter names a file in the heads of the tables.
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprint("file ", i+1)
}

func (c *comparison) sheets() []*sheet {
	sheets := []*sheet{c.about()}
	for _, s := range c.sections {
		if len(s.rows) == 0 {
			continue
		}
		mark, alone := s.alone()
		switch {
		case !alone:
			sheets = append(sheets, c.sheet(s))
		case !s.times: // their counts have said it
			sheets = append(sheets, &sheet{title: s.title + " (" + mark + ")"})
		}
	}
	return sheets
}

// alone is whether all rows of a section are in the first file only, or all in the others only.
func (s section) alone() (mark string, alone bool) {
	mark = s.rows[0].sides[1].mark
	for _, row := range s.rows {
		for _, side := range row.sides[1:] {
			if side.mark != mark {
				return "", false
			}
		}
	}
	return mark, mark == onlyInA || mark == notInA
}

// about is what the files are, a column each, and how much of them differs.
func (c *comparison) about() *sheet {
	s := &sheet{title: cmp.Or(c.target, "-"), heads: []head{{name: ""}}}
	facts := []string{"file", "host", "kernel", "filesystem", "target", "run", "scope", "tool"}
	for i, name := range facts {
		row := []string{name}
		for j := range c.files {
			row = append(row, cmp.Or(c.facts(j)[i], "-"))
		}
		s.rows = append(s.rows, row)
	}
	for i, f := range c.files {
		s.heads = append(s.heads, head{name: letter(i), text: 16})
		if f.File.Incomplete != "" {
			s.loud = append(s.loud, "INCOMPLETE: "+letter(i)+": "+stop(f.File.Incomplete))
		}
		if i > 0 {
			s.notes = append(s.notes, c.summary(i))
		}
	}
	return s
}

func (c *comparison) facts(i int) []string {
	f, t := c.files[i], c.targets[i]
	if t == nil {
		return []string{f.Name, f.File.Host.Name, f.File.Host.Kernel, "", "not surveyed", "", "", ""}
	}
	facts := append([]string{f.Name}, placeCells(place{f.File, t})...)
	return append(facts, string(t.Scope), f.File.Tool.Version)
}

// summary counts what differs, and what could not be compared.
func (c *comparison) summary(i int) string {
	var verdicts, counts, times, tested, not, one int
	for _, s := range c.sections {
		for _, row := range s.rows {
			side := row.sides[i]
			differs := strings.HasPrefix(strings.ToLower(side.mark), "differs")
			switch {
			case side.mark == onlyInA, side.mark == notInA:
				one++
			case strings.HasPrefix(side.mark, notCompared):
				not++
			case side.test != nil:
				tested++
				if side.test.significant() {
					times++
				}
			case differs && row.measure == "":
				verdicts++
			case differs:
				counts++
			}
		}
	}
	return fmt.Sprintf("%s to A: verdicts that differ: %s; counts of the bench: %s; times and rates, significantly: %s of %s (by chance 1 in 20); not compared: %s; in one file only: %s.",
		letter(i), group(verdicts), group(counts), group(times), group(tested), group(not), group(one))
}

func (c *comparison) sheet(s section) *sheet {
	out := &sheet{title: s.title, heads: []head{
		{name: "name", wrap: nameWidth}, {name: "variant", wrap: nameWidth}, {name: "measure", wrap: 10, blank: countsMeasure},
	}}
	for i := range c.files {
		out.heads = append(out.heads, head{name: letter(i), wrap: 13})
		if i > 0 {
			out.heads = append(out.heads, head{name: letter(i) + " to A", text: 16})
		}
	}
	for _, row := range s.rows {
		cells := []string{row.name, cmp.Or(row.variant, "-"), cmp.Or(row.measure, "-")}
		for i, side := range row.sides {
			cells = append(cells, cmp.Or(side.cell, "-"))
			if i > 0 {
				cells = append(cells, cmp.Or(side.mark, "same"))
			}
			if t := side.test; t != nil && t.warning() != "" {
				out.note("~: " + stop(t.warning()))
			}
		}
		out.rows = append(out.rows, cells)
	}
	for i := 2; i > 0; i-- {
		if out.saysNothing(i) {
			out.remove(i)
		}
	}
	return out
}
