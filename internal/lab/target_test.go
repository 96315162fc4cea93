package lab

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/claimbench/claimbench/configs"
	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

func TestEveryBuiltInTargetIsValidAndHasItsSurvey(t *testing.T) {
	files, err := fs.Sub(configs.Lab, "lab")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Load(files)
	if err != nil {
		t.Error(err)
	}
	if len(all) < 40 {
		t.Errorf("only %d targets", len(all))
	}
	quick := 0
	for _, target := range all {
		if _, err := fs.Stat(files, "surveys/"+target.Survey+".yaml"); err != nil {
			t.Errorf("%s: %v", target.Name, err)
		}
		if target.Quick {
			quick++
		}
	}
	if quick < 6 {
		t.Errorf("only %d targets are for every day", quick)
	}
}

func TestEverySurveyOfTheLabIsValid(t *testing.T) {
	names, err := fs.Glob(configs.Lab, "lab/surveys/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if _, err := config.Load("../../configs/" + name); err != nil {
			t.Error(err)
		}
	}
}

func TestATargetFileWithAnErrorDoesNotHideTheOthers(t *testing.T) {
	good := "about: x\ngroup: local\ndisk: {type: tmpfs}\nscope: process\n"
	dir := fstest.MapFS{"good.yaml": {Data: []byte(good)}, "bad.yaml": {Data: []byte("abuot: x\n")}}
	all, err := Load(dir)
	if len(all) != 1 || all[0].Name != "good" {
		t.Errorf("%v", all)
	}
	if want := `bad.yaml:1: unknown key "abuot"; did you mean "about"?`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestTargetsThatMakeNoSenseAreRefused(t *testing.T) {
	const head = "about: x\ngroup: local\nscope: process\n"
	for content, want := range map[string]string{
		head: "nothing would be made",
		head + "disk: {type: tmpfs}\nbind: true\noverlay: {kind: one}\n":             "more than one of overlay",
		head + "overlay: {kind: two}\n":                                              `kind "two" is none`,
		head + "fuse: {mounts: 1, mount: [x], servers: [[a], [b], [c], [d], [e]]}\n": "at most 4 servers",
		head + "bind: true\ndisposable: true\n":                                      "only a disk without a layer",
		head + "fuse: {mounts: 1}\n":                                                 "expected a mount command",
		head + "uml: {server: nfs, mounts: 1, clients: 2}\n":                         "clients must not be more",
		head + "uml: {server: afs, mounts: 1}\n":                                     `server "afs" is none`,
		head + "bind: true\nexpect: {flok: {verdict: holds, because: x}}\n":          "neither a promise nor a protocol",
		head + "bind: true\nexpect: {flock: {verdict: fine, because: x}}\n":          `verdict "fine" is none`,
		head + "bind: true\nexpect: {flock: {verdict: broken}}\n":                    "because is missing",
		head + "bind: true\nexpect: {generations: {verdict: broken, because: x}}\n":  `verdict "broken" is none; there are safe, unsafe, unproven`,
		strings.Replace(head, "process", "galaxy", 1) + "bind: true\n":               `"galaxy" is none`,
		strings.Replace(head, "local", "loco", 1) + "bind: true\n":                   `"loco" is none`,
		head + "bind: true\nclaims: {flok: always}\n":                                "flok is no promise",
		head + "uml: {server: nfs, hosts: 1}\n":                                      "hosts must be 2 to 8",
		head + "uml: {server: nfs, hosts: 2, clients: 2}\n":                          "no mounts, clients, identifiers or overlay",
		head + "uml: {server: nfs, mounts: 2, clones: true}\n":                       "are hosts, of which there are none",
		head + "uml: {server: nfs, mounts: 2, together: true}\n":                     "are hosts, of which there are none",
		head + "uml: {server: nfs, mounts: 2, faults: [death 1m]}\n":                 "with hosts only",
		head + "uml: {server: smb, hosts: 2, faults: [reboot 1s every 1m]}\n":        "only of nfs servers",

		head + "uml: {server: nfs, hosts: 2, faults: [reboot 1s every 1m, full 1s every 9s]}\n": "not beside reboot",
	} {
		_, err := loadOne(fstest.MapFS{"a.yaml": {Data: []byte(content)}}, "a.yaml")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "a.yaml: ") {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
}

// A protocol that is expected to be safe must be so in every row; one that is expected to be anything else, or of which
// nothing is expected, need not be.
func TestRowsOfWhatIsExpectedToBeSafeDeviate(t *testing.T) {
	target := Target{Name: "x", Scope: result.ScopeClient, Expect: map[string]Expectation{
		"generations": {Verdict: "safe", Because: "y"}, "flock-held": {Verdict: "unsafe", Or: []string{"safe"}, Because: "y"},
	}}
	found := result.Target{Scope: result.ScopeClient, Bench: []result.Bench{
		{Workload: "storm", Protocol: "generations", Trials: 3},
		{Workload: "deaths", Variant: "at random", Protocol: "generations", Trials: 4, Missed: 1, Counterexample: &result.ClaimViolation{Sentence: "key 7 was finished by nobody"}},
		{Workload: "storm", Protocol: "flock-held", Trials: 3, Duplicates: 2},
		{Workload: "storm", Protocol: "excl-unlink", Trials: 3, Duplicates: 2},
		{Workload: "storm", Protocol: "generations-linked", Trials: 3, Missed: 1},
	}}
	got, _ := target.Compare(&found, nil)
	want := "x: generations: expected safe, found in 4 trials of deaths at random: 0 duplicates, 1 missed, 0 blocked, 0 illegal: key 7 was finished by nobody"
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	found.Bench[4].Duplicates = 1
	if got, _ := target.Compare(&found, nil); len(got) != 2 || !strings.HasPrefix(got[1], "x: generations-linked: expected safe, found in 3 trials of storm: 1 duplicates") {
		t.Errorf("duplicates of what everybody is told to use: %q", got)
	}
	found.Bench[4].Control = true
	if got, _ := target.Compare(&found, nil); len(got) != 1 {
		t.Errorf("a control: %q", got)
	}
}

// Where no verdict on protocols was made, what is expected to be safe must have been tried, and under a fault if there are.
func TestSilenceOfTheBenchIsUnproven(t *testing.T) {
	target := Target{Name: "x", Expect: map[string]Expectation{"generations": {Verdict: "safe", Because: "y"}}}
	for _, c := range []struct {
		name  string
		found result.Target
		want  string
	}{
		{"nothing", result.Target{}, "x: generations: expected safe: no trial of it could be judged"},
		{"void trials", result.Target{Bench: []result.Bench{{Protocol: "generations", Void: 9}}}, "x: generations: expected safe: no trial of it could be judged"},
		{"another's", result.Target{Bench: []result.Bench{{Protocol: "excl", Trials: 9}}}, "x: generations: expected safe: no trial of it could be judged"},
		{"without faults", result.Target{Bench: []result.Bench{{Protocol: "generations", Trials: 9}}}, ""},
		{"beside the faults", result.Target{Faults: []result.Fault{{}}, Bench: []result.Bench{{Protocol: "generations", Trials: 9}}}, "x: generations: expected safe: none of 9 trials was under a fault"},
		{"under a fault", result.Target{Faults: []result.Fault{{}}, Bench: []result.Bench{{Protocol: "generations", Trials: 9}, {Protocol: "generations", Trials: 1, UnderFault: 1}}}, ""},
	} {
		deviations, unproven := target.Compare(&c.found, []string{"generations"})
		if got := strings.Join(unproven, "\n"); got != c.want || len(deviations) > 0 {
			t.Errorf("%s: %q, want %q; %q", c.name, got, c.want, deviations)
		}
	}
}

// A disposable target has to be tested for what takes all its space, even if it does not name it.
func TestADisposableTargetIsExpectedToBeFilled(t *testing.T) {
	for _, disposable := range []bool{false, true} {
		target := Target{Disposable: disposable}
		f := &result.File{Conditions: []string{"probes="}}
		if got := slices.Contains(target.due(f), "full-disk"); got != disposable {
			t.Errorf("disposable %v: %v", disposable, got)
		}
	}
}

// What takes several kernels is due where there are.
func TestOneKernelIsNotExpectedToKeepWhatTakesSeveral(t *testing.T) {
	for _, scope := range result.Scopes() {
		target := Target{Scope: scope}
		if got := slices.Contains(target.due(&result.File{Conditions: []string{"probes="}}), "excl-create-clones"); got != (scope == result.ScopeHost) {
			t.Errorf("at scope %s: %v", scope, got)
		}
	}
}

// What the settings leave out is not missed; what they name is.
func TestWhatWasToBeTestedIsDue(t *testing.T) {
	target := Target{Expect: map[string]Expectation{"flock": {Verdict: "holds"}, "generations": {Verdict: "safe"}}}
	for _, c := range []struct {
		file result.File
		want string
	}{
		{result.File{Conditions: []string{"probes=mkdir,flock", "workloads="}}, "mkdir flock"},
		{result.File{Conditions: []string{"probes=mkdir", "workloads=storm"}}, "mkdir generations"},
		{result.File{Conditions: []string{"probes=mkdir", "workloads=storm"}, Incomplete: "a host was lost"}, ""},
	} {
		if got := strings.Join(target.due(&c.file), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.file.Conditions, got, c.want)
		}
	}
}

func TestDeviationsGoBothWays(t *testing.T) {
	target := Target{Name: "x", Scope: result.ScopeMount, Expect: map[string]Expectation{
		"flock":       {Verdict: "broken", Class: "local-only", Because: "y"},
		"mkdir":       {Verdict: "broken", Or: []string{"unproven"}, Because: "y"},
		"link":        {Verdict: "unsupported", Because: "y"},
		"generations": {Verdict: "safe", Because: "y"},
		"full-disk":   {Verdict: "holds", Because: "y"},
	}}
	as := func(promise string, v result.Verdict, class string) result.Finding {
		return result.Finding{Promise: promise, Verdict: v, Class: class, Reason: "why"}
	}
	found := result.Target{Scope: result.ScopeProcess, ScopeWhy: "one superblock",
		Findings: []result.Finding{
			as("flock", result.Broken, "no-op"), as("mkdir", result.Unproven, ""), as("link", result.Holds, ""),
			as("symlink", result.Broken, ""), as("publish", result.Holds, ""),
			as("posix-lock", result.Unproven, ""),
		},
		Protocols: []result.Protocol{{Name: "generations", Verdict: result.ProtocolUnsafe, Because: []string{"why"}}, {Name: "excl", Verdict: result.ProtocolUnsafe}},
	}
	want := []string{
		"x: scope: expected mount, found process (one superblock)",
		"x: flock: expected broken (local-only), found broken (no-op): why",
		"x: link: expected unsupported, found holds: why",
		"x: symlink: expected holds, found broken: why",
		"x: generations: expected safe, found unsafe: why",
		"x: names: expected holds, not tested",
		"x: full-disk: expected holds, not tested",
	}
	for _, p := range probes.All {
		if !slices.ContainsFunc(found.Findings, func(f result.Finding) bool { return f.Promise == p.Name }) && p.Name != "full-disk" && p.Name != "names" {
			found.Findings = append(found.Findings, as(p.Name, result.Holds, ""))
		}
	}
	got, unproven := target.Compare(&found, target.due(&result.File{Conditions: []string{"probes=", "workloads=forty"}}))
	if want := "x: posix-lock: expected holds: why"; len(unproven) != 1 || unproven[0] != want {
		t.Errorf("unproven: %q, want %s", unproven, want)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAResultIsComparedWhole(t *testing.T) {
	refused := &result.File{Incomplete: "the survey has refused the routes: one of them is elsewhere"}
	surveyed := &result.File{Targets: []result.Target{{Scope: result.ScopeMount}}}
	for _, test := range []struct {
		target Target
		file   *result.File
		want   string
	}{
		{Target{Name: "x", Refuse: "is elsewhere"}, refused, ""},
		{Target{Name: "x", Refuse: "is not there"}, refused, "x: expected one target, found 0: the survey has refused the routes: one of them is elsewhere"},
		{Target{Name: "x", Refuse: "is elsewhere"}, surveyed, "x: expected that the survey refuses the routes (is elsewhere), but it surveyed them"},
		{Target{Name: "x", Scope: result.ScopeMount}, surveyed, ""},
		{Target{Name: "x", Scope: result.ScopeMount}, refused, "x: expected one target, found 0: " + refused.Incomplete},
	} {
		if got, _ := test.target.CompareFile(test.file); strings.Join(got, "\n") != test.want {
			t.Errorf("%v, %+v: %q, want %q", test.target, test.file, got, test.want)
		}
	}
	surveyed.Conditions = []string{"probes="}
	target := Target{Name: "x", Scope: result.ScopeMount}
	if got, _ := target.CompareFile(surveyed); len(got) < 20 || got[0] != "x: excl-create: expected holds, not tested" {
		t.Errorf("%q", got)
	}
}
