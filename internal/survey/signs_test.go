package survey

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/explore"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// toCome are the promises that protocols rest on, or by which a weakness is known to be absent, and that may have no
// probe yet.
var toCome = []string{}

// unshown are the weaknesses that no finding shows, only shows to be absent.
var unshown = []explore.Weakness{explore.NoUnlink}

func TestEveryNameInTheMapIsOfAProbe(t *testing.T) {
	written := literals(t)
	for _, s := range signs {
		if !tested(t, s.promise) {
			continue
		}
		for _, name := range append(slices.Clone(s.kinds), s.class) {
			if name != "" && !written[name] {
				t.Errorf("%s: no probe has the kind or class %q", s.promise, name)
			}
		}
	}
	for _, p := range proofs {
		tested(t, p.promise)
		if p.zero != "" && !written[p.zero] {
			t.Errorf("%s: no probe has the figure %q", p.promise, p.zero)
		}
	}
	for _, spec := range engine.Protocols {
		for _, name := range spec.Needs {
			tested(t, name)
		}
	}
	for _, name := range given {
		tested(t, name)
	}
	tested(t, "excl-create") // see stops
	tested(t, "flock")       // see change
}

// tested reports whether there is a probe of the promise. There must be, or one must be expected.
func tested(t *testing.T, promise string) bool {
	t.Helper()
	_, ok := probes.Find(promise)
	if !ok && !slices.Contains(toCome, promise) {
		t.Errorf("there is no probe %q", promise)
	}
	return ok
}

// literals are the strings in the source of the probes.
func literals(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	files, err := filepath.Glob("../../probes/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of the probes: %v", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					all[s] = true
				}
			}
			return true
		})
	}
	return all
}

func TestEveryWeaknessIsMapped(t *testing.T) {
	for _, w := range explore.Weaknesses[1:] {
		proven := 0
		for _, p := range proofs {
			if p.weakness == w.Weakness {
				proven++
			}
		}
		if proven != 1 {
			t.Errorf("%s is in %d lines of proofs, want 1", w.Name, proven)
		}
		shows := slices.ContainsFunc(signs, func(s sign) bool { return s.shows == w.Weakness })
		if shows == slices.Contains(unshown, w.Weakness) {
			t.Errorf("%s: a sign %v, listed as without one %v", w.Name, shows, !shows)
		}
	}
	if explore.Weaknesses[0].Weakness != explore.Perfect {
		t.Error("the first weakness is not the absence of them")
	}
}

func TestEveryProtocolWasExploredWithEveryWeakness(t *testing.T) {
	for _, spec := range engine.Protocols {
		for _, w := range explore.Weaknesses {
			if _, ok := cellOf(spec.Name, w.Weakness); !ok {
				t.Errorf("%s, %s: no cell", spec.Name, w.Name)
			}
		}
		c := joint{spec: spec}
		if _, breaks := c.breaks(explore.Perfect); breaks == spec.Safe {
			t.Errorf("%s is safe by its own account %v, and breaks where every promise is kept %v", spec.Name, spec.Safe, breaks)
		}
		if spec.Safe != slices.Contains(preferred, spec.Name) {
			t.Errorf("%s: safe %v, preferred %v", spec.Name, spec.Safe, !spec.Safe)
		}
	}
}

func TestASignThatIsNotAllLeavesTheRestOpen(t *testing.T) {
	for _, c := range []struct {
		f    result.Finding
		want []explore.Weakness
		all  bool
	}{
		{result.Finding{Promise: "excl-create", Verdict: result.Holds}, nil, false},
		{result.Finding{Promise: "excl-create", Verdict: result.Broken}, nil, false},
		{result.Finding{Promise: "excl-create", Verdict: result.Broken, Kinds: map[string]int{"several-winners": 1}}, []explore.Weakness{explore.ExclNotAtomic}, true},
		{result.Finding{Promise: "excl-create", Verdict: result.Broken, Kinds: map[string]int{"several-winners": 0, "no-winner": 2}}, nil, false},
		{result.Finding{Promise: "excl-create", Verdict: result.Broken, Kinds: map[string]int{"several-winners": 1, "no-winner": 2}}, []explore.Weakness{explore.ExclNotAtomic}, false},
		{result.Finding{Promise: "flock", Verdict: result.Broken, Class: "no-op", Kinds: map[string]int{"several-winners": 1}}, []explore.Weakness{explore.FlockNoop, explore.FlockLocal}, true},
		{result.Finding{Promise: "flock", Verdict: result.Broken, Class: "local-only", Kinds: map[string]int{"several-winners": 1}}, []explore.Weakness{explore.FlockLocal}, true},
		{result.Finding{Promise: "link", Verdict: result.Unsupported}, []explore.Weakness{explore.NoLinks}, true},
		{result.Finding{Promise: "link", Verdict: result.Broken, Kinds: map[string]int{"several-winners": 1}}, nil, false},
		{result.Finding{Promise: "visibility", Verdict: result.Broken, Kinds: map[string]int{"new-name-late": 1, "new-entry-late": 2}}, []explore.Weakness{explore.StaleNegative, explore.StaleReaddir}, true},
		{result.Finding{Promise: "visibility", Verdict: result.Broken, Kinds: map[string]int{"new-entry-late": 2}}, []explore.Weakness{explore.StaleReaddir}, true},
		{result.Finding{Promise: "visibility", Verdict: result.Broken, Kinds: map[string]int{"new-name-late": 1, "touch-late": 1}}, []explore.Weakness{explore.StaleNegative}, false},
	} {
		if weak, all := shown(&c.f); !slices.Equal(weak, c.want) || all != c.all {
			t.Errorf("%s %s %s %v: %v, all %v; want %v, all %v", c.f.Promise, c.f.Verdict, c.f.Class, c.f.Kinds, weak, all, c.want, c.all)
		}
	}
}
