package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// A column is one fact of a finding. The cells are plain: what a terminal or Markdown needs is added later.
type column struct {
	name  string
	right bool
	cell  func(*result.Finding) string
}

func columns() []column {
	return []column{
		{"promise", false, func(f *result.Finding) string { return f.Promise }},
		{"verdict", false, verdict},
		{"violations", true, violations},
		{"contested", true, contested},
		{"95 % bound", true, upper},
		{"control", false, control},
		{"p50", true, p50},
		{"note", false, note},
	}
}

// verdict never goes without its scope: evidence at one scope says nothing about a wider one.
func verdict(f *result.Finding) string {
	s := fmt.Sprintf("%s (%s)", f.Verdict, f.Scope)
	if f.Class != "" {
		s += ", " + f.Class
	}
	return s
}

// violations counts over contested rounds, which are the evidence. A probe that races nobody has none; then
// they are over the rounds it took.
func violations(f *result.Finding) string {
	over := f.Contested
	if f.Violations > f.Contested || f.Contested == 0 && f.Verdict == result.Holds {
		over = f.Rounds
	}
	if over == 0 && f.Violations == 0 {
		return "-"
	}
	return group(f.Violations) + "/" + group(over)
}

// contested tells a race in which nobody met from a probe that is no race.
func contested(f *result.Finding) string {
	if f.Contested == 0 && f.Verdict != result.Unproven {
		return "-"
	}
	return share(f.Contested, f.Rounds)
}

func upper(f *result.Finding) string {
	if f.Upper95 == nil {
		return "-"
	}
	return bound(*f.Upper95)
}

const silent = "DID NOT FIRE"

func control(f *result.Finding) string {
	switch {
	case f.Control == nil:
		return "-"
	case f.Control.Violations == 0:
		return silent
	}
	return "fired " + fired(f.Control)
}

func fired(c *result.Control) string {
	over := c.Contested
	if c.Violations > over {
		over = c.Rounds
	}
	return group(c.Violations) + "/" + group(over)
}

func p50(f *result.Finding) string {
	us, measured := f.Figures["round_p50_us"]
	if !measured {
		return "-"
	}
	return span(us * 1e-6)
}

// note is what a row needs to be read alone: the kinds of violation, the errnos, why it does not hold.
func note(f *result.Finding) string {
	parts := []string{counts(f.Kinds, true), counts(f.Errnos, false)}
	if f.Verdict != result.Holds {
		parts = append(parts, f.Reason)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// counts lists a histogram, the most frequent first.
func counts(histogram map[string]int, numbers bool) string {
	names := slices.SortedFunc(maps.Keys(histogram), func(a, b string) int {
		return cmp.Or(cmp.Compare(histogram[b], histogram[a]), cmp.Compare(a, b))
	})
	if numbers {
		for i, name := range names {
			names[i] = name + " " + group(histogram[name])
		}
	}
	return strings.Join(names, ", ")
}
