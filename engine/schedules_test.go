package engine

import (
	"errors"
	"strings"
	"testing"
	"time"
)

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
			if c.protocol == "generations" {
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
