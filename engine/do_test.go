package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// hookGuard is a guard whose steps a test can come before.
func hookGuard(t *testing.T, o Options) (*Guard, *hookFS) {
	t.Helper()
	w := newWorld(t)
	dir, err := OpenDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	fs := &hookFS{FullFS: dir, world: w}
	g, err := newGuard(fs, o.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	return g, fs
}

var errHang = errors.New("no answer")

func TestLostLeaseEndsTheWork(t *testing.T) {
	for what, renewal := range map[string]error{
		"a renewal that hangs":       errHang,
		"renewals that answer EIO":   syscall.EIO,
		"renewals that say ESTALE":   syscall.ESTALE,
		"a claim that was succeeded": nil,
	} {
		t.Run(what, func(t *testing.T) {
			g, fs := hookGuard(t, Options{TTL: 500 * time.Millisecond})
			ended := make(chan struct{})
			fs.answer = func(op, _ string, err error) error {
				if op != "touch" || renewal == nil {
					return err
				}
				if renewal == errHang {
					<-ended
				}
				return renewal
			}
			start := time.Now()
			_, err := g.Do(context.Background(), Key{"k"}, func(ctx context.Context, tok Token) error {
				if renewal == nil {
					next := filepath.Join(fs.world.dir, tok.Signature.claim(2))
					if err := os.WriteFile(next, nil, 0o600); err != nil {
						return err
					}
				}
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Second):
				}
				close(ended)
				if took := time.Since(start); renewal != nil && took < 300*time.Millisecond {
					t.Errorf("the work ended after %v, while the lease was good", took)
				}
				return context.Cause(ctx)
			})
			if !errors.Is(err, ErrLost) {
				t.Errorf("do: %v", err)
			}
		})
	}
}

func TestPanicGivesTheKeyBack(t *testing.T) {
	g := newTestGuard(t, t.TempDir(), Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_, _ = g.Do(context.Background(), Key{"k"}, func(context.Context, Token) error { panic("boom") })
	}()
	if out := claim(t, g, Key{"k"}, Won); out.Generation != 2 {
		t.Errorf("generation %d, want 2", out.Generation)
	}
}

func TestDoWaitsForTheHolder(t *testing.T) {
	dir := t.TempDir()
	a := newTestGuard(t, dir, Options{Poll: 5 * time.Millisecond})
	b := newTestGuard(t, dir, Options{Poll: 5 * time.Millisecond})
	out := claim(t, a, Key{"k"}, Won)
	finished := make(chan error)
	var ran atomic.Bool
	go func() {
		got, err := b.Do(context.Background(), Key{"k"}, func(context.Context, Token) error {
			ran.Store(true)
			return nil
		})
		if err == nil && (got.State != Done || string(got.Record) != "result") {
			err = errors.New("outcome " + got.State.String() + " " + string(got.Record))
		}
		finished <- err
	}()
	select {
	case err := <-finished:
		t.Fatalf("do did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := out.Lease.Done([]byte("result")); err != nil {
		t.Fatal(err)
	}
	if err := <-finished; err != nil || ran.Load() {
		t.Errorf("do: %v, ran %v", err, ran.Load())
	}
}

func TestDoEndsWithItsContext(t *testing.T) {
	g := newTestGuard(t, t.TempDir(), Options{})
	claim(t, g, Key{"k"}, Won)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := g.Do(ctx, Key{"k"}, func(context.Context, Token) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("do: %v", err)
	}
}

// A filesystem that does not answer must not hold its callers, and what it
// answers later must not be kept.
func TestHungAttemptIsLeftAndGivenBack(t *testing.T) {
	g, fs := hookGuard(t, Options{})
	hung, answer := make(chan struct{}), make(chan struct{})
	fs.at("create", 1, func() { close(hung); <-answer })
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-hung; cancel() }()
	if _, err := g.Claim(ctx, Key{"k"}); !errors.Is(err, ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("claim: %v", err)
	}
	close(answer)
	out := until(t, newTestGuard(t, fs.world.dir, Options{}), Won)
	if out.Generation > 2 {
		t.Errorf("generation %d", out.Generation)
	}
}

func TestFinishTriesAgain(t *testing.T) {
	g, fs := hookGuard(t, Options{Poll: time.Millisecond})
	failures := 2
	fs.answer = func(op, name string, err error) error {
		if op == "close" && filepath.Ext(name) == ".claim" && failures > 0 {
			failures--
			return syscall.EIO
		}
		return err
	}
	out, err := g.Do(context.Background(), Key{"k"}, func(_ context.Context, tok Token) error {
		tok.Record([]byte("result"))
		return nil
	})
	if err != nil || out.State != Won {
		t.Fatal(out.State, err)
	}
	claim(t, g, Key{"k"}, Done)
}
