package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// rowsIn is what each file says of each of the named things, in the order of first mention.
func (c *comparison) rowsIn(names func(*result.Target) []string, say func(*result.Target, string) side) []compared {
	var order []string
	for _, t := range c.targets {
		if t == nil {
			continue
		}
		for _, name := range names(t) {
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
	}
	var rows []compared
	for _, name := range order {
		row := compared{name: name}
		for _, t := range c.targets {
			s := side{}
			if t != nil {
				s = say(t, name)
			}
			row.sides = append(row.sides, s)
		}
		rows = append(rows, row)
	}
	return rows
}

// markVerdicts says where a verdict is another than in the first file.
func markVerdicts(rows []compared) []compared {
	for _, row := range rows {
		base := row.sides[0]
		for i := range row.sides {
			row.sides[i].mark = difference(base, row.sides[i])
		}
	}
	return rows
}

func difference(base, other side) string {
	switch {
	case base.cell == "" && other.cell == "":
		return "-"
	case base.cell == other.cell:
		return ""
	case base.cell == "":
		return notInA
	case other.cell == "":
		return onlyInA
	}
	return "DIFFERS"
}

func (c *comparison) protocols() section {
	rows := c.rowsIn(func(t *result.Target) []string {
		var names []string
		for _, p := range t.Protocols {
			names = append(names, p.Name)
		}
		return names
	}, func(t *result.Target, name string) side {
		for i := range t.Protocols {
			if p := &t.Protocols[i]; p.Name == name {
				return side{cell: safety(p), raw: safety(p)}
			}
		}
		return side{}
	})
	return section{name: tableProtocols, title: "protocols", rows: markVerdicts(rows)}
}

func (c *comparison) promises() section {
	rows := c.rowsIn(func(t *result.Target) []string {
		var names []string
		for _, f := range t.Findings {
			names = append(names, f.Promise)
		}
		return names
	}, func(t *result.Target, name string) side {
		for i := range t.Findings {
			if f := &t.Findings[i]; f.Promise == name {
				return side{cell: verdict(f), raw: verdict(f)}
			}
		}
		return side{}
	})
	return section{name: tablePromises, title: "promises", rows: markVerdicts(rows)}
}

func (c *comparison) workloads() []string {
	return workloads(slices.DeleteFunc(slices.Clone(c.targets), func(t *result.Target) bool { return t == nil })...)
}

// A benchKey says which rows of two files are the same experiment.
type benchKey struct{ protocol, variant string }

// benchRows are the rows of a workload in each file, nil where it has none, in the order of first mention.
func (c *comparison) benchRows(workload string) (keys []benchKey, rows map[benchKey][]*result.Bench) {
	rows = map[benchKey][]*result.Bench{}
	series := c.series(workload)
	for i, t := range c.targets {
		for _, b := range benchOf(t, workload) {
			key := benchKey{b.Protocol, b.Variant}
			if series[key] {
				key.variant = strings.TrimSpace(fmt.Sprintf("%s contenders=%d keys=%d", b.Variant, b.Contenders, b.Keys))
			}
			if rows[key] == nil {
				keys = append(keys, key)
				rows[key] = make([]*result.Bench, len(c.targets))
			}
			rows[key][i] = b
		}
	}
	return keys, rows
}

// series are the protocols and variants of which one file has several rows: with other contenders or keys.
func (c *comparison) series(workload string) map[benchKey]bool {
	several := map[benchKey]bool{}
	for _, t := range c.targets {
		seen := map[benchKey]bool{}
		for _, b := range benchOf(t, workload) {
			key := benchKey{b.Protocol, b.Variant}
			several[key] = several[key] || seen[key]
			seen[key] = true
		}
	}
	return several
}

func benchOf(t *result.Target, workload string) []*result.Bench {
	if t == nil {
		return nil
	}
	return slices.DeleteFunc(pointers(t.Bench), func(b *result.Bench) bool { return b.Workload != workload })
}

// incomparable says why two rows are not the same experiment; "" if they are. Void trials were run, too.
func incomparable(a, b *result.Bench) string {
	var why []string
	differs := func(what string, x, y any) {
		if x != y {
			why = append(why, fmt.Sprintf("%s %v against %v", what, x, y))
		}
	}
	differs("scope", a.Scope, b.Scope)
	differs("contenders", a.Contenders, b.Contenders)
	differs("keys", a.Keys, b.Keys)
	differs("trials", a.Trials+a.Void, b.Trials+b.Void)
	if a.Settings != b.Settings {
		why = append(why, "other settings")
	}
	if len(why) == 0 {
		return ""
	}
	return notCompared + strings.Join(why, "; ")
}
