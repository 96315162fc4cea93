package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Contenders that die are processes: this binary, told by its environment what
// to do. They report through a pipe, one short line a write, which outlives
// them.
const (
	envChild  = "ENGINE_TEST_CHILD"
	processes = 6
	shortTTL  = 600 * time.Millisecond
)

var children = map[string]func(g *Guard) error{
	"hold":  childHolds,
	"storm": childStorms,
	"work":  childWorks,
}

func TestMain(m *testing.M) {
	if spec := os.Getenv(envChild); spec != "" {
		if err := runChild(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runChild(spec string) error {
	f := strings.SplitN(spec, "|", 3)
	g, err := New(f[2], Options{Protocol: f[1], TTL: shortTTL})
	if err != nil {
		return err
	}
	return children[f[0]](g)
}

// childHolds wins and waits to be killed.
func childHolds(g *Guard) error {
	out, err := g.Claim(context.Background(), Key{"k"})
	if err != nil {
		return err
	}
	fmt.Println("holds", out.State, out.Generation)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

const stormKeys = 25

// childStorms does all the work there is.
func childStorms(g *Guard) error {
	for n := range stormKeys {
		_, err := g.Do(context.Background(), Key{"k", strconv.Itoa(n)}, func(_ context.Context, tok Token) error {
			fmt.Println("runs", n, tok.Generation)
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Println("done", n)
	}
	return nil
}

// childWorks on one key until it is told, or its lease is lost.
func childWorks(g *Guard) error {
	_, err := g.Do(context.Background(), Key{"k"}, func(ctx context.Context, tok Token) error {
		fmt.Println("runs", 0, tok.Generation)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if errors.Is(err, ErrLost) {
		fmt.Println("lost")
		return nil
	}
	return fmt.Errorf("work ended with %w", err)
}

type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	stdin io.WriteCloser
}

func startChild(t *testing.T, mode, protocol, dir string) *child {
	t.Helper()
	c, err := newChild(mode, protocol, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func newChild(mode, protocol, dir string) (*child, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+mode+"|"+protocol+"|"+dir)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{cmd: cmd, lines: bufio.NewScanner(out), stdin: stdin}, cmd.Start()
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// next waits for a line; the test's own time limit bounds it.
func (c *child) next(t *testing.T, want string) string {
	t.Helper()
	if !c.lines.Scan() {
		t.Fatalf("child said nothing, want %q", want)
	}
	if !strings.HasPrefix(c.lines.Text(), want) {
		t.Fatalf("child said %q, want %q", c.lines.Text(), want)
	}
	return c.lines.Text()
}

func safeProtocols() []string {
	var names []string
	for _, s := range Protocols {
		if s.Safe {
			names = append(names, s.Name)
		}
	}
	return names
}

// onEachFilesystem runs the test on a disk and in memory.
func onEachFilesystem(t *testing.T, test func(t *testing.T, dir, protocol string)) {
	for _, parent := range []string{os.TempDir(), "/dev/shm"} {
		for _, name := range safeProtocols() {
			t.Run(strings.Trim(parent, "/")+"/"+name, func(t *testing.T) {
				dir, err := os.MkdirTemp(parent, "engine-test-")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(dir) })
				test(t, dir, name)
			})
		}
	}
}

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

// storm runs contenders until each place has had one that came to its end.
func storm(t *testing.T, dir, protocol string, started func(*child)) map[string][]string {
	t.Helper()
	runs := map[string][]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			for ended := false; !ended; {
				c, err := newChild("storm", protocol, dir)
				if err != nil {
					t.Error(err)
					return
				}
				started(c)
				for c.lines.Scan() {
					f := strings.Fields(c.lines.Text())
					if len(f) == 3 && f[0] == "runs" {
						mu.Lock()
						runs[f[1]] = append(runs[f[1]], f[2])
						mu.Unlock()
					}
					ended = f[0] == "done" && f[1] == strconv.Itoa(stormKeys-1)
				}
				_ = c.cmd.Wait()
			}
		})
	}
	all.Wait()
	return runs
}
