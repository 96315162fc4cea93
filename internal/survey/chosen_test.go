package survey

import (
	"slices"
	"testing"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

func TestOneKernelIsNotTestedForWhatTakesSeveral(t *testing.T) {
	for _, scope := range result.Scopes() {
		o, clones := Options{}, func(p probes.Probe) bool { return p.Name == "excl-create-clones" }
		if runs := slices.ContainsFunc(o.chosen(&result.Target{Scope: scope}), clones); runs != (scope == result.ScopeHost) {
			t.Errorf("at scope %s: %v", scope, runs)
		}
		o.Config.Probes = []string{"excl-create-clones"} // it says itself what it takes
		if !slices.ContainsFunc(o.chosen(&result.Target{Scope: scope}), clones) {
			t.Errorf("named, at scope %s: left out", scope)
		}
	}
}

func TestOnlyWhatIsGivenUpIsFilled(t *testing.T) {
	for _, c := range []struct {
		disposable, routes, named []string
		runs, may                 bool
	}{
		{nil, []string{"/mnt/a"}, nil, false, false},
		{[]string{"/mnt/a"}, []string{"/mnt/a"}, nil, true, true},
		{[]string{"/mnt/a/"}, []string{"/mnt/a/b"}, nil, true, true},
		{[]string{"/mnt/a"}, []string{"/mnt"}, nil, false, false},
		{[]string{"/mnt/a"}, []string{"/mnt/ab"}, nil, false, false},
		{[]string{"/mnt/a"}, []string{"/mnt/a", "/mnt/b"}, nil, false, false},
		{[]string{"/mnt/a", "/mnt/b"}, []string{"/mnt/a", "/mnt/b"}, nil, true, true},
		{[]string{"/mnt/a"}, nil, nil, false, false},
		{nil, []string{"/mnt/a"}, []string{"full-disk"}, true, false}, // it says itself that it may not
		{[]string{"/mnt/a"}, []string{"/mnt/a"}, []string{"mkdir"}, false, true},
	} {
		target := &result.Target{}
		for _, r := range c.routes {
			target.Routes = append(target.Routes, result.Route{Path: r})
		}
		o := Options{Config: config.Config{Disposable: c.disposable, Probes: c.named}}
		runs := slices.ContainsFunc(o.chosen(target), func(p probes.Probe) bool { return p.Name == "full-disk" })
		if may := o.disposable(target); runs != c.runs || may != c.may {
			t.Errorf("%q of %q, probes %q: runs %v, want %v; may %v, want %v", c.routes, c.disposable, c.named, runs, c.runs, may, c.may)
		}
	}
}
