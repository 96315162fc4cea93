package survey

import (
	"slices"
	"strings"
	"testing"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// good is a target that keeps every promise there is a probe of, on ext4, between processes. What one kernel keeps for
// such a filesystem was not tested.
func good() *result.Target {
	t := &result.Target{Scope: result.ScopeProcess, Routes: []result.Route{{Path: "/d", FSType: "ext4", Superblock: "8:1"}}}
	for _, p := range probes.All {
		if !slices.Contains(given, p.Name) {
			t.Findings = append(t.Findings, holds(p.Name, result.ScopeProcess))
		}
	}
	return t
}

func holds(promise string, scope result.Scope) result.Finding {
	f := result.Finding{
		Promise: promise, Verdict: result.Holds, Scope: scope, Rounds: 1000, Contested: 900,
		Control: &result.Control{Rounds: 50, Contested: 40, Violations: 20}, Figures: map[string]float64{},
	}
	if promise == "excl-create" {
		f.Figures["sequences_failed_count"] = 0
	}
	return f
}

// shared is a good target over two mounts of one share, with the promises tested that one kernel no longer gives.
func shared() *result.Target {
	t := good()
	t.Scope = result.ScopeMount
	t.Routes = []result.Route{{Path: "/a", FSType: "nfs4", Superblock: "0:40"}, {Path: "/b", FSType: "nfs4", Superblock: "0:41"}}
	for _, p := range given {
		t.Findings = append(t.Findings, holds(p, result.ScopeMount))
	}
	for i := range t.Findings {
		t.Findings[i].Scope = result.ScopeMount
	}
	return t
}

// set changes the finding of a promise.
func set(t *result.Target, promise string, v result.Verdict, class string, kinds ...string) *result.Finding {
	i := slices.IndexFunc(t.Findings, func(f result.Finding) bool { return f.Promise == promise })
	f := &t.Findings[i]
	f.Verdict, f.Class, f.Reason, f.Advice = v, class, "as it was seen", "Change something."
	for _, k := range kinds {
		if f.Kinds == nil {
			f.Kinds = map[string]int{}
		}
		f.Kinds[k]++
	}
	return f
}

func without(t *result.Target, promise string) {
	t.Findings = slices.DeleteFunc(t.Findings, func(f result.Finding) bool { return f.Promise == promise })
}

// benched adds rows of a workload in which the control was flagged and generations was not.
func benched(t *result.Target, workload string) (control, row *result.Bench) {
	t.Bench = append(t.Bench,
		result.Bench{Workload: workload, Protocol: "unguarded", Control: true, Scope: t.Scope, Trials: 20, Executed: 100, Duplicates: 80, Contested: 20},
		result.Bench{Workload: workload, Protocol: "generations", Scope: t.Scope, Trials: 20, Executed: 20, Contested: 20},
	)
	return &t.Bench[len(t.Bench)-2], &t.Bench[len(t.Bench)-1]
}

func joined(t *testing.T, target *result.Target, protocol string) result.Protocol {
	t.Helper()
	all := Join(target)
	i := slices.IndexFunc(all, func(p result.Protocol) bool { return p.Name == protocol })
	if i < 0 {
		t.Fatalf("%s: not joined", protocol)
	}
	return all[i]
}

func TestThereIsAnEntryForEachProtocolInTheirOrder(t *testing.T) {
	for _, target := range []*result.Target{good(), {Scope: result.ScopeHost}} {
		all := Join(target)
		if len(all) != len(engine.Protocols) {
			t.Fatalf("%d entries of %d protocols", len(all), len(engine.Protocols))
		}
		for i, p := range all {
			if p.Name != engine.Protocols[i].Name {
				t.Errorf("entry %d is %s", i, p.Name)
			}
			if len(p.Because) == 0 || p.Verdict == "" || p.Scope == "" {
				t.Errorf("%s: %q at scope %q because %q", p.Name, p.Verdict, p.Scope, p.Because)
			}
			if (p.Advice == "") != (p.Verdict == result.ProtocolSafe) {
				t.Errorf("%s is %s, and the advice is %q", p.Name, p.Verdict, p.Advice)
			}
		}
	}
}

const (
	isSafe     = result.ProtocolSafe
	isUnsafe   = result.ProtocolUnsafe
	isUnproven = result.ProtocolUnproven
)

func TestWhatTheProbesFoundDecides(t *testing.T) {
	for _, c := range []struct {
		what     string
		on       *result.Target
		change   func(*result.Target)
		protocol string
		want     result.Safety
		because  string // the first reason
		advice   string // part of it
	}{
		{"a wrong protocol on a good filesystem", good(), nil, "unguarded", isUnsafe,
			"duplicate: A and B both execute the work, and the lease of neither had run out (explored, where every promise is kept)", "Use generations."},
		{"one that gets stuck", good(), nil, "excl", isUnsafe,
			"stuck: the key is not to be had, 3 TTLs after all have ended (explored, where every promise is kept)", "Use generations."},
		{"a right one", good(), nil, "generations", isSafe, "not measured: the verdict is from the promises alone", ""},
		{"the others that are right", good(), nil, "flock-reread", isSafe, "not measured", ""},
		{"over two mounts, all tested", shared(), nil, "generations", isSafe, "not measured", ""},

		{"several winners among clones", good(), func(x *result.Target) { set(x, "excl-create-clones", result.Broken, "", "several-winners") },
			"generations", isUnsafe, "excl-create-clones is broken here: several-winners", "Change something."},
		{"several winners among clones, which link survives", good(), func(x *result.Target) { set(x, "excl-create-clones", result.Broken, "", "several-winners") },
			"generations-linked", isSafe, "not measured", ""},
		{"no clones", good(), func(x *result.Target) { set(x, "excl-create-clones", result.Unproven, "") },
			"generations", isSafe, "not measured", ""},
		{"several winners", good(), func(x *result.Target) { set(x, "excl-create", result.Broken, "", "several-winners") },
			"generations", isUnsafe, "excl-create is broken here: several-winners (probe excl-create, scope process)", "Change something."},
		{"several winners, which link survives", good(), func(x *result.Target) { set(x, "excl-create", result.Broken, "", "several-winners") },
			"generations-linked", isSafe, "not measured", ""},
		{"several winners, under a lock", good(), func(x *result.Target) { set(x, "excl-create", result.Broken, "", "several-winners") },
			"flock-held", isSafe, "not measured", ""},
		{"the same on little evidence", good(), func(x *result.Target) { set(x, "excl-create", result.Broken, "", "several-winners").Contested = 99 },
			"flock-held", isUnproven, "excl-create is broken here: several-winners, which flock-held survives, but that nothing else is wrong is not shown by 99 contested rounds (probe excl-create, scope process)", "Change something."},
		{"the same without a control that fired", good(), func(x *result.Target) {
			set(x, "excl-create", result.Broken, "", "several-winners").Control.Violations = 0
		}, "flock-held", isUnproven, "excl-create is broken here: several-winners, which flock-held survives, but", ""},
		{"two winners in sequence", good(), func(x *result.Target) { set(x, "excl-create", result.Broken, "", "taken-name-given-away") },
			"generations", isUnsafe, "excl-create is broken here: taken-name-given-away", ""},
		{"the same, under a lock", good(), func(x *result.Target) { set(x, "excl-create", result.Broken, "", "taken-name-given-away") },
			"flock-held", isUnsafe, "excl-create is broken here: taken-name-given-away", ""},
		{"a cached look-up of what was there", good(), func(x *result.Target) { set(x, "mkdir", result.Broken, "", "released-name-stays-taken") },
			"flock-held", isUnsafe, "mkdir is broken here: released-name-stays-taken", ""},
		{"a released name, to who releases none", good(), func(x *result.Target) { set(x, "excl-create", result.Broken, "", "released-name-stays-taken") },
			"generations", isSafe, "not measured", ""},
		{"a lost reply", good(), func(x *result.Target) { set(x, "link", result.Broken, "", "success-denied") },
			"generations-linked", isSafe, "not measured", ""},
		{"a lost reply to a mkdir", good(), func(x *result.Target) { set(x, "mkdir", result.Broken, "", "success-denied") },
			"quarantine", isSafe, "not measured", ""},
		{"a kind that was not explored", good(), func(x *result.Target) { set(x, "link", result.Broken, "", "success-denied", "another's-object") },
			"generations-linked", isUnsafe, "link is broken here: another's-object, success-denied (probe link, scope process)", ""},

		{"flock is a no-op", good(), func(x *result.Target) { set(x, "flock", result.Broken, "no-op", "several-winners") },
			"flock-held", isUnsafe, "flock is no-op here (probe flock, scope process)", "Change something."},
		{"flock is local", shared(), func(x *result.Target) { set(x, "flock", result.Broken, "local-only", "several-winners") },
			"flock-reread", isUnsafe, "flock is local-only here (probe flock, scope mount)", "Change something."},
		{"flock is local by an option", shared(), func(x *result.Target) {
			set(x, "flock", result.Broken, "local-only", "several-winners")
			x.Routes[0].LockOpts, x.Routes[1].LockOpts = []string{"local_lock=all"}, []string{"local_lock=all", "nolock"}
		}, "flock-held", isUnsafe, "flock is local-only here", "Mount without local_lock=all and nolock, and survey again"},
		{"flock, to who takes none", shared(), func(x *result.Target) { set(x, "flock", result.Broken, "local-only", "several-winners") },
			"generations", isSafe, "not measured", ""},
		{"nobody gets the lock", good(), func(x *result.Target) { set(x, "flock", result.Broken, "", "no-winner") },
			"flock-held", isUnsafe, "flock is broken here: no-winner", ""},

		{"an occupied directory replaced", good(), func(x *result.Target) { set(x, "rename-dir-occupied", result.Broken, "", "several-winners") },
			"quarantine", isUnsafe, "rename-dir-occupied is broken here: several-winners", ""},
		{"the same, to who renames nothing", good(), func(x *result.Target) { set(x, "rename-dir-occupied", result.Broken, "", "several-winners") },
			"generations", isSafe, "not measured", ""},
		{"no links", good(), func(x *result.Target) {
			set(x, "link", result.Unsupported, "").Errnos = map[string]int{"EPERM": 50}
		}, "generations-linked", isUnsafe, "link is unsupported here: EPERM (probe link, scope process)", "Change something."},
		{"no links, to who makes none", good(), func(x *result.Target) { set(x, "link", result.Unsupported, "") }, "generations", isSafe, "not measured", ""},
		{"a torn claim", good(), func(x *result.Target) { set(x, "publish", result.Broken, "", "content-torn") }, "generations", isSafe, "not measured", ""},
		{"no exclusive create at all", good(), func(x *result.Target) { set(x, "excl-create", result.Unsupported, "") },
			"generations-linked", isUnsafe, "excl-create is unsupported here", ""},
		{"two names of claims are one", good(), func(x *result.Target) { set(x, "names", result.Broken, "", "names-merged") },
			"generations", isUnsafe, "names is broken here: names-merged", "Change something."},
		{"a name of claims is refused", good(), func(x *result.Target) { set(x, "names", result.Broken, "", "name-refused") },
			"flock-held", isUnsafe, "names is broken here: name-refused", "Change something."},
		{"a name is another file on each route", shared(), func(x *result.Target) { set(x, "path-agreement", result.Broken, "", "path-not-reached") },
			"generations-linked", isUnsafe, "path-agreement is broken here: path-not-reached", "Change something."},
		{"inode numbers change", good(), func(x *result.Target) { set(x, "inode-reuse", result.Broken, "", "unstable-number") },
			"flock-held", isUnsafe, "inode-reuse is broken here: unstable-number", ""},
		{"inode numbers change, to who looks at none", good(), func(x *result.Target) { set(x, "inode-reuse", result.Broken, "", "unstable-number") },
			"generations", isSafe, "not measured", ""},
		{"case is folded", good(), func(x *result.Target) { set(x, "names", result.Holds, "case-folding") }, "generations", isSafe, "not measured", ""},

		{"a lock outlives its holder", good(), func(x *result.Target) { set(x, "lock-release", result.Broken, "", "lock-outlives-holder") },
			"flock-held", isUnsafe, "lock-release is broken here: lock-outlives-holder", ""},
		{"a need that is refused", good(), func(x *result.Target) { set(x, "mkdir", result.Unsupported, "") }, "quarantine", isUnsafe, "mkdir is unsupported here", ""},
		{"a need that hangs", good(), func(x *result.Target) { set(x, "lock-release", result.Hung, "") }, "flock-reread", isUnsafe, "lock-release hangs here", ""},
		{"a need that is unproven", good(), func(x *result.Target) { set(x, "mkdir", result.Unproven, "") },
			"quarantine", isUnproven, "mkdir is unproven here (probe mkdir, scope process)", "Change something."},
		{"another's need", good(), func(x *result.Target) { set(x, "mkdir", result.Unproven, "") }, "generations", isSafe, "not measured", ""},
		{"a need that was not tested", good(), func(x *result.Target) { without(x, "mkdir") }, "quarantine", isUnproven, "not tested: mkdir", "Survey with all probes."},

		{"no attempt in sequence failed", good(), nil, "flock-reread", isSafe, "not measured", ""},
		{"unlink is not shown to work", good(), func(x *result.Target) { set(x, "excl-create", result.Holds, "").Figures["sequences_failed_count"] = 3 },
			"flock-reread", isUnproven, "no-unlink is not shown to be absent here", ""},
		{"attempts in sequence not recorded", good(), func(x *result.Target) {
			delete(set(x, "excl-create", result.Holds, "").Figures, "sequences_failed_count")
		},
			"flock-reread", isUnproven, "no-unlink is not shown to be absent here", ""},
		{"unlink, to who unlinks nothing", good(), func(x *result.Target) { set(x, "excl-create", result.Holds, "").Figures["sequences_failed_count"] = 3 },
			"generations", isSafe, "not measured", ""},

		{"clocks differ", shared(), func(x *result.Target) { set(x, "clock-skew", result.Broken, "", "of-any-kind") },
			"generations", isUnsafe, "clock-skew is broken here: of-any-kind", ""},
		{"clocks differ, to who reads none", shared(), func(x *result.Target) { set(x, "clock-skew", result.Broken, "") }, "flock-held", isSafe, "not measured", ""},
		{"names are seen late", shared(), func(x *result.Target) { set(x, "visibility", result.Broken, "", "new-name-late") }, "quarantine", isUnsafe, "visibility is broken here: new-name-late", ""},
		{"names are seen late, which is survived", shared(), func(x *result.Target) { set(x, "visibility", result.Broken, "", "new-name-late") }, "generations", isSafe, "not measured", ""},
		{"renewals are seen late, which was not explored", shared(), func(x *result.Target) { set(x, "visibility", result.Broken, "", "touch-late") }, "generations", isUnsafe, "visibility is broken here: touch-late", ""},
		{"times that were not explored", shared(), func(x *result.Target) { set(x, "timestamps", result.Broken, "", "backwards") }, "generations", isUnsafe, "timestamps is broken here: backwards", ""},
		{"coarse times", shared(), func(x *result.Target) { set(x, "timestamps", result.Broken, "", "coarse") }, "generations", isSafe, "not measured", ""},
		{"coarse times, on little evidence", shared(), func(x *result.Target) { set(x, "timestamps", result.Broken, "", "coarse").Rounds = 99 },
			"generations", isUnproven, "timestamps is broken here: coarse, which generations survives, but that nothing else is wrong is not shown by 99 rounds (probe timestamps, scope mount)", ""},
		{"coarse times, where nobody raced", shared(), func(x *result.Target) { set(x, "timestamps", result.Broken, "", "coarse").Contested = 0 },
			"generations", isSafe, "not measured", ""},
		{"inode numbers come back", good(), func(x *result.Target) { set(x, "inode-reuse", result.Holds, "reused") }, "generations", isSafe, "not measured", ""},
		{"not tested over two mounts", shared(), func(x *result.Target) { without(x, "timestamps") }, "generations", isUnproven, "not tested: timestamps", ""},
		{"not tested over two mounts, nor needed", shared(), func(x *result.Target) { without(x, "timestamps") }, "flock-held", isSafe, "not measured", ""},
		{"not tested, and a server answers", good(), func(x *result.Target) { x.Routes[0].FSType = "fuse.sshfs" }, "generations", isUnproven, "not tested: timestamps, visibility, clock-skew", ""},
		{"not tested, two superblocks", good(), func(x *result.Target) {
			x.Routes = append(x.Routes, result.Route{FSType: "ext4", Superblock: "8:2"})
		}, "generations", isUnproven, "not tested", ""},
		{"not tested, a mount that is not known", good(), func(x *result.Target) { x.Routes[0].Superblock = "" }, "generations", isUnproven, "not tested", ""},
		{"not tested, several kernels", good(), func(x *result.Target) { x.Scope = result.ScopeHost }, "generations", isUnproven, "not tested", ""},
		{"not tested, two hosts that may be several kernels", good(), func(x *result.Target) {
			x.Routes = append(x.Routes, result.Route{Host: "b", FSType: "ext4", Superblock: "8:1"})
		}, "generations", isUnproven, "not tested", ""},
		{"not tested, two ways to one superblock", good(), func(x *result.Target) {
			x.Routes = append(x.Routes, result.Route{FSType: "ext4", Superblock: "8:1"})
		}, "generations", isSafe, "not measured", ""},
		{"nothing tested", &result.Target{Scope: result.ScopeHost}, nil, "generations", isUnproven, "not tested: excl-create, timestamps, visibility, clock-skew", ""},
	} {
		if c.change != nil {
			c.change(c.on)
		}
		p := joined(t, c.on, c.protocol)
		if p.Verdict != c.want || !strings.HasPrefix(p.Because[0], c.because) || !strings.Contains(p.Advice, c.advice) {
			t.Errorf("%s: %s is %s because %q, advice %q\nwant %s because %q, advice %q", c.what, c.protocol, p.Verdict, p.Because, p.Advice, c.want, c.because, c.advice)
		}
	}
}

func TestWhatOneKernelKeepsIsSaid(t *testing.T) {
	p := joined(t, good(), "generations")
	if want := "not tested: timestamps, visibility, clock-skew; one kernel keeps them"; !slices.Contains(p.Because, want) {
		t.Errorf("%q does not say %q", p.Because, want)
	}
}

func TestAProtocolThatIsWrongEverywhereNeedsNoOtherReason(t *testing.T) {
	x := good()
	set(x, "excl-create", result.Broken, "", "several-winners")
	if p := joined(t, x, "excl-unlink"); p.Verdict != isUnsafe || len(p.Because) != 1 {
		t.Errorf("excl-unlink is %s because %q", p.Verdict, p.Because)
	}
}

func TestTheTableSaysWhatComesOfIt(t *testing.T) {
	x := good()
	set(x, "flock", result.Broken, "no-op", "several-winners")
	want := "duplicate: A and B both execute the work, and the lease of neither had run out"
	if p := joined(t, x, "flock-held"); len(p.Because) < 2 || p.Because[1] != want {
		t.Errorf("%q, want %q second", p.Because, want)
	}
}

func TestTheScopeIsTheNarrowestOfTheEvidence(t *testing.T) {
	x := shared()
	set(x, "mkdir", result.Holds, "").Scope = result.ScopeProcess
	if p := joined(t, x, "quarantine"); p.Verdict != isSafe || p.Scope != result.ScopeProcess {
		t.Errorf("quarantine is %s (%s)", p.Verdict, p.Scope)
	}
	if p := joined(t, x, "generations"); p.Verdict != isSafe || p.Scope != result.ScopeMount {
		t.Errorf("generations, which needs no mkdir, is %s (%s)", p.Verdict, p.Scope)
	}
	set(x, "flock", result.Broken, "local-only", "several-winners")
	set(x, "lock-release", result.Holds, "").Scope = result.ScopeProcess
	if p := joined(t, x, "flock-held"); p.Verdict != isUnsafe || p.Scope != result.ScopeMount {
		t.Errorf("flock-held, by what was found between mounts, is %s (%s)", p.Verdict, p.Scope)
	}
}
