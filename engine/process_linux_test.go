package engine

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// until asks again until the state is reached, and fails after a time that no
// loaded machine needs.
func until(t *testing.T, g *Guard, want State) Outcome {
	t.Helper()
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(10 * time.Millisecond) {
		out, err := g.Claim(context.Background(), Key{"k"})
		if err != nil {
			t.Fatal(err)
		}
		if out.State == want {
			return out
		}
	}
	t.Fatalf("the key is not %v", want)
	return Outcome{}
}

func TestKilledOwnerIsReplacedAfterItsTTL(t *testing.T) {
	onEachFilesystem(t, func(t *testing.T, dir, protocol string) {
		c := startChild(t, "hold", protocol, dir)
		c.next(t, "holds won")
		// The owner claimed before it said so.
		said := time.Now()
		g := newTestGuard(t, dir, Options{Protocol: protocol, TTL: shortTTL})
		claim(t, g, Key{"k"}, Held)
		c.kill()
		out := until(t, g, Won)
		took := time.Since(said)
		if protocol != "flock-held" && took < shortTTL*9/10 {
			t.Errorf("taken over %v after the claim, TTL is %v", took, shortTTL)
		}
		t.Logf("taken over %v after the claim, generation %d", took.Round(time.Millisecond), out.Generation)
		if strings.HasPrefix(protocol, "generations") && out.Generation != 2 {
			t.Errorf("generation %d, want 2", out.Generation)
		}
	})
}

func TestStoppedOwnerFindsOutFirst(t *testing.T) {
	for _, protocol := range []string{"generations", "generations-linked", "quarantine", "flock-reread"} {
		t.Run(protocol, func(t *testing.T) {
			dir := t.TempDir()
			c := startChild(t, "work", protocol, dir)
			c.next(t, "runs")
			g := newTestGuard(t, dir, Options{Protocol: protocol, TTL: shortTTL})
			if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			out := until(t, g, Won)
			if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			c.next(t, "lost")
			if err := out.Lease.Done(nil); err != nil {
				t.Errorf("done by the successor: %v", err)
			}
		})
	}
}

func TestStorm(t *testing.T) {
	onEachFilesystem(t, func(t *testing.T, dir, protocol string) {
		newTestGuard(t, dir, Options{Protocol: protocol, TTL: shortTTL})
		runs := storm(t, dir, protocol, func(*child) {})
		for n := range stormKeys {
			if got := len(runs[strconv.Itoa(n)]); got != 1 {
				t.Errorf("key %d ran %d times: generations %v", n, got, runs[strconv.Itoa(n)])
			}
		}
	})
}

// The storm has to show a protocol that guards nothing for what it is.
func TestStormSeesDuplicates(t *testing.T) {
	dir := t.TempDir()
	newTestGuard(t, dir, Options{Protocol: "unguarded", TTL: shortTTL})
	for n, generations := range storm(t, dir, "unguarded", func(*child) {}) {
		if len(generations) != processes {
			t.Errorf("key %s ran %d times, want %d", n, len(generations), processes)
		}
	}
}

// TestStormWithDeaths kills contenders at random moments and replaces them: no
// work is missed, and no generation executes twice.
func TestStormWithDeaths(t *testing.T) {
	onEachFilesystem(t, func(t *testing.T, dir, protocol string) {
		newTestGuard(t, dir, Options{Protocol: protocol, TTL: shortTTL})
		deaths := 0
		var mu sync.Mutex
		runs := storm(t, dir, protocol, func(c *child) {
			mu.Lock()
			defer mu.Unlock()
			if deaths < 2*processes {
				deaths++
				after := time.Duration(rand.IntN(40)) * time.Millisecond
				time.AfterFunc(after, func() { _ = c.cmd.Process.Kill() })
			}
		})
		for n := range stormKeys {
			seen := map[string]bool{}
			for _, generation := range runs[strconv.Itoa(n)] {
				if seen[generation] && generation != "0" {
					t.Errorf("key %d: generation %s ran twice", n, generation)
				}
				seen[generation] = true
			}
			if len(seen) == 0 {
				t.Errorf("key %d never ran", n)
			}
		}
	})
}
