package probes

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/result"
)

// An operation that does not come back costs its own probe only: the contenders that are stuck are left behind, even
// where the kernel does not let them be killed, and their successors go on elsewhere. When the filesystem answers at
// last, long after the line is closed, nothing happens but that they end.
func TestAHangingFilesystemIsLeftBehind(t *testing.T) {
	all := []struct {
		what   string
		probe  string
		faults string
	}{
		{"the first open of a script hangs", "excl-create", "open=hang"},
		{"an open hangs in a race, and holds the lock of the directory that the others wait for", "excl-create",
			"open=hang,every=40"},
		{"locking hangs", "flock", "lock=hang"},
		{"removing hangs", "publish", "unlink=hang"},
		{"removing hangs", "visibility", "unlink=hang"},
		{"a watcher's open hangs", "visibility", "open=hang,every=90"},
		{"removing hangs", "unlink-race", "unlink=hang"},
		{"opening hangs", "path-agreement", "open=hang,every=60"},
		{"a waiter that is not woken", "lock-coherence", "lock=no-wake"},
		{"the first stamp hangs", "timestamps", "open=hang"},
		{"removing hangs, in a succession", "inode-reuse", "unlink=hang"},
		{"removing hangs in a script", "errno-table", "unlink=hang"},
		{"opening hangs in a script", "names", "open=hang"},
		{"locking hangs in a script", "lock-rules", "lock=hang"},
	}
	if testing.Short() {
		all = all[:2]
	}
	for _, c := range all {
		t.Run(c.what, func(t *testing.T) {
			t.Cleanup(func() { noChildren(t) })
			dirs := newFaulty(t, 1, c.faults)
			b := impatientBench(t, dirs[0])
			f := run(t, b, c.probe)
			if f.Verdict != result.Hung || !strings.Contains(f.Reason, "did not come back") || f.Advice == "" {
				t.Errorf("want hung: %s", describe(&f))
			}
			good := t.TempDir()
			if err := b.Line.Enter(t.Context(), good); err != nil {
				t.Fatalf("the next directory: %v", err)
			}
			if f := insist(t, b, "mkdir", holds); f.Verdict != holds {
				t.Errorf("the next probe, on another filesystem: %s", describe(&f))
			}
		})
	}
}

// impatientBench is a small bench that does not wait long for what hangs.
func impatientBench(t *testing.T, dir string) Bench {
	t.Helper()
	b := smallBench(t, 4, dir)
	b.Line = newLine(t, 4, time.Second, dir)
	return b
}

// noChildren waits until this process has no children.
func noChildren(t *testing.T) {
	t.Helper()
	var left []string
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if left = children(t); len(left) == 0 {
			return
		}
	}
	t.Errorf("processes left behind: %q", left)
}

// children reads the first fields of proc_pid_stat(5) of each child: its number, name, and state.
func children(t *testing.T) (found []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // no process, or one that has just ended
		}
		before, after, _ := strings.Cut(string(b), ") ")
		var state string
		var parent int
		if _, err := fmt.Sscan(after, &state, &parent); err == nil && parent == os.Getpid() {
			found = append(found, before+") "+state)
		}
	}
	return found
}
