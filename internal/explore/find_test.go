package explore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/claimbench/claimbench/engine"
)

func protocol(t *testing.T, name string) engine.Spec {
	t.Helper()
	spec, ok := engine.Find(name)
	if !ok {
		t.Fatalf("there is no protocol %s", name)
	}
	return spec
}

func scenario(t *testing.T, name string, weak Weakness) Scenario {
	t.Helper()
	sc, ok := FindScenario(name, 2, 0, weak)
	if !ok {
		t.Fatalf("there is no scenario %s", name)
	}
	return sc
}

// TestWrongProtocolsAreFoundOut is the positive control of the explorer. Each
// schedule that it reports is told again, and ends in the same violation.
func TestWrongProtocolsAreFoundOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		protocol, scenario string
		weak               Weakness
		kind               Kind
	}{
		{"unguarded", "claim", Perfect, Duplicate},
		{"check-then-create", "claim", Perfect, Duplicate},
		{"excl", "claim", Perfect, Stuck},
		{"excl-unlink", "claim", Perfect, Duplicate},
		{"flock-dir", "claim", Perfect, Duplicate},
		{"flock-dir", "keys", Perfect, Blocked},
		{"flock-key", "claim", Perfect, Duplicate},
		{"flock-reread", "claim", FlockNoop, Duplicate},
		{"flock-reread", "claim", FlockLocal, Duplicate},
		{"flock-held", "claim", FlockNoop, Duplicate},
		{"flock-held", "claim", FlockLocal, Duplicate},
		{"quarantine-eager", "claim", Perfect, Duplicate},
		{"quarantine", "claim", RenameOccupied, Duplicate},
		{"generations", "claim", ExclNotAtomic, Duplicate},
		{"generations-linked", "claim", NoLinks, Stuck},
		{"quarantine/age-from-name", "reclaim", Perfect, Duplicate},
		{"quarantine/age-from-mtime", "reclaim", Perfect, Duplicate},
		{"quarantine/no-margin", "reclaim", Perfect, Duplicate},
		{"quarantine/long-deadline", "reclaim-late", Perfect, Duplicate},
		{"quarantine/short-nonce", "claim", Perfect, Duplicate},
	} {
		t.Run(c.protocol+" "+c.scenario+" "+c.weak.String(), func(t *testing.T) {
			t.Parallel()
			spec, sc := protocol(t, c.protocol), scenario(t, c.scenario, c.weak)
			sc.First = true
			r := Explore(spec, sc)
			found, ok := r.Of(c.kind)
			if !ok {
				t.Fatalf("no %v in %d states", c.kind, r.States)
			}
			again(t, spec, sc, found)
		})
	}
}

func again(t *testing.T, spec engine.Spec, sc Scenario, found Found) {
	t.Helper()
	schedule, err := ParseSchedule(found.Schedule.String())
	if err != nil {
		t.Fatal(err)
	}
	_, v, err := Tell(spec, sc, schedule)
	if err != nil || v == nil || v.Kind != found.Kind {
		t.Errorf("told again, %v ends in %v, %v; want %v", schedule, v, err, found.Violation)
	}
}

// TestRightProtocolsAreSafe is the negative control: no schedule breaks them.
func TestRightProtocolsAreSafe(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"flock-reread", "generations", "generations-linked", "quarantine", "flock-held"} {
		for _, sc := range scenarios(2, 0, Perfect) {
			spec := protocol(t, name)
			if !sc.concerns(spec) || testing.Short() && sc.Reclaim {
				continue
			}
			t.Run(name+" "+sc.Name, func(t *testing.T) {
				t.Parallel()
				r := Explore(spec, sc)
				for _, f := range r.Found {
					t.Errorf("%v: %s: %v", f.Kind, f.What, f.Schedule)
				}
			})
		}
	}
}

func TestUnrelatedKeysBlockNobodyButFlockDir(t *testing.T) {
	t.Parallel()
	for _, spec := range engine.Protocols {
		_, blocked := Explore(spec, scenario(t, "keys", Perfect)).Of(Blocked)
		if want := spec.Name == "flock-dir"; blocked != want {
			t.Errorf("%s: blocked %v, want %v", spec.Name, blocked, want)
		}
	}
}

// TestShortestHasNoNeedlessStep leaves out each step of what breaks a protocol, and the violation with it.
func TestShortestHasNoNeedlessStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		protocol, scenario string
		kind               Kind
		states             int // 0: only what was found is shortened
	}{
		{"excl-unlink", "claim", Duplicate, 100_000},
		{"excl-unlink", "claim", Duplicate, 0},
		{"excl", "claim", Stuck, 100_000},
		{"flock-dir", "keys", Blocked, 0},
		{"quarantine/no-margin", "reclaim", Duplicate, 0},
	} {
		t.Run(fmt.Sprintf("%s %s %d", c.protocol, c.scenario, c.states), func(t *testing.T) {
			t.Parallel()
			spec, sc := protocol(t, c.protocol), scenario(t, c.scenario, Perfect)
			sc.First = true
			found, _ := Explore(spec, sc).Of(c.kind)
			short := Shortest(spec, sc, found, c.states)
			if len(short.Schedule) == 0 || len(short.Schedule) > len(found.Schedule) {
				t.Fatalf("%v of %v", short.Schedule, found.Schedule)
			}
			again(t, spec, sc, short)
			for i := range short.Schedule {
				less := slices.Delete(slices.Clone(short.Schedule), i, i+1)
				if _, v, err := Tell(spec, sc, less); err == nil && v != nil && v.Kind == c.kind {
					t.Errorf("%v: without step %d it is %v still", short.Schedule, i+1, c.kind)
				}
			}
		})
	}
}

// TestReclaimingTakesADeath is about a scenario with no schedule: that nothing breaks in it says nothing.
func TestReclaimingTakesADeath(t *testing.T) {
	sc := scenario(t, "reclaim", Perfect)
	sc.Deaths = 0
	defer func() {
		if recover() == nil {
			t.Error("nothing was explored, and no violation reported")
		}
	}()
	Explore(protocol(t, "quarantine"), sc)
}

func TestScheduleRefusesWhatIsNoStep(t *testing.T) {
	for _, text := range []string{"A+!", "!", "AX", "1", "A!!"} {
		if s, err := ParseSchedule(text); err == nil {
			t.Errorf("%q: read as %v", text, s)
		}
	}
}
