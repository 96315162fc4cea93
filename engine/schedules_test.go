package engine

import (
	"errors"
	"slices"
	"strings"
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

// The schedules in the doc comments of the wrong protocols, step by step: C
// died, A and B find its claim expired, and A takes over completely before B's
// next step.
func TestTakeOverSchedules(t *testing.T) {
	for _, c := range []struct {
		protocol string
		at       string // the step of B that comes late
		want     State  // B's
	}{
		{"check-then-create", "overwrite", Won},
		{"excl-unlink", "unlink", Won},
		{"flock-dir", "openlock", Won},
		{"flock-key", "openlock", Won},
		{"flock-reread", "openlock", Held},
		{"generations", "create", Held},
		{"generations-linked", "link", Held},
		{"quarantine", "rename", Held},
	} {
		t.Run(c.protocol, func(t *testing.T) {
			w := newWorld(t)
			dead, _ := w.join(c.protocol)
			a, _ := w.join(c.protocol)
			b, hb := w.join(c.protocol)
			w.try(dead, sig, Won)
			w.advance(testTTL + time.Second)
			n := 1
			if strings.HasPrefix(c.protocol, "generations") {
				n = 2 // the first attempt is at generation 1
			}
			hb.at(c.at, n, func() { w.try(a, sig, Won) })
			w.try(b, sig, c.want)
			if hb.before != nil {
				t.Errorf("B never came to %s", c.at)
			}
		})
	}
}

// The reader that sees a claim before its owner wrote it must not take it for
// stale: the commonest bug there is.
func TestEmptyClaimIsHeldWhileYoung(t *testing.T) {
	each(t, leased(false), func(t *testing.T, name string) {
		w := newWorld(t)
		a, ha := w.join(name)
		b, _ := w.join(name)
		steps := map[string]string{"generations-linked": "link", "quarantine": "rename", "quarantine-eager": "rename"}
		step := steps[name]
		if step == "" {
			step = "write"
		}
		looked := false
		var out Outcome
		ha.at(step, 1, func() {
			looked = true
			var err error
			if out, err = b.Try(sig); err != nil {
				t.Fatal(err)
			}
		})
		mine, err := a.Try(sig)
		if err != nil || !looked {
			t.Fatal(err, looked)
		}
		if mine.State == Won && out.State == Won {
			t.Error("both won")
		}
		if mine.State != Won && out.State != Won {
			t.Error("nobody won")
		}
	})
}

// A contender that comes back from between its create and its write after a
// TTL finds that somebody else took over, and must not act on its claim.
func TestAttemptBeyondItsDeadlineIsGivenUp(t *testing.T) {
	each(t, leased(true), func(t *testing.T, name string) {
		step := "write"
		if name == "quarantine" {
			step = "rename"
		}
		for _, successor := range []bool{false, true} {
			w := newWorld(t)
			a, ha := w.join(name)
			b, _ := w.join(name)
			ha.at(step, 1, func() {
				w.advance(testTTL + time.Second)
				if successor {
					w.try(b, sig, Won)
				}
			})
			out, err := a.Try(sig)
			if err != nil {
				t.Fatal(err)
			}
			if name == "generations-linked" && !successor {
				// Nobody could see the claim before it was published.
				if out.State == Won {
					t.Error("won beyond the deadline")
				}
				continue
			}
			if out.State != Held {
				t.Errorf("attempt beyond its deadline is %v", out.State)
			}
		}
	})
}

// TestNothingIsLostToADeath sweeps the moments of death in claiming, taking
// over and finishing: a fresh contender gets the work done within a TTL, or
// finds it done.
// getsDone allows two attempts: an ownerless lock needs one to be named.
// EEXIST from the done record of an owner whose lease has run out may be its
// own or a successor's that has not been written yet: nobody knows.
// errorAt fails the n-th step of that kind. Steps that clean up may fail
// without a word; an answer of the others is not known.
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

// Only its own names are the engine's to remove.

// The former owner may finish between a contender's look at what is done and
// its claim.
func TestDoneIsLookedAtAgainAfterWinning(t *testing.T) {
	for name, step := range map[string]string{
		"excl-unlink": "unlink", "flock-dir": "openlock", "flock-key": "openlock", "flock-reread": "openlock",
		"flock-held": "openlock", "quarantine": "lstat", "quarantine-eager": "lstat", "check-then-create": "overwrite",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a, _ := w.join(name)
			b, hb := w.join(name)
			owner := w.try(a, sig, Won)
			if !strings.HasPrefix(name, "quarantine") && name != "flock-held" {
				w.advance(testTTL + time.Second)
			}
			hb.at(step, 1, func() {
				if err := owner.Lease.Done([]byte("result")); err != nil {
					t.Fatal(err)
				}
			})
			if out := w.try(b, sig, Done); string(out.Record) != "result" {
				t.Errorf("record %q", out.Record)
			}
		})
	}
}

// A done record that stayed empty for a TTL may have been taken over.
func TestSlowFinisherIsRefused(t *testing.T) {
	w := newWorld(t)
	a, ha := w.join("generations")
	b, _ := w.join("generations")
	out := w.try(a, sig, Won)
	ha.at("write", 1, func() {
		w.advance(testTTL + time.Second)
		if got := w.try(b, sig, Won); got.Generation != 3 {
			t.Errorf("generation %d, want 3", got.Generation)
		}
	})
	if err := out.Lease.Done(nil); !errors.Is(err, ErrLost) {
		t.Errorf("done: %v", err)
	}
	w.try(a, sig, Held)
}

func TestLateEvictionIsNotCarriedOut(t *testing.T) {
	w := newWorld(t)
	a, _ := w.join("quarantine")
	b, hb := w.join("quarantine")
	w.try(a, sig, Won)
	w.advance(testTTL + time.Second)
	hb.at("open", 2, func() { w.advance(testTTL/2 + time.Second) })
	hb.answer = func(op, name string, err error) error {
		if op == "rename" {
			t.Errorf("renamed to %s beyond the deadline", name)
		}
		return err
	}
	w.try(b, sig, Held)
}

func TestOwnerlessLockIsHeldWhileYoung(t *testing.T) {
	w := newWorld(t)
	a, ha := w.join("quarantine")
	b, _ := w.join("quarantine")
	if !die(ha, "rename", 1, func() { _, _ = a.Try(sig) }) {
		t.Fatal("no rename to die at")
	}
	w.try(b, sig, Held)
	w.advance(testTTL - time.Second)
	w.try(b, sig, Held)
	w.advance(2 * time.Second)
	w.try(b, sig, Won)
}

// An owner that wakes up long after its eviction, and after the quarantine that
// would have been in its way was reclaimed, must not move the lock of another.
func TestLateOwnerLeavesTheLockAlone(t *testing.T) {
	for _, what := range []string{"drop", "done"} {
		w := newWorld(t)
		a, _ := w.join("quarantine")
		b, _ := w.join("quarantine")
		late := w.try(a, sig, Won)
		w.advance(testTTL + time.Second)
		owner := w.try(b, sig, Won)
		for range 4 {
			w.advance(testTTL / 2)
			if err := owner.Lease.Renew(); err != nil {
				t.Fatal(err)
			}
		}
		w.advance(time.Second)
		if done, err := b.(Reclaimer).Reclaim(1); err != nil || len(done.Removed) != 1 {
			t.Fatal(done, err)
		}
		if what == "drop" {
			_ = late.Lease.Drop()
		} else if err := late.Lease.Done(nil); !errors.Is(err, ErrLost) {
			t.Errorf("done: %v", err)
		}
		w.try(a, sig, Held)
		if err := owner.Lease.Renew(); err != nil {
			t.Errorf("after a late %s: %v", what, err)
		}
	}
}

func TestRemovedSentinelIsNoticed(t *testing.T) {
	w := newWorld(t)
	a, _ := w.join("flock-held")
	b, hb := w.join("flock-held")
	out := w.try(a, sig, Won)
	if err := hb.FullFS.Unlink(sig.flock()); err != nil {
		t.Fatal(err)
	}
	if err := out.Lease.Renew(); !errors.Is(err, ErrLost) {
		t.Errorf("renew: %v", err)
	}
	hb.at("lstat", 1, func() { _ = hb.FullFS.Unlink(sig.flock()) })
	w.try(b, sig, Held)
}
