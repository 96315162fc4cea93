package engine

import (
	"errors"
	"slices"
	"testing"
	"time"
)

var sig = Key{"k"}.Sign()

// leased are the protocols whose claims expire.
func leased(safeOnly bool) []string {
	var names []string
	for _, s := range Protocols {
		if slices.Contains([]string{"unguarded", "excl", "flock-held"}, s.Name) || safeOnly && !s.Safe {
			continue
		}
		names = append(names, s.Name)
	}
	return names
}

func each(t *testing.T, names []string, test func(t *testing.T, name string)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { test(t, name) })
	}
}

func allNames() []string {
	var names []string
	for _, s := range Protocols {
		names = append(names, s.Name)
	}
	return names
}

func TestNamesAreUnique(t *testing.T) {
	names := allNames()
	for _, s := range Controls {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names repeat: %v", names)
	}
}

func TestEveryProtocolDoesItsWork(t *testing.T) {
	each(t, allNames(), func(t *testing.T, name string) {
		if name == "unguarded" {
			t.Skip("it guards nothing")
		}
		w := newWorld(t)
		a, _ := w.join(name)
		b, _ := w.join(name)
		won := w.try(a, sig, Won)
		w.try(b, sig, Held)
		if err := won.Lease.Renew(); err != nil {
			t.Errorf("renew: %v", err)
		}
		if err := won.Lease.Drop(); err != nil {
			t.Errorf("drop: %v", err)
		}
		won = w.try(b, sig, Won)
		if err := won.Lease.Done([]byte("result")); err != nil {
			t.Errorf("done: %v", err)
		}
		if err := won.Lease.Drop(); err != nil {
			t.Errorf("drop after done: %v", err)
		}
		w.advance(100 * testTTL)
		for _, p := range []Protocol{a, b} {
			if out := w.try(p, sig, Done); string(out.Record) != "result" {
				t.Errorf("record %q", out.Record)
			}
		}
	})
}

func TestExpiredIsTakenOverAndNotBefore(t *testing.T) {
	each(t, leased(false), func(t *testing.T, name string) {
		w := newWorld(t)
		a, _ := w.join(name)
		b, _ := w.join(name)
		lost := w.try(a, sig, Won)
		w.advance(testTTL - time.Second)
		w.try(b, sig, Held)
		w.advance(time.Second)
		w.try(b, sig, Won)
		if err := lost.Lease.Renew(); !errors.Is(err, ErrLost) {
			t.Errorf("renew after the take-over: %v", err)
		}
		w.try(a, sig, Held)
	})
}

func TestLateFinisherIsRefused(t *testing.T) {
	each(t, leased(true), func(t *testing.T, name string) {
		w := newWorld(t)
		a, _ := w.join(name)
		b, _ := w.join(name)
		late := w.try(a, sig, Won)
		w.advance(testTTL + time.Second)
		won := w.try(b, sig, Won)
		if err := late.Lease.Done([]byte("late")); !errors.Is(err, ErrLost) {
			t.Errorf("done by the late: %v", err)
		}
		if err := late.Lease.Drop(); err != nil {
			t.Errorf("drop by the late: %v", err)
		}
		w.try(a, sig, Held)
		if err := won.Lease.Done([]byte("in time")); err != nil {
			t.Fatal(err)
		}
		if out := w.try(a, sig, Done); string(out.Record) != "in time" {
			t.Errorf("record %q", out.Record)
		}
	})
}

func TestLateFinisherWithoutSuccessorIsHeard(t *testing.T) {
	each(t, leased(true), func(t *testing.T, name string) {
		w := newWorld(t)
		a, _ := w.join(name)
		won := w.try(a, sig, Won)
		w.advance(3 * testTTL)
		if err := won.Lease.Done(nil); err != nil {
			t.Fatal(err)
		}
		w.try(a, sig, Done)
	})
}

// Field reports have renewal revive a claim that had a successor, or had run
// out with the successor about to come.
func TestRenewalDoesNotReviveAnExpiredClaim(t *testing.T) {
	each(t, leased(true), func(t *testing.T, name string) {
		w := newWorld(t)
		a, ha := w.join(name)
		b, _ := w.join(name)
		won := w.try(a, sig, Won)
		w.advance(testTTL - testTTL/10)
		if err := won.Lease.Renew(); !errors.Is(err, ErrLost) {
			t.Errorf("renew within the slack: %v", err)
		}
		w.advance(testTTL)
		won = w.try(b, sig, Won)
		_ = won.Lease.Drop()

		won = w.try(a, sig, Won)
		ha.at("touch", 1, func() { w.advance(testTTL) })
		if err := won.Lease.Renew(); !errors.Is(err, ErrLost) {
			t.Errorf("renewal that was under way too long: %v", err)
		}
	})
}

func TestGenerationSearchIsLogarithmic(t *testing.T) {
	w := newWorld(t)
	a, ha := w.join("generations")
	for n := uint64(1); n <= 300; n++ {
		looks := 0
		ha.before = func(op, _ string) {
			if op == "lstat" {
				looks++
			}
		}
		out := w.try(a, sig, Won)
		if out.Generation != n || looks > 20 {
			t.Fatalf("generation %d after %d looks, want %d", out.Generation, looks, n)
		}
		if err := out.Lease.Drop(); err != nil {
			t.Fatal(err)
		}
	}
}
