package report

import (
	"slices"
	"strings"
	"testing"
)

func TestColumnsWithoutContentAreLeftOut(t *testing.T) {
	s := &sheet{
		heads: []head{{name: "a"}, {name: "dash"}, {name: "zero", blank: "0"}, {name: "one", blank: "1"}, {name: "some", blank: "0"}, {name: "both", blank: "0"}},
		rows:  [][]string{{"x", "-", "0", "1", "0", "-"}, {"y", "-", "0", "1", "3", "0"}},
		notes: []string{"kept"},
	}
	s.condense()
	var names []string
	for _, h := range s.heads {
		names = append(names, h.name)
	}
	if !slices.Equal(names, []string{"a", "some"}) || !slices.Equal(s.rows[1], []string{"y", "3"}) {
		t.Errorf("left: %v, %v", names, s.rows)
	}
	if !slices.Equal(s.notes, []string{"0 in every row: zero, both.", "kept"}) {
		t.Errorf("notes %q", s.notes)
	}
}

func TestANarrowTableHidesNothingSilently(t *testing.T) {
	wide := &benchSheetNamed(t, "storm").heads
	out := formatted(t, "table", TextOptions{Width: 80}, "bench-ext4")
	_, out, _ = strings.Cut(out, "storm: every")
	out, _, _ = strings.Cut(out, "takeover: all")
	for _, h := range *wide {
		for word := range strings.FieldsSeq(h.name) {
			if !strings.Contains(out, word) {
				t.Errorf("%s is neither shown, nor told, nor said to be missing in\n%s", h.name, out)
			}
		}
	}
}

func benchSheetNamed(t *testing.T, workload string) *sheet {
	t.Helper()
	for _, s := range benchSheets(&load(t, "bench-ext4")[0].Targets[0]) {
		if strings.HasPrefix(s.title, workload) {
			return s
		}
	}
	t.Fatalf("no %s", workload)
	return nil
}

func TestFittingLeavesTheSheetAsItWas(t *testing.T) {
	s := benchSheetNamed(t, "storm")
	before := len(s.heads)
	rows, notes := slices.Clone(s.rows), len(s.notes)
	s.fit(60)
	if len(s.heads) != before || len(s.notes) != notes || !slices.EqualFunc(rows, s.rows, slices.Equal) {
		t.Error("the sheet is another after it was fitted")
	}
}

func namesOf(s *sheet) string {
	var names []string
	for _, h := range s.heads {
		names = append(names, h.name)
	}
	return strings.Join(names, " ")
}

func TestTheColumnToGoFirstGoesFirst(t *testing.T) {
	s := &sheet{
		heads: []head{{name: "stays"}, {name: "second", drop: 5}, {name: "first", drop: 9}, {name: "third", drop: 1}},
		rows:  [][]string{{"a", "1", "1", "1"}, {"b", "2", "2", "2"}},
	}
	for width, want := range map[int]string{0: "stays second first third", 30: "stays second first third", 26: "stays second third", 16: "stays third", 5: "stays"} {
		if fitted, _ := s.fit(width); namesOf(fitted) != want {
			t.Errorf("at %d: %s, want %s", width, namesOf(fitted), want)
		}
	}
}

func TestNamesAreCutOnlyWhereTheyStillDiffer(t *testing.T) {
	hosts := func(a, b string) string {
		s := &sheet{heads: []head{{name: "host", cut: "."}}, rows: [][]string{{a}, {b}, {a}}}
		fitted, _ := s.fit(5)
		return strings.Join(slices.Concat(fitted.rows...), " ")
	}
	for want, got := range map[string]string{
		"one two one":                hosts("one.example.net", "two.example.net"),
		"one.east one.west one.east": hosts("one.east", "one.west"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
