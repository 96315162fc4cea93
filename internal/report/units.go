package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// group writes n with a space between the thousands.
func group(n int) string {
	digits := strconv.Itoa(n)
	var b strings.Builder
	for i, c := range digits {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// share writes part of whole in percent and never rounds up: 100 % is all of them.
func share(part, whole int) string {
	switch {
	case whole == 0:
		return "-"
	case part == 0:
		return "0 %"
	case part == whole:
		return "100 %"
	case part*1000 < whole:
		return "< 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", math.Floor(float64(part)*1000/float64(whole))/10)
}

// bound writes an upper bound with two digits and never rounds it down.
func bound(p float64) string {
	if p >= 1 {
		return "≤ 1"
	}
	s := strconv.FormatFloat(p, 'e', 1, 64)
	if v, _ := strconv.ParseFloat(s, 64); v < p {
		unit := math.Pow10(int(math.Floor(math.Log10(p))) - 1)
		s = strconv.FormatFloat(v+unit, 'e', 1, 64)
	}
	if v, _ := strconv.ParseFloat(s, 64); v >= 0.001 || v == 0 {
		return "≤ " + strconv.FormatFloat(v, 'f', -1, 64)
	}
	return "≤ " + strings.Replace(s, "e-0", "e-", 1)
}

// span writes a duration of so many seconds in the unit that leaves one to three digits before the point.
func span(seconds float64) string {
	if seconds == 0 {
		return "0 s"
	}
	for _, u := range []struct {
		name string
		in   float64
	}{{"ns", 1e-9}, {"µs", 1e-6}, {"ms", 1e-3}} {
		if math.Abs(seconds) < 999.5*u.in {
			return digits(seconds/u.in) + " " + u.name
		}
	}
	return digits(seconds) + " s"
}

// digits writes three significant digits, or every one of a larger number.
func digits(x float64) string {
	if math.Abs(x) >= 100 && math.Abs(x) < 1e15 {
		return group(int(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// figure splits the unit off a figure's name and writes its value in it.
func figure(name string, value float64) (label, text string) {
	label, unit := name, ""
	if i := strings.LastIndexByte(name, '_'); i >= 0 {
		label, unit = name[:i], name[i+1:]
	}
	scale := map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]
	switch {
	case strings.HasSuffix(label, "_per"):
		return words(strings.TrimSuffix(label, "_per")), digits(value) + " per " + unit
	case scale != 0:
		return words(label), span(value * scale)
	case unit == "bytes":
		return words(label), digits(value) + " bytes"
	}
	return words(name), digits(value)
}

func words(name string) string { return strings.ReplaceAll(name, "_", " ") }
