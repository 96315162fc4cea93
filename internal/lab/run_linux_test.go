package lab

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/result"
)

func TestAResultSaysWhichTargetItIsOf(t *testing.T) {
	target := Target{Name: "two-mounts", Scope: result.ScopeMount}
	for _, test := range []struct {
		builtIn, hide bool
		want          string
	}{
		{true, false, "two-mounts"},
		{true, true, "two-mounts"},
		{false, false, ""}, // nobody else has this target, or these settings
	} {
		r := Run{BuiltIn: test.builtIn, Hide: test.hide, Out: t.TempDir()}
		o := Outcome{File: &result.File{Schema: result.Schema, Host: result.Host{Name: "vm7"}, Targets: []result.Target{
			{Name: "/srv/a", Scope: result.ScopeProcess, Routes: []result.Route{{Path: "/srv/a"}}, Findings: []result.Finding{}},
		}}}
		if err := r.judge(target, &o); err != nil {
			t.Fatal(err)
		}
		f, err := result.Load(filepath.Join(r.Out, "two-mounts.json"))
		if err != nil {
			t.Fatal(err)
		}
		if f.Lab != test.want || f.Targets[0].Name != target.Name {
			t.Errorf("lab %q, target %q; want %q, %q", f.Lab, f.Targets[0].Name, test.want, target.Name)
		}
		if hidden := f.Host.Name != "vm7" && !strings.Contains(f.Targets[0].Routes[0].Path, "srv"); hidden != test.hide {
			t.Errorf("anonymized: %v, want %v: %s, %s", hidden, test.hide, f.Host.Name, f.Targets[0].Routes[0].Path)
		}
		if len(o.Deviations) != 1 {
			t.Errorf("deviations: %q, want that of the scope", o.Deviations)
		}
	}
}

func TestARefusalIsAResult(t *testing.T) {
	for _, target := range []Target{{Name: "x", Refuse: "is elsewhere"}, {Name: "y", Refuse: "is elsewhere", UML: &UML{}}} {
		r := Run{Out: t.TempDir(), BuiltIn: true, Tool: result.Tool{Version: "v1", Go: "go1"}}
		var o Outcome
		var err error
		if o.File, err = r.refusal(target, time.Now().UTC(), "survey: exit status 2: /b is elsewhere"); err != nil {
			t.Fatal(err)
		}
		if err := r.judge(target, &o); err != nil {
			t.Fatal(err)
		}
		data, err := o.File.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := result.Validate(data); err != nil || len(o.Deviations) > 0 || o.File.Lab != target.Name {
			t.Errorf("%v, %q, %q", err, o.Deviations, o.File.Lab)
		}
		if known := o.File.Host.Kernel != ""; known != (target.UML == nil) {
			t.Errorf("%s: kernel %q", target.Name, o.File.Host.Kernel)
		}
	}
}

// Only what is neither wrong nor shown is surveyed again, and what was missing at first is not forgotten.
func TestATargetIsSurveyedAgainOnce(t *testing.T) {
	thin := Outcome{Unproven: []string{"x: link: too little"}}
	for _, c := range []struct {
		name  string
		again bool
		first Outcome
		want  int
	}{
		{"thin", true, thin, 2},
		{"not wanted", false, thin, 1},
		{"as expected", true, Outcome{}, 1},
		{"deviates", true, Outcome{Unproven: thin.Unproven, Deviations: []string{"y"}}, 1},
		{"failed", true, Outcome{Unproven: thin.Unproven, Err: errors.New("y")}, 1},
	} {
		begun, outcomes := 0, []Outcome{c.first, thin, thin}
		var ended []Outcome
		r := Run{Again: c.again, Begin: func(Target) { begun++ }, End: func(_ Target, o Outcome) { ended = append(ended, o) }}
		one := func(context.Context, Target) Outcome { return outcomes[begun-1] }
		r.turn(t.Context(), Target{}, one)
		if later := len(ended) == 0; later != (c.want == 2) {
			t.Errorf("%s: put off: %v", c.name, later)
		}
		r.onceMore(t.Context(), one)
		if begun != c.want || len(ended) != 1 || (len(ended[0].AtFirst) == 1) != (c.want == 2) {
			t.Errorf("%s: surveyed %d times, want %d; %+v", c.name, begun, c.want, ended)
		}
	}
}
