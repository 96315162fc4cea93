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
	out := csv.NewWriter(w)
	fields := csvFields()
	record := make([]string, len(fields))
	for i, field := range fields {
		record[i] = field.name
	}
	out.Write(record) // Error has its error
	for _, file := range files {
		for i := range file.Targets {
			for j := range file.Targets[i].Findings {
				for k, field := range fields {
					record[k] = field.cell(file, &file.Targets[i], &file.Targets[i].Findings[j])
				}
				out.Write(record)
			}
		}
	}
	out.Flush()
	return out.Error()
}

type csvField struct {
	name string
	cell func(*result.File, *result.Target, *result.Finding) string
}

func csvFields() []csvField {
	return slices.Concat(fileFields(), targetFields(), findingFields())
}

func fileFields() []csvField {
	of := func(name string, cell func(*result.File) string) csvField {
		return csvField{name, func(f *result.File, _ *result.Target, _ *result.Finding) string { return cell(f) }}
	}
	return []csvField{
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
func targetFields() []csvField {
	of := func(name string, cell func(*result.Target, *result.Route) string) csvField {
		return csvField{name, func(_ *result.File, t *result.Target, _ *result.Finding) string {
			first := &result.Route{}
			if len(t.Routes) > 0 {
				first = &t.Routes[0]
			}
			return cell(t, first)
		}}
	}
	return []csvField{
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

func findingFields() []csvField {
	of := func(name string, cell func(*result.Finding) string) csvField {
		return csvField{name, func(_ *result.File, _ *result.Target, f *result.Finding) string { return cell(f) }}
	}
	ofControl := func(name string, cell func(*result.Control) string) csvField {
		return of(name, func(f *result.Finding) string {
			if f.Control == nil {
				return ""
			}
			return cell(f.Control)
		})
	}
	return []csvField{
		of("promise", func(f *result.Finding) string { return f.Promise }),
		of("verdict", func(f *result.Finding) string { return string(f.Verdict) }),
		of("class", func(f *result.Finding) string { return f.Class }),
		of("scope", func(f *result.Finding) string { return string(f.Scope) }),
		of("rounds", func(f *result.Finding) string { return strconv.Itoa(f.Rounds) }),
		of("contested", func(f *result.Finding) string { return strconv.Itoa(f.Contested) }),
		of("violations", func(f *result.Finding) string { return strconv.Itoa(f.Violations) }),
		of("upper95", func(f *result.Finding) string {
			if f.Upper95 == nil {
				return ""
			}
			return float(*f.Upper95)
		}),
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
