package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claimbench/claimbench/internal/result"
)

// CSV writes one row for each finding, with all its conditions in it and base units. What is absent is empty,
// not 0; histograms are name=count pairs joined by semicolons.
func CSV(w io.Writer, files []*result.File) error {
	return writeCSV(w, files, findingFields(), findings)
}

// csvTable is CSV for one of Tables. Rows of a kind of their own have a table of their own, so that every column
// of a file has one meaning.
func csvTable(w io.Writer, files []*result.File, table string) error {
	switch table {
	case "", tablePromises:
		return CSV(w, files)
	case tableProtocols:
		return writeCSV(w, files, protocolFields(), func(t *result.Target) []*result.Protocol { return pointers(t.Protocols) })
	}
	return writeCSV(w, files, benchFields(), func(t *result.Target) []*result.Bench {
		return slices.DeleteFunc(pointers(t.Bench), func(b *result.Bench) bool { return table != tableBench && b.Workload != table })
	})
}

func findings(t *result.Target) []*result.Finding { return pointers(t.Findings) }

func pointers[T any](rows []T) []*T {
	all := make([]*T, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	return all
}

// A field is one column: what it is called, and its text.
type field[T any] struct {
	name string
	cell func(T) string
}

func writeCSV[T any](w io.Writer, files []*result.File, fields []field[T], rows func(*result.Target) []T) error {
	out := csv.NewWriter(w)
	var record []string
	for _, f := range conditionFields() {
		record = append(record, f.name)
	}
	for _, f := range fields {
		record = append(record, f.name)
	}
	out.Write(record) // Error has its error
	for _, p := range places(files) {
		for _, row := range rows(p.target) {
			record = record[:0]
			for _, f := range conditionFields() {
				record = append(record, f.cell(p))
			}
			for _, f := range fields {
				record = append(record, f.cell(row))
			}
			out.Write(record)
		}
	}
	out.Flush()
	return out.Error()
}

func conditionFields() []field[place] { return slices.Concat(fileFields(), targetFields()) }

func fileFields() []field[place] {
	of := func(name string, cell func(*result.File) string) field[place] {
		return field[place]{name, func(p place) string { return cell(p.file) }}
	}
	return []field[place]{
		of("tool", func(f *result.File) string { return f.Tool.Version }),
		of("commit", func(f *result.File) string { return f.Tool.Commit }),
		of("started", func(f *result.File) string { return f.Started.UTC().Format(time.RFC3339) }),
		of("seed", func(f *result.File) string { return strconv.FormatUint(f.Seed, 10) }),
		of("incomplete", func(f *result.File) string { return f.Incomplete }),
		of("conditions", func(f *result.File) string { return strings.Join(f.Conditions, ";") }),
		of("host", func(f *result.File) string { return f.Host.Name }),
		of("kernel", func(f *result.File) string { return f.Host.Kernel }),
		of("arch", func(f *result.File) string { return f.Host.Arch }),
		of("cpus", func(f *result.File) string { return unlessZero(f.Host.CPUs) }),
		of("container", func(f *result.File) string { return f.Host.Container }),
		of("virtualization", func(f *result.File) string { return f.Host.Virtualization }),
	}
}

// targetFields describe the first route; a share has the same filesystem behind each.
func targetFields() []field[place] {
	of := func(name string, cell func(*result.Target, *result.Route) string) field[place] {
		return field[place]{name, func(p place) string {
			first := &result.Route{}
			if len(p.target.Routes) > 0 {
				first = &p.target.Routes[0]
			}
			return cell(p.target, first)
		}}
	}
	return []field[place]{
		of("target", func(t *result.Target, _ *result.Route) string { return t.Name }),
		of("routes", func(t *result.Target, _ *result.Route) string { return unlessZero(len(t.Routes)) }),
		of("fstype", func(_ *result.Target, r *result.Route) string { return r.FSType }),
		of("source", func(_ *result.Target, r *result.Route) string { return r.Source }),
		of("options", func(_ *result.Target, r *result.Route) string {
			return strings.Join(options(r, true), ",")
		}),
		of("lock_options", func(_ *result.Target, r *result.Route) string { return strings.Join(r.LockOpts, ",") }),
	}
}

func findingFields() []field[*result.Finding] {
	of := func(name string, cell func(*result.Finding) string) field[*result.Finding] {
		return field[*result.Finding]{name, cell}
	}
	ofControl := func(name string, cell func(*result.Control) string) field[*result.Finding] {
		return of(name, func(f *result.Finding) string {
			if f.Control == nil {
				return ""
			}
			return cell(f.Control)
		})
	}
	return []field[*result.Finding]{
		of("promise", func(f *result.Finding) string { return f.Promise }),
		of("verdict", func(f *result.Finding) string { return string(f.Verdict) }),
		of("class", func(f *result.Finding) string { return f.Class }),
		of("scope", func(f *result.Finding) string { return string(f.Scope) }),
		of("rounds", func(f *result.Finding) string { return strconv.Itoa(f.Rounds) }),
		of("contested", func(f *result.Finding) string { return strconv.Itoa(f.Contested) }),
		of("violations", func(f *result.Finding) string { return strconv.Itoa(f.Violations) }),
		of("upper95", func(f *result.Finding) string { return floatIf(f.Upper95) }),
		ofControl("control", func(c *result.Control) string { return c.Name }),
		ofControl("control_rounds", func(c *result.Control) string { return strconv.Itoa(c.Rounds) }),
		ofControl("control_contested", func(c *result.Control) string { return strconv.Itoa(c.Contested) }),
		ofControl("control_violations", func(c *result.Control) string { return strconv.Itoa(c.Violations) }),
		of("round_p50_us", func(f *result.Finding) string {
			if us, measured := f.Figures["round_p50_us"]; measured {
				return float(us)
			}
			return ""
		}),
		of("errnos", func(f *result.Finding) string { return pairs(f.Errnos, strconv.Itoa) }),
		of("kinds", func(f *result.Finding) string { return pairs(f.Kinds, strconv.Itoa) }),
		of("figures", func(f *result.Finding) string { return pairs(f.Figures, float) }),
		of("duration_s", func(f *result.Finding) string { return float(f.DurationS) }),
		of("reason", func(f *result.Finding) string { return f.Reason }),
		of("advice", func(f *result.Finding) string { return f.Advice }),
		of("warnings", func(f *result.Finding) string { return strings.Join(f.Warnings, ";") }),
	}
}

func float(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func floatIf(x *float64) string {
	if x == nil {
		return ""
	}
	return float(*x)
}

func unlessZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func pairs[V any](m map[string]V, write func(V) string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprint(name, "=", write(m[name])))
	}
	return strings.Join(all, ";")
}
