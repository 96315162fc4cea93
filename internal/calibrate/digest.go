package calibrate

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/claimbench/claimbench/internal/report"
)

// digest is the part of a calibration that fits into an overview: one row per probe.
func (f *File) digest() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", report.Escape(f.sentence()))
	t := report.Table{Heads: heads("probe", "planted faults", "runs that caught them", "s until then, p95", "violations per round that a quick survey finds")}
	var probes []string
	for i := range f.Exhibits {
		if p := f.Exhibits[i].Probe; !slices.Contains(probes, p) {
			probes = append(probes, p)
		}
	}
	for _, p := range probes {
		if row := f.digestOf(p); row != nil {
			t.Rows = append(t.Rows, row)
		}
	}
	err := t.Markdown(&out)
	return out.Bytes(), err
}

// digestOf adds up what a probe must find; nil is nothing.
func (f *File) digestOf(probe string) []string {
	var seen Seen
	faults := 0
	for i := range f.Exhibits {
		if e := &f.Exhibits[i]; e.Probe == probe && e.mustBeFound() {
			faults++
			seen.Runs, seen.Caught = seen.Runs+e.Seen.Runs, seen.Caught+e.Seen.Caught
			seen.Seconds = append(seen.Seconds, e.Seen.Seconds...)
		}
	}
	if faults == 0 {
		return nil
	}
	cells := seen.cells()
	least := "-"
	if i := slices.IndexFunc(f.Diluted, func(d Diluted) bool { return d.Probe == probe && d.LeastP > 0 }); i >= 0 {
		least = fmt.Sprintf("%.1e", f.Diluted[i].LeastP)
	}
	return []string{probe, fmt.Sprint(faults), cells[0], cells[4], least}
}
