package calibrate

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Formats are what Write knows.
var Formats = []string{"table", "markdown", "json"}

// Write writes the calibration in a format, for a terminal of so many columns; 0 is no limit.
func (f *File) Write(w io.Writer, format string, width int) error {
	var data []byte
	var err error
	switch format {
	case "json":
		data, err = f.Encode()
	case "markdown":
		data, err = f.markdown()
	case "table":
		data, err = f.text(width)
	default:
		err = fmt.Errorf("unknown format %q; the formats are %s", format, strings.Join(Formats, ", "))
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func (f *File) text(width int) ([]byte, error) {
	var out bytes.Buffer
	if f.Incomplete != "" {
		fmt.Fprintf(&out, "INCOMPLETE: %s\n\n", f.Incomplete)
	}
	for _, s := range f.sections() {
		t := s.table
		if len(t.Rows) == 0 {
			continue
		}
		if err := t.Text(&out, width); err != nil {
			return nil, err
		}
		fmt.Fprintln(&out)
	}
	for _, p := range f.Problems() {
		fmt.Fprintln(&out, p)
	}
	for _, m := range f.lacking() {
		fmt.Fprintln(&out, "not run:", m)
	}
	fmt.Fprintln(&out, f.sentence())
	return out.Bytes(), nil
}

// lacking is what could not be run, one line for each reason.
func (f *File) lacking() (lines []string) {
	what := map[string][]string{}
	for _, m := range f.Missing {
		what[m.Why] = append(what[m.Why], m.What)
	}
	for _, m := range f.Missing {
		if line := strings.Join(what[m.Why], ", ") + ": " + m.Why; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// sentence is what a calibration amounts to.
func (f *File) sentence() string {
	planted, caught, silent, quiet := 0, 0, 0, 0
	for i := range f.Exhibits {
		e := &f.Exhibits[i]
		if e.mustBeFound() {
			planted, caught = planted+e.Seen.Runs, caught+e.Seen.Caught
		} else {
			silent, quiet = silent+e.Seen.Runs, quiet+e.Seen.Caught
		}
	}
	rare, rareCaught := 0, 0
	var of []string
	for i := range f.Diluted {
		if p := fmt.Sprintf("%g", f.Diluted[i].P); !slices.Contains(of, p) {
			of = append(of, p)
		}
		rare, rareCaught = rare+f.Diluted[i].Rare.Runs, rareCaught+f.Diluted[i].Rare.Caught
	}
	runs, alarms, _, _ := f.goodTotals("")
	escapes := 0
	for i := range f.Engine {
		escapes += len(f.Engine[i].problems())
	}
	var parts []string
	add := func(n int, format string, args ...any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(rare, "%d of %d runs caught a violation that was planted in a few rounds (%s)", rareCaught, rare, strings.Join(of, ", "))
	add(planted, "%d of %d runs caught a planted fault", caught, planted)
	add(silent, "%d of %d runs said what they must of a fault that breaks no promise of the probe", quiet, silent)
	add(runs, "%d false alarms in %d probe runs on good filesystems", alarms, runs)
	add(len(f.Engine), "%d escapes on %d faulty filesystems", escapes, len(f.Engine))
	if len(parts) == 0 {
		return "Nothing was measured."
	}
	return strings.Join(parts, "; ") + "."
}

func orDash(all []string) string {
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}
