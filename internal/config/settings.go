package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// A setting is one key of the file, its place in a Config, and what is out of range about the value there.
type setting struct {
	key   string
	value any    // *time.Duration, *int, *uint64, *float64, *[]int or *[]string
	wrong string // empty when the value is in range
}

// settings lists every key, in the order of quick.yaml.
func (c *Config) settings() []setting {
	return []setting{
		{"budget", &c.Budget, positive(c.Budget)},
		{"contenders", &c.Contenders, contenders(c.Contenders)},
		{"rounds", &c.Rounds, atLeast(1, c.Rounds)},
		{"probe_time", &c.ProbeTime, positive(c.ProbeTime)},
		{"scan_share", &c.ScanShare, within(0, 0.9, c.ScanShare)},
		{"cold_rounds", &c.ColdRounds, atLeast(0, c.ColdRounds)},
		{"cold_pause", &c.ColdPause, positive(c.ColdPause)},
		{"hang_after", &c.HangAfter, positive(c.HangAfter)},
		{"release_wait", &c.ReleaseWait, positive(c.ReleaseWait)},
		{"max_wait", &c.MaxWait, positive(c.MaxWait)},
		{"min_contested", &c.MinContested, atLeast(1, c.MinContested)},
		{"probes", &c.Probes, repeated(c.Probes)},
		{"workloads", &c.Workloads, repeated(c.Workloads)},
		{"trials", &c.Trials, atLeast(0, c.Trials)},
		{"deaths_of", &c.DeathsOf, repeated(c.DeathsOf)},
		{"require", &c.Require, repeated(c.Require)},
		{"disposable", &c.Disposable, absolute(c.Disposable)},
		{"seed", &c.Seed, ""},
	}
}

// String is the value in one word; the elements of a list are separated by commas.
func (s setting) String() string {
	switch v := s.value.(type) {
	case *time.Duration:
		return v.String()
	case *[]int:
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(*v), "[]"), " ", ",")
	case *[]string:
		return strings.Join(*v, ",")
	case *int:
		return fmt.Sprint(*v)
	case *uint64:
		return fmt.Sprint(*v)
	case *float64:
		return fmt.Sprint(*v)
	}
	panic("config: no text form for the type of " + s.key)
}

func positive(d time.Duration) string {
	if d > 0 {
		return ""
	}
	return fmt.Sprintf("%v is out of range; expected more than 0s", d)
}

func atLeast(lo, v int) string {
	if v >= lo {
		return ""
	}
	return fmt.Sprintf("%d is out of range; expected at least %d", v, lo)
}

// within also refuses NaN, which no comparison holds for.
func within[T int | float64](lo, hi, v T) string {
	if v >= lo && v <= hi {
		return ""
	}
	return fmt.Sprintf("%v is out of range; expected %v to %v", v, lo, hi)
}

func contenders(ns []int) string {
	if len(ns) == 0 {
		return "the list is empty; expected at least one number from 2 to 64"
	}
	for _, n := range ns {
		if wrong := within(2, 64, n); wrong != "" {
			return wrong
		}
	}
	return repeated(ns)
}

// absolute wants paths that mean the same wherever the survey is started.
func absolute(paths []string) string {
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			return fmt.Sprintf("%.40q is not a path from the root; expected one such as /mnt/scratch", p)
		}
	}
	return repeated(paths)
}

func repeated[T cmp.Ordered](list []T) string {
	seen := map[T]bool{}
	for _, v := range list {
		if seen[v] {
			return fmt.Sprintf("%v is in the list twice", v)
		}
		seen[v] = true
	}
	return ""
}
