package bench

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/testenv"
)

// lineIn starts contenders in a directory, over each of its routes.
func lineIn(t *testing.T, contenders int, routes ...string) *race.Line {
	t.Helper()
	return lineThat(t, race.Config{Contenders: contenders, HangAfter: 10 * time.Second}, routes...)
}

func lineThat(t *testing.T, c race.Config, routes ...string) *race.Line {
	t.Helper()
	c.Ops, c.Seed = opsOfTests(), 1
	l, err := race.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := l.Enter(t.Context(), routes...); err != nil {
		t.Fatal(err)
	}
	return l
}

// opsOfTests is the table that the contenders of this test binary have, set by its TestMain.
var opsOfTests func() []race.Op

// SetOps hands the tests the table of operations.
func SetOps(ops func() []race.Op) { opsOfTests = ops }

func rowsOf(t *testing.T, name string, o Options) map[string]result.Bench {
	t.Helper()
	w, ok := Find(name)
	if !ok {
		t.Fatalf("no workload %s", name)
	}
	rows, err := Run(t.Context(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]result.Bench{}
	for _, r := range rows {
		by[strings.TrimSpace(r.Protocol+" "+r.Variant)] = r
		if r.Void > 0 {
			t.Logf("%s %s: %d void: %v", r.Protocol, r.Variant, r.Void, r.Voided)
		}
	}
	return by
}

// clean says that nothing went wrong, and that there was something to go wrong.
func clean(t *testing.T, what string, r result.Bench) {
	t.Helper()
	if r.Trials == 0 || r.Duplicates+r.Missed+r.Blocked+r.Illegal > 0 {
		t.Errorf("%s: %d trials, %d duplicates, %d missed, %d blocked, %d illegal: %+v", what, r.Trials, r.Duplicates, r.Missed, r.Blocked, r.Illegal, r.Counterexample)
	}
}

var safe = []string{"flock-reread", "generations", "generations-linked", "quarantine", "flock-held"}

func TestFortyToOne(t *testing.T) {
	l := lineIn(t, 40, t.TempDir())
	rows := rowsOf(t, "forty", Options{Line: l, Trials: 6})
	for name, r := range rows {
		if r.Attempts != 40*(r.Trials) || r.Expected != r.Trials {
			t.Errorf("%s: %d attempts, %d expected, of %d trials", name, r.Attempts, r.Expected, r.Trials)
		}
	}
	if r := rows["unguarded"]; r.Executed != 40*r.Trials || r.Duplicates != 39*r.Trials || !r.Control {
		t.Errorf("unguarded: %+v", r)
	}
	for _, name := range append(safe, "excl") {
		clean(t, name, rows[name])
		if r := rows[name]; r.Executed != r.Trials {
			t.Errorf("%s: %d executions in %d trials", name, r.Executed, r.Trials)
		}
	}
}

func TestStormAndTakeoverAreRightWithTheSafe(t *testing.T) {
	l := lineIn(t, 17, t.TempDir())
	for _, workload := range []string{"storm", "takeover"} {
		for name, r := range rowsOf(t, workload, Options{Line: l, Trials: 4, Protocols: safe}) {
			clean(t, workload+" "+name, r)
		}
	}
	if r := rowsOf(t, "takeover", Options{Line: l, Trials: 2, Protocols: []string{"excl"}})["excl"]; r.Missed != 2 {
		t.Errorf("excl took a claim over that has no end: %+v", r)
	}
}

func TestForcedInterleavings(t *testing.T) {
	const trials = 4
	l := lineIn(t, 4, t.TempDir())
	rows := rowsOf(t, "forced", Options{Line: l, Trials: trials, TTL: 2 * time.Second})
	for name, r := range rows {
		switch {
		case r.Trials+r.Void != trials:
			t.Errorf("%s: %d trials", name, r.Trials)
		case r.Control && (r.Trials == 0 || r.Duplicates != r.Trials):
			t.Errorf("%s: duplicates in %d of %d", name, r.Duplicates, r.Trials)
		case !r.Control:
			clean(t, name, r)
		}
	}
	for _, name := range []string{"excl-unlink stale reader", "flock-key stale reader", "quarantine-eager late rename", "generations/empty-is-stale empty claim", "quarantine/age-from-mtime early reaper"} {
		if !rows[name].Control {
			t.Errorf("%s is no control", name)
		}
	}
	for _, name := range []string{"generations stale reader", "quarantine late rename", "generations empty claim", "quarantine early reaper"} {
		if rows[name].Trials == 0 {
			t.Errorf("%s was not run", name)
		}
	}
}

func TestDeathsLoseNothing(t *testing.T) {
	l := lineIn(t, 4, t.TempDir())
	rows := rowsOf(t, "deaths", Options{Line: l, Trials: 25, Protocols: []string{"generations", "quarantine", "excl"}, TTL: 400 * time.Millisecond})
	// With the three of a renewal among them.
	steps := map[string]int{"generations each step of a claim": 13, "quarantine each step of a claim": 25}
	for name, r := range rows {
		if strings.HasPrefix(name, "excl ") {
			if r.Missed == 0 {
				t.Errorf("%s: a claim without an end was taken over", name)
			}
			continue
		}
		clean(t, name, r)
		if r.Trials < steps[name] || r.TakeoverMS == nil || r.TakeoverMS.N == 0 {
			t.Errorf("%s: %d trials, take-overs %+v", name, r.Trials, r.TakeoverMS)
		}
	}
}

func TestStallsOverlapAndTheFenceHolds(t *testing.T) {
	l := lineIn(t, 9, t.TempDir())
	rows := rowsOf(t, "stall", Options{Line: l, Trials: 1, Protocols: []string{"generations", "quarantine", "flock-held"}})
	if r := rows["generations"]; r.Overlaps != stalled || r.Refused != stalled || r.Accepted != 0 || r.Duplicates != 0 {
		t.Errorf("generations: %+v", r)
	}
	if r := rows["quarantine"]; r.Overlaps != stalled || r.Accepted != stalled {
		t.Errorf("quarantine has no token to check: %+v", r)
	}
	if r := rows["flock-held"]; r.Overlaps != 0 || r.Executed != stalled {
		t.Errorf("flock-held is not taken over from the living: %+v", r)
	}
}

func TestUnrelatedKeysAreBlockedByFlockDirAlone(t *testing.T) {
	l := lineIn(t, 4, t.TempDir())
	for name, r := range rowsOf(t, "unrelated", Options{Line: l, Trials: 1, TTL: 2 * time.Second}) {
		want := 0
		if name == "flock-dir" {
			want = coldKeys
		}
		if r.Blocked != want || r.Missed != 0 || r.Duplicates != 0 || r.Trials != 1 {
			t.Errorf("%s: %d blocked, want %d: %+v", name, r.Blocked, want, r)
		}
	}
}

func TestPeersGetAllKeysDone(t *testing.T) {
	l := lineIn(t, 8, t.TempDir())
	rows := rowsOf(t, "peers", Options{Line: l, Trials: 1, Protocols: []string{"generations", "sqlite", "gofrs-flock", "dot-lock"}})
	if len(rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
	for name, r := range rows {
		clean(t, name, r)
		if r.ClaimsPerS <= 0 || r.LatencyUS == nil || r.LatencyUS.N != r.Keys {
			t.Errorf("%s: %v claims/s, latency %+v", name, r.ClaimsPerS, r.LatencyUS)
		}
	}
}

func TestTrialsEndWithTheTime(t *testing.T) {
	l := lineIn(t, 16, t.TempDir())
	for name, r := range rowsOf(t, "storm", Options{Line: l, Trials: 5, Until: time.Now().Add(-time.Second)}) {
		t.Errorf("%s was run", name)
		_ = r
	}
}

// What a trial cannot be judged by makes it void, and is never a pass.

func TestAContenderThatIsKilledVoidsItsTrialAlone(t *testing.T) {
	l := lineIn(t, 16, t.TempDir())
	pid := l.Contender(3).PID
	b := &bencher{Options: Options{Line: l}, ctx: t.Context(), rows: map[string]*row{}}
	r := b.row("storm", "generations", "", 16, 1)
	for i := range 3 {
		o := b.order("generations", b.newDir(), 1)
		o.Linger = int64(50 * time.Millisecond)
		if i == 1 {
			time.AfterFunc(20*time.Millisecond, func() { _ = unix.Kill(pid, unix.SIGKILL) })
		}
		if _, err := b.trial(r, 16, withPatience(o)); err != nil {
			t.Fatal(err)
		}
	}
	if r.Trials != 2 || r.Void != 1 || len(r.Voided) != 1 || !strings.Contains(r.Voided[0], "killed") {
		t.Errorf("%d trials, %d void: %v", r.Trials, r.Void, r.Voided)
	}
}

func withPatience(o order) order {
	o.TTL, o.Patience, o.Poll = int64(30*time.Second), int64(5*time.Second), int64(time.Millisecond)
	return o
}

func TestAFullDiskVoidsTrials(t *testing.T) {
	dir := testenv.Tmpfs(t, "nr_inodes=200")
	l := lineIn(t, 16, dir)
	r := rowsOf(t, "storm", Options{Line: l, Trials: 30, Protocols: []string{"generations"}})["generations"]
	if r.Void == 0 || r.Trials == 0 || r.Trials+r.Void != 30 || r.Missed+r.Duplicates > 0 || !strings.Contains(strings.Join(r.Voided, ";"), "no space left") {
		t.Errorf("%d trials, %d missed, %d void: %v", r.Trials, r.Missed, r.Void, r.Voided)
	}
}

func TestATargetThatIsTakenAwayEndsTheWorkload(t *testing.T) {
	dir := t.TempDir() + "/target"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l := lineIn(t, 16, dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	rows, err := Run(context.Background(), storm, Options{Line: l, Trials: 3})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
	for _, r := range rows {
		if r.Trials > 0 {
			t.Errorf("%s: %d trials", r.Protocol, r.Trials)
		}
	}
}

func TestAStopOfThisProcessIsNoticed(t *testing.T) {
	w := watch()
	stop := exec.Command("sh", "-c", "kill -STOP $PPID; sleep 2.5; kill -CONT $PPID")
	if err := stop.Run(); err != nil {
		t.Fatal(err)
	}
	if why := w.disturbed(); !strings.Contains(why, "stopped for") {
		t.Errorf("got %q", why)
	}
	if why := watch().disturbed(); why != "" {
		t.Errorf("nothing happened: %q", why)
	}
}

func TestAClockThatIsSetIsNoticed(t *testing.T) {
	w := watch()
	w.offset += int64(time.Hour)
	if why := w.disturbed(); why != "the clock was set by -1h0m0s" {
		t.Errorf("got %q", why)
	}
}
