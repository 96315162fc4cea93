package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

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

func TestMovedLockIsNotRenewed(t *testing.T) {
	w := newWorld(t)
	a, _ := w.join("quarantine")
	out := w.try(a, sig, Won)
	if err := os.Rename(filepath.Join(w.dir, sig.lock()), filepath.Join(w.dir, out.Lease.(*quarantineLease).stale())); err != nil {
		t.Fatal(err)
	}
	if err := out.Lease.Renew(); !errors.Is(err, ErrLost) {
		t.Errorf("renew: %v", err)
	}
	if err := out.Lease.Done(nil); !errors.Is(err, ErrLost) {
		t.Errorf("done: %v", err)
	}
}
