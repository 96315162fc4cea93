package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// captions say what a workload shows. One that is not here has only its name.
func captions() [][2]string {
	return [][2]string{
		{"forty", "every contender calls once, all for the same key"},
		{"storm", "every contender goes for the same key, trial after trial"},
		{"takeover", "all contenders see an expired claim at once"},
		{"forced", "the named bad interleavings, on the real directory"},
		{"deaths", "contenders killed at every step and at random moments"},
		{"host-death", "claims that a host renewed until it was lost: the others ask for each until it is given to one"},
		{"stall", "an owner stopped past its TTL, then continued"},
		{"unrelated", "many keys: does work on one block another"},
		{"scale", "the cost of a claim as keys grow in number"},
		{"peers", "the same work through what could be used instead"},
	}
}

func caption(workload string) string {
	for _, c := range captions() {
		if c[0] == workload {
			return workload + ": " + c[1]
		}
	}
	return workload
}

// workloads are those of the bench, in the order of the captions, and then in that of the file.
func workloads(targets ...*result.Target) []string {
	var found []string
	for _, t := range targets {
		for i := range t.Bench {
			if w := t.Bench[i].Workload; !slices.Contains(found, w) {
				found = append(found, w)
			}
		}
	}
	place := func(workload string) int {
		i := slices.IndexFunc(captions(), func(c [2]string) bool { return c[0] == workload })
		return cmp.Or(i+1, len(captions())+1)
	}
	slices.SortStableFunc(found, func(a, b string) int { return place(a) - place(b) })
	return found
}

// benchSheets are a table for each workload of a target.
func benchSheets(t *result.Target) []*sheet {
	var sheets []*sheet
	for _, w := range workloads(t) {
		rows := rowsOf(t, w)
		s := &sheet{title: caption(w)}
		for _, c := range benchColumns() {
			s.heads = append(s.heads, c.head)
		}
		for _, b := range rows {
			s.rows = append(s.rows, benchCells(b))
			s.remark(b.Bench, "")
		}
		sheets = append(sheets, s.condense())
	}
	return sheets
}

func benchCells(b benchRow) []string {
	var cells []string
	for _, c := range benchColumns() {
		cells = append(cells, c.cell(b))
	}
	return cells
}

// remark notes what the counts of a row cannot say. Where tells rows of several targets apart.
func (s *sheet) remark(b *result.Bench, where string) {
	name := strings.TrimSpace(b.Protocol + " " + b.Variant)
	if b.Control && b.Trials == 0 {
		name += " (control)"
	}
	if where != "" {
		name += " on " + where
	}
	if b.Control && !flagged(b) && b.Trials > 0 {
		s.loud = append(s.loud, fmt.Sprintf("CONTROL NOT FLAGGED: %s is known to be wrong, and nothing went wrong in %s trials: "+
			"a failure of the others could have gone unseen.", name, group(b.Trials)))
	}
	why := stop(cmp.Or(strings.Join(b.Voided, "; "), "no reason was recorded"))
	switch {
	case b.Trials == 0:
		s.loud = append(s.loud, fmt.Sprintf("NOT JUDGED: %s: %s trials void: %s", name, group(b.Void), why))
	case b.Void > 0:
		s.notes = append(s.notes, fmt.Sprintf("%s: %s of %s trials void: %s", name, group(b.Void), group(b.Trials+b.Void), why))
	}
	if c := b.Counterexample; c != nil && !b.Control {
		s.notes = append(s.notes, fmt.Sprintf("%s: %s in trial %d: %s", name, c.Kind, c.Trial, stop(c.Sentence)))
	}
}

// legend explains the columns of some tables, each once, in the order of the bench.
func legend(shown []head) []string {
	var lines []string
	for _, c := range benchColumns() {
		if c.means != "" && slices.ContainsFunc(shown, func(h head) bool { return h.name == c.name && h.means == c.means }) {
			lines = append(lines, c.name+": "+c.means+".")
		}
	}
	return lines
}
