package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deathSteps are all steps at which a contender can die.
var deathSteps = []string{"create", "write", "stat", "mkdir", "rename", "link", "unlink", "rmdir", "open", "lstat", "now", "close", "touch", "openlock"}

// Every moment of death in claiming, taking over and finishing: a fresh
// contender gets the work done within a TTL, or finds it done.
func TestNothingIsLostToADeath(t *testing.T) {
	names := []string{"generations", "generations-linked", "quarantine", "quarantine-eager", "excl-unlink"}
	each(t, names, func(t *testing.T, name string) {
		deaths := 0
		for _, step := range deathSteps {
			for n := 1; ; n++ {
				w := newWorld(t)
				a, ha := w.join(name)
				b, _ := w.join(name)
				first, _ := w.join(name)
				w.try(first, sig, Won)
				w.advance(testTTL + time.Second)
				died := die(ha, step, n, func() {
					if out, err := a.Try(sig); err == nil && out.State == Won {
						_ = out.Lease.Done(nil)
					}
				})
				if !died {
					break
				}
				deaths++
				getsDone(t, w, b, step, n)
			}
		}
		if deaths < 8 {
			t.Errorf("%d deaths only", deaths)
		}
	})
}

// getsDone allows two attempts: a lock without an owner needs one to be named.
func getsDone(t *testing.T, w *world, p Protocol, step string, n int) {
	t.Helper()
	w.advance(testTTL + time.Second)
	for range 2 {
		out, err := p.Try(sig)
		if err != nil {
			t.Errorf("after a death before %s #%d: %v", step, n, err)
			return
		}
		if out.State == Won {
			if err := out.Lease.Done(nil); err != nil {
				t.Errorf("after a death before %s #%d: %v", step, n, err)
			}
		}
		if out.State != Held {
			return
		}
	}
	t.Errorf("after a death before %s #%d nobody gets the key", step, n)
}

func TestLostReplies(t *testing.T) {
	lie := func(h *hookFS, op, suffix string) {
		h.answer = func(got, name string, err error) error {
			if got == op && err == nil && strings.HasSuffix(name, suffix) {
				h.answer = nil
				return &os.PathError{Op: op, Path: name, Err: syscall.EEXIST}
			}
			return err
		}
	}
	t.Run("link of a claim", func(t *testing.T) {
		w := newWorld(t)
		a, ha := w.join("generations-linked")
		lie(ha, "link", ".gen1.claim")
		w.try(a, sig, Won)
	})
	t.Run("rename of an owner", func(t *testing.T) {
		w := newWorld(t)
		a, ha := w.join("quarantine")
		lie(ha, "rename", "/owner")
		w.try(a, sig, Won)
	})
	t.Run("create of a claim", func(t *testing.T) {
		w := newWorld(t)
		a, ha := w.join("generations")
		lie(ha, "create", ".gen1.claim")
		w.try(a, sig, Held)
		w.advance(testTTL + time.Second)
		w.try(a, sig, Won)
	})
	for _, name := range []string{"generations", "generations-linked"} {
		t.Run("done record of "+name, func(t *testing.T) {
			w := newWorld(t)
			a, ha := w.join(name)
			b, _ := w.join(name)
			out := w.try(a, sig, Won)
			lie(ha, map[string]string{"generations": "create", "generations-linked": "link"}[name], ".gen2.claim")
			if err := out.Lease.Done([]byte("result")); err != nil {
				t.Fatal(err)
			}
			w.try(b, sig, Done)
			w.advance(3 * testTTL)
			w.try(b, sig, Done)
		})
	}
}

// EEXIST for the done record of an owner whose lease has run out may be its
// own, or a successor's that has not been written yet: nobody knows.
func TestLateLostReplyIsNotKnown(t *testing.T) {
	w := newWorld(t)
	a, ha := w.join("generations")
	out := w.try(a, sig, Won)
	w.advance(2 * testTTL)
	ha.answer = func(op, name string, err error) error {
		if op == "create" {
			return &os.PathError{Op: op, Path: name, Err: syscall.EEXIST}
		}
		return err
	}
	if err := out.Lease.Done(nil); !errors.Is(err, ErrUnknown) || errors.Is(err, ErrLost) {
		t.Errorf("done: %v", err)
	}
}

func TestErrorsAreNeitherMineNorStale(t *testing.T) {
	each(t, allNames(), func(t *testing.T, name string) {
		if name == "unguarded" {
			t.Skip("it asks nothing")
		}
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE} {
			for _, op := range deathSteps {
				for n := 1; n < 12; n++ {
					w := newWorld(t)
					first, _ := w.join(name)
					w.try(first, sig, Won)
					w.advance(testTTL + time.Second)
					a, ha := w.join(name)
					if !errorAt(t, ha, op, n, errno, func() (Outcome, error) { return a.Try(sig) }) {
						break
					}
				}
			}
		}
	})
}

// errorAt fails the n-th step of that kind, and tells whether there was one.
// Steps that clean up may fail without a word; of the others the outcome is not
// known.
func errorAt(t *testing.T, h *hookFS, op string, n int, errno syscall.Errno, attempt func() (Outcome, error)) bool {
	t.Helper()
	failed := ""
	h.answer = func(got, name string, err error) error {
		if got == op {
			if n--; n == 0 {
				failed = name
				return &os.PathError{Op: op, Path: name, Err: errno}
			}
		}
		return err
	}
	out, err := attempt()
	cleanup := op == "unlink" && strings.Contains(failed, ".new-") || op == "rmdir" ||
		strings.HasSuffix(failed, "/"+stampName) || op == "close"
	if n <= 0 && !cleanup {
		if err == nil || !errors.Is(err, errno) || !errors.Is(err, ErrUnknown) || out.State != 0 {
			t.Errorf("%s %s answers %v: attempt is %v, %v", op, failed, errno, out.State, err)
		}
	}
	return n <= 0
}

func TestFullDiskDoesNotUndoWhatWasDone(t *testing.T) {
	w := newWorld(t)
	a, ha := w.join("generations")
	b, _ := w.join("generations")
	out := w.try(a, sig, Won)
	ha.answer = func(op, name string, err error) error {
		if op == "write" && strings.HasSuffix(name, ".gen2.claim") {
			return &os.PathError{Op: op, Path: name, Err: syscall.ENOSPC}
		}
		return err
	}
	if err := out.Lease.Done([]byte("result")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("done on a full disk: %v", err)
	}
	w.advance(2 * testTTL)
	if out := w.try(b, sig, Done); !out.Torn {
		t.Errorf("record %q is not called torn", out.Record)
	}
	ha.answer = nil
	if err := out.Lease.Done([]byte("result")); err != nil {
		t.Fatalf("done once there is room: %v", err)
	}
	if out := w.try(b, sig, Done); string(out.Record) != "result" {
		t.Errorf("record %q", out.Record)
	}
}

func TestSymptomsOfARemovedClaim(t *testing.T) {
	w := newWorld(t)
	a, _ := w.join("generations")
	out := w.try(a, sig, Won)
	if err := os.Remove(filepath.Join(w.dir, sig.claim(1))); err != nil {
		t.Fatal(err)
	}
	if err := out.Lease.Renew(); !errors.Is(err, ErrLost) {
		t.Errorf("renew of a claim that a cleaner removed: %v", err)
	}
}

// What was done, with a record that is lost, is known from the mark on the
// claim. Giving the key back must not wipe it out.
func TestDropAfterAFailedDoneDoesNotUndoIt(t *testing.T) {
	for _, name := range []string{"generations", "quarantine", "flock-reread"} {
		w := newWorld(t)
		a, ha := w.join(name)
		b, _ := w.join(name)
		out := w.try(a, sig, Won)
		done := sig.done()
		if name == "generations" {
			done = sig.claim(2)
		}
		ha.answer = func(op, name string, err error) error {
			if op == "close" && name == done {
				return errors.Join(syscall.EIO, os.Truncate(filepath.Join(w.dir, name), 0))
			}
			return err
		}
		if err := out.Lease.Done([]byte("result")); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: done: %v", name, err)
		}
		if err := out.Lease.Drop(); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: drop: %v", name, err)
		}
		w.advance(2 * testTTL)
		if out := w.try(b, sig, Done); !out.Torn {
			t.Errorf("%s: record %q is not called torn", name, out.Record)
		}
	}
}

func TestLockThatTheServerTookAwayIsLost(t *testing.T) {
	w := newWorld(t)
	a, ha := w.join("flock-held")
	out := w.try(a, sig, Won)
	ha.answer = func(op, _ string, err error) error {
		if op == "stat" {
			return syscall.EIO
		}
		return err
	}
	if err := out.Lease.Renew(); !errors.Is(err, ErrLost) || !errors.Is(err, syscall.EIO) {
		t.Errorf("renew: %v", err)
	}
}
