package explore

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimbench/claimbench/engine"
)

// tries is how often a schedule is performed until it goes as on the model. Where the machine is too busy, more than
// the TTL goes by between two steps, and the schedule becomes another one.
const tries = 5

// TestTableHappensInARealDirectory performs each violation of the requirement table that takes no weak filesystem.
func TestTableHappensInARealDirectory(t *testing.T) {
	n := 0
	for _, c := range Requirements.Cells {
		if c.Weakness != Perfect || c.Schedule == "" {
			continue
		}
		n++
		t.Run(c.Protocol, func(t *testing.T) {
			t.Parallel()
			sc, ok := FindScenario(c.Scenario, Requirements.Contenders, Requirements.Preemptions, Perfect)
			schedule, err := ParseSchedule(c.Schedule)
			if !ok || err != nil {
				t.Fatalf("scenario %q, %v", c.Scenario, err)
			}
			for range tries {
				v, err := Perform(protocol(t, c.Protocol), sc, schedule, t.TempDir())
				if v != nil && v.Kind == c.Kinds[0] {
					return
				}
				t.Logf("%v ends in %v, %v; want %v: %s", schedule, v, err, c.Kinds[0], c.Why)
			}
			t.Errorf("it does not happen in a real directory, %d times", tries)
		})
	}
	if n == 0 {
		t.Error("the table has no violation on a perfect filesystem: nothing was performed")
	}
}

// siblings are protocols that break and safe ones that were made from them.
var siblings = []struct{ broken, safe string }{
	{"flock-key", "flock-reread"}, {"flock-dir", "flock-reread"}, {"flock-key", "flock-held"},
	{"quarantine-eager", "quarantine"}, {"excl-unlink", "quarantine"},
	{"excl", "generations"}, {"excl-unlink", "generations"}, {"excl-unlink", "generations-linked"}, {"check-then-create", "generations-linked"},
}

// TestWhatBreaksASiblingBreaksNoSafeProtocol has the safe protocol go through the order that breaks its sibling. Steps
// of a contender that has ended by then are left out, and all go on to the end.
func TestWhatBreaksASiblingBreaksNoSafeProtocol(t *testing.T) {
	for _, pair := range siblings {
		t.Run(pair.broken+" "+pair.safe, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(Requirements.Cells, func(c Cell) bool { return c.Protocol == pair.broken && c.Weakness == Perfect })
			if i < 0 {
				t.Fatalf("%s is not in the table", pair.broken)
			}
			schedule, err := ParseSchedule(Requirements.Cells[i].Schedule)
			if err != nil {
				t.Fatal(err)
			}
			w := newWalk(protocol(t, pair.safe), scenario(t, "claim", Perfect))
			for _, step := range schedule {
				if step.Tick || w.s.actors[step.Who].life == alive {
					w.step(step)
				}
			}
			w.finish()
			w.alike(t)
		})
	}
}

// TestRandomSchedulesGoAlikeInARealDirectory performs random orders of safe protocols on the model and on a real
// directory. Neither shows a violation, and both are left with the same names.
func TestRandomSchedulesGoAlikeInARealDirectory(t *testing.T) {
	seed, n := rand.Uint64(), 4
	if testing.Short() {
		n = 1
	}
	for _, name := range []string{"flock-reread", "generations", "generations-linked", "quarantine", "flock-held"} {
		for i := range uint64(n) {
			t.Run(fmt.Sprintf("%s %d", name, i), func(t *testing.T) {
				t.Parallel()
				t.Logf("seed %d", seed+i)
				w := newWalk(protocol(t, name), scenario(t, []string{"claim", "renew", "fail"}[i%3], Perfect))
				w.wander(rand.New(rand.NewPCG(seed+i, 0)))
				w.alike(t)
			})
		}
	}
}

// A walk is one way through the schedules of a scenario, on the model.
type walk struct {
	x    *explorer
	spec engine.Spec
	s    *state
	path Schedule
	v    *Violation
}

func newWalk(spec engine.Spec, sc Scenario) *walk {
	w := &walk{x: newExplorer(spec, sc), spec: spec}
	w.s = w.x.empty()
	if sc.Stale {
		w.x.enlist(w.s, before)
	}
	for who := range sc.Contenders {
		w.x.enlist(w.s, who)
	}
	return w
}

func (w *walk) step(step Step) {
	if w.v != nil {
		return
	}
	if step.Dies {
		w.s.deaths++
	}
	w.path = append(w.path, step)
	w.v = w.x.do(w.s, step)
}

// finish has those who live do all that they have still to do, one after the other.
func (w *walk) finish() {
	for who := range w.s.actors {
		for w.v == nil && w.s.actors[who].life == alive {
			w.step(Step{Who: int8(who)})
		}
	}
}

// wander draws each step. One in twenty is a death, as long as there are any, and one in twenty is a tick.
func (w *walk) wander(rng *rand.Rand) {
	for w.v == nil {
		all := w.x.steps(w.s, nil)
		if len(all) == 0 {
			return
		}
		ordinary := slices.DeleteFunc(slices.Clone(all), func(s Step) bool { return s.Dies || s.Tick })
		if len(ordinary) > 0 && rng.IntN(10) > 0 {
			all = ordinary
		}
		w.step(all[rng.IntN(len(all))])
	}
}

// alike tells the walk again on the model, to its end, and performs it.
func (w *walk) alike(t *testing.T) {
	t.Helper()
	t.Logf("%s %s %v", w.spec.Name, w.x.sc.Name, w.path)
	if w.v != nil {
		t.Fatalf("on the model: %v", w.v)
	}
	if _, v, err := Tell(w.spec, w.x.sc, w.path); v != nil || err != nil {
		t.Fatalf("on the model, at the end: %v, %v", v, err)
	}
	want := withoutChoice(w.fresh().fs.names())
	for range tries {
		dir := t.TempDir()
		v, err := Perform(w.spec, w.x.sc, w.path, dir)
		names, walked := namesIn(dir)
		diff := cmp.Diff(withoutChoice(names), want)
		if v == nil && err == nil && walked == nil && diff == "" {
			return
		}
		t.Logf("it ends in %v, %v; the real directory (-) and the model (+) are left with\n%s", v, err, diff)
		if v != nil && v.Kind == Duplicate {
			t.Fatal("no protocol is that wrong because the machine is busy")
		}
	}
	t.Errorf("it did not go as on the model, %d times", tries)
}

// fresh is the model when a fresh contender has come to the end.
func (w *walk) fresh() *state {
	w.x.enlist(w.s, after)
	for w.s.actors[after].life == alive {
		if w.x.op(w.s, after).Verb == Poll {
			w.s.fs.now += int64(tick)
		}
		w.x.act(w.s, after, 0)
	}
	return w.s
}

var chosen = regexp.MustCompile(`stale-\d+|inode\d+`)

// withoutChoice takes times and inode numbers out of names, and leaves out the directory of the clock.
func withoutChoice(names []string) []string {
	var all []string
	for _, name := range names {
		if name == clockDir {
			continue
		}
		all = append(all, chosen.ReplaceAllString(name, "*"))
	}
	slices.Sort(all)
	return all
}
