package engine

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

func newTestGuard(t *testing.T, dir string, o Options) *Guard {
	t.Helper()
	g, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func claim(t *testing.T, g *Guard, key Key, want State) Outcome {
	t.Helper()
	out, err := g.Claim(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	if out.State != want {
		t.Fatalf("claim is %v, want %v", out.State, want)
	}
	return out
}

func TestAKeyIsDoneOnce(t *testing.T) {
	for _, name := range []string{"generations", "generations-linked"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a := newTestGuard(t, dir, Options{Protocol: name})
			b := newTestGuard(t, dir, Options{Protocol: name})
			won := claim(t, a, Key{"k"}, Won)
			held := claim(t, b, Key{"k"}, Held)
			if held.Owner != won.Owner || !held.Until.Equal(won.Until) {
				t.Errorf("held by %q until %v, want %q until %v", held.Owner, held.Until, won.Owner, won.Until)
			}
			if err := won.Lease.Done([]byte("result")); err != nil {
				t.Fatal(err)
			}
			if err := won.Lease.Done([]byte("result")); err != nil {
				t.Errorf("second done: %v", err)
			}
			for _, g := range []*Guard{a, b} {
				if out := claim(t, g, Key{"k"}, Done); string(out.Record) != "result" {
					t.Errorf("record %q", out.Record)
				}
			}
		})
	}
}

func TestDroppedIsClaimableAtOnce(t *testing.T) {
	g := newTestGuard(t, t.TempDir(), Options{})
	for n := uint64(1); n < 40; n++ {
		out := claim(t, g, Key{"k"}, Won)
		if out.Generation != n {
			t.Fatalf("generation %d, want %d", out.Generation, n)
		}
		if err := out.Lease.Drop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoRunsAgainAfterAnError(t *testing.T) {
	g := newTestGuard(t, t.TempDir(), Options{})
	boom := errors.New("boom")
	_, err := g.Do(context.Background(), Key{"k"}, func(context.Context, Token) error { return boom })
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	runs := 0
	for range 3 {
		_, err := g.Do(context.Background(), Key{"k"}, func(_ context.Context, tok Token) error {
			runs++
			if tok.Generation != 2 {
				t.Errorf("generation %d, want 2", tok.Generation)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs, want 1", runs)
	}
}

func TestRenewalKeepsWorkLongerThanTTL(t *testing.T) {
	g := newTestGuard(t, t.TempDir(), Options{TTL: 400 * time.Millisecond})
	_, err := g.Do(context.Background(), Key{"k"}, func(ctx context.Context, _ Token) error {
		end := time.Now().Add(time.Second)
		for time.Now().Before(end) {
			claim(t, g, Key{"k"}, Held)
			time.Sleep(20 * time.Millisecond)
		}
		return context.Cause(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLeaseAfterClose(t *testing.T) {
	dir := t.TempDir()
	g, err := New(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	given, kept := claim(t, g, Key{"given"}, Won), claim(t, g, Key{"kept"}, Won)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"renew": kept.Lease.Renew(), "done": kept.Lease.Done(nil), "drop": kept.Lease.Drop()} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := g.Claim(context.Background(), Key{"k"}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("claim: %v", err)
	}
	if err := given.Lease.Drop(); err != nil {
		t.Errorf("drop: %v", err)
	}
	other := newTestGuard(t, dir, Options{})
	claim(t, other, Key{"given"}, Won)
	claim(t, other, Key{"kept"}, Held)
}
