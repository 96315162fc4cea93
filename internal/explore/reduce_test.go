package explore

import (
	"slices"
	"testing"

	"github.com/claimbench/claimbench/engine"
)

// TestReductionsLoseNothing explores small scenarios with the states apart that
// are otherwise taken for one, and finds the same kinds of violations, for all
// protocols and weaknesses.
func TestReductionsLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	t.Parallel()
	fewer, compared, cut := 0, 0, 0
	for _, spec := range slices.Concat(engine.Protocols, engine.Controls) {
		for _, weak := range Weaknesses {
			for bound := range 2 {
				sc := Scenario{Contenders: 2, Ticks: 1, Weakness: weak.Weakness, Preemptions: bound, States: 15_000}
				if bound == 0 && weak.Weakness != Perfect {
					continue // most are too large
				}
				x := newExplorer(spec, sc)
				x.plain, x.w.dated = true, true
				x.walkAll()
				r := Explore(spec, sc)
				if x.Cut || r.Cut {
					cut++
					continue
				}
				compared++
				if got, want := kindsOf(r), kindsOf(&x.Report); !slices.Equal(got, want) {
					t.Errorf("%s, %v, %d preemptions: found %v, without reductions %v", spec.Name, sc.Weakness, bound, got, want)
				}
				fewer += x.visited.n - r.States
			}
		}
	}
	t.Logf("%d compared, %d too large", compared, cut)
	if fewer <= 0 || cut > compared/4 {
		t.Errorf("%d states saved, %d compared, %d too large: the comparison shows too little", fewer, compared, cut)
	}
}

func kindsOf(r *Report) (all []Kind) {
	for _, f := range r.Found {
		all = append(all, f.Kind)
	}
	slices.Sort(all)
	return all
}

// TestTimesOfDirectoriesCountOnceAskedFor has a contender look at the one kind
// of times that is left out otherwise.
func TestTimesOfDirectoriesCountOnceAskedFor(t *testing.T) {
	w := newWorld(false)
	m := newModel(w, Perfect, epoch)
	m.apply(0, Op{Verb: Mkdir, Path: w.path("d")}, 0)
	later := new(model)
	later.set(m)
	later.now += int64(tick)
	later.apply(0, Op{Verb: Mkdir, Path: w.path("d/e")}, 0)
	later.apply(0, Op{Verb: Rmdir, Path: w.path("d/e")}, 0)
	later.now, later.made = m.now, m.made
	same := func() bool { return string(m.encode(nil)) == string(later.encode(nil)) }
	if !same() {
		t.Error("states differ in the time of a directory that nobody asked for")
	}
	m.apply(1, Op{Verb: Lstat, Path: w.path("d/f")}, 0)
	if !same() {
		t.Error("a look at a name in a directory is none at the directory")
	}
	m.apply(1, Op{Verb: Lstat, Path: w.path("d")}, 0)
	if same() {
		t.Error("states are one whose directories differ in a time that was asked for")
	}
}
