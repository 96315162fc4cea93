package survey

import (
	"slices"
	"testing"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

func TestTheBottomLineComesFirst(t *testing.T) {
	for _, c := range []struct {
		what   string
		on     *result.Target
		change func(*result.Target)
		want   string
	}{
		{"a good filesystem", good(), nil,
			"Use generations between processes on one mount (scope process); generations-linked, quarantine, flock-held and flock-reread are safe, too."},
		{"local locks", shared(), func(x *result.Target) {
			set(x, "flock", result.Broken, "local-only", "several-winners")
			x.Routes[0].LockOpts = []string{"local_lock=flock"}
		}, "Use generations between mounts of one client (scope mount); generations-linked and quarantine are safe, too. " +
			"Not here: flock-held, flock-reread: flock is local-only here. " +
			"To change: Mount without local_lock=flock, and survey again; or use a protocol without locks."},
		{"exclusive create with several winners", good(), func(x *result.Target) { set(x, "excl-create", result.Broken, "", "several-winners") },
			"Use generations-linked between processes on one mount (scope process); flock-held is safe, too. " +
				"Not here: generations, quarantine, flock-reread: excl-create is broken here: several-winners. To change: Change something."},
		{"a duplicate that was measured", good(), func(x *result.Target) { _, r := benched(x, "takeover"); r.Duplicates = 3 },
			"Use generations-linked between processes on one mount (scope process); quarantine, flock-held and flock-reread are safe, too. " +
				"Not here: generations: measured: 3 duplicates in 20 trials of takeover."},
		{"not all tested", shared(), func(x *result.Target) { without(x, "timestamps"); set(x, "flock", result.Broken, "", "no-winner") },
			"No protocol is shown to be safe. Not here: flock-held, flock-reread: flock is broken here: no-winner. " +
				"Unproven: generations, generations-linked, quarantine: not tested: timestamps. " +
				"To change: Survey with all probes."},
		{"two scopes", shared(), func(x *result.Target) { set(x, "mkdir", result.Holds, "").Scope = result.ScopeProcess },
			"Use generations between mounts of one client (scope mount); generations-linked, quarantine (scope process), flock-held and flock-reread are safe, too."},
		{"nothing holds", good(), func(x *result.Target) {
			set(x, "excl-create", result.Hung, "").Advice = ""
		}, "Use no protocol: none is safe. Not here: generations, generations-linked, quarantine, flock-held, flock-reread: excl-create hangs here. " +
			"To change: Keep claims on another filesystem."},
	} {
		if c.change != nil {
			c.change(c.on)
		}
		c.on.Protocols = Join(c.on)
		if got := sentence(c.on); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.what, got, c.want)
		}
	}
}

func TestAReasonLosesOnlyWhereItComesFrom(t *testing.T) {
	for because, want := range map[string]string{
		"flock is local-only here (probe flock, scope mount)": "flock is local-only here",
		"void: killed (9), twice (scope process)":             "void: killed (9), twice",
		"not tested: names":                                   "not tested: names",
		"not tested (yet) at all":                             "not tested (yet) at all",
	} {
		if got := reason(&result.Protocol{Because: []string{because}}); got != want {
			t.Errorf("%q: %q, want %q", because, got, want)
		}
	}
}

func TestTheDecisionFollowsTheRequiredProtocols(t *testing.T) {
	protocols := []result.Protocol{{Name: "generations", Verdict: isSafe}, {Name: "flock-held", Verdict: isUnsafe}, {Name: "quarantine", Verdict: isUnproven}}
	for _, c := range []struct {
		what    string
		require []string
		want    Decision
	}{
		{"safe", []string{"generations"}, Safe},
		{"unsafe", []string{"generations", "flock-held"}, Unsafe},
		{"unproven is no pass", []string{"generations", "quarantine"}, Unproven},
		{"unsafe outweighs unproven", []string{"quarantine", "flock-held"}, Unsafe},
		{"not judged is no pass", []string{"excl"}, Unproven},
		{"with a promise that holds", []string{"generations", "a"}, Safe},
		{"with a promise that is broken", []string{"generations", "b"}, Unsafe},
	} {
		x := target(result.ScopeProcess, result.Holds, result.Broken)
		x.Protocols = protocols
		if got := Decide(&result.File{Targets: []result.Target{x}}, c.require); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
	x := target(result.ScopeProcess)
	x.Protocols = protocols
	if got := Decide(&result.File{Targets: []result.Target{x}, Incomplete: "interrupted"}, []string{"generations"}); got != Unproven {
		t.Errorf("incomplete: %d", got)
	}
}

func TestNoProtocolHasTheNameOfAPromise(t *testing.T) {
	for _, spec := range slices.Concat(engine.Protocols, engine.Controls) {
		for _, name := range toCome {
			if name == spec.Name {
				t.Errorf("%s is both", name)
			}
		}
		if _, ok := probes.Find(spec.Name); ok {
			t.Errorf("%s is both", spec.Name)
		}
	}
}
