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
