package calibrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/museum"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/survey"
	"github.com/claimbench/claimbench/internal/testenv"
	"github.com/claimbench/claimbench/probes"
)

// asSomebody makes this program the one of TestWithoutPrivileges.
const asSomebody = "CLAIMBENCH_TEST_AS_SOMEBODY"

func TestMain(m *testing.M) {
	race.Contend(Ops())
	if dir := os.Getenv(asSomebody); dir != "" {
		f, err := Run(context.Background(), Options{Seed: 1, Sizes: &thin, Dir: dir, Exhibits: museum.Planted})
		if err != nil {
			fmt.Println(err)
			os.Exit(100)
		}
		_ = f.Write(os.Stdout, "table", 0)
		os.Exit(f.Status())
	}
	os.Exit(m.Run())
}

// thin is as little as shows that each part works.
var thin = Sizes{
	RareRuns: 1, RareP: 1e-3, SlowP: 1e-2, RareWithinS: 10, RareProbes: 1, PowerRuns: 1,
	ExhibitRuns: 1, GoodRuns: 1, GoodEvery: 12, StormTrials: 1,
}

var few = []museum.Exhibit{
	{Name: "mkdir takes an existing directory", Faults: "mkdir=takes-existing", Mounts: 2, Probe: "mkdir", Verdict: result.Broken, Violations: []string{"several-winners"}},
	{Name: "one mount hides that", Faults: "mkdir=takes-existing", Mounts: 1, Probe: "mkdir", Verdict: result.Holds},
}

// equipped skips where a part cannot be run. With CLAIMBENCH_NO_SKIP set it has to be, and fails.
func equipped(t *testing.T) {
	t.Helper()
	if why := missingForFUSE(); why != "" {
		testenv.Lacks(t, why)
	}
}

func calibrated(t *testing.T, o Options) *File {
	t.Helper()
	before := mounts(t)
	o.Seed, o.Dir, o.Progress = 1, t.TempDir(), func(line string) { t.Log(line) }
	if o.Sizes == nil {
		o.Sizes = &thin
	}
	f, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if after := mounts(t); after != before {
		t.Errorf("mounts are left:\n%s\nbefore:\n%s", after, before)
	}
	if left, err := filepath.Glob(filepath.Join(o.Dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	return f
}

func mounts(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, "/.claimbench-") {
			own = append(own, line)
		}
	}
	return strings.Join(own, "")
}

func TestEveryPartRuns(t *testing.T) {
	equipped(t)
	f := calibrated(t, Options{Exhibits: few})
	for _, p := range f.Problems() {
		t.Error(p)
	}
	if len(f.Diluted) != 1 || len(f.Exhibits) != 2 || len(f.Good) < 5 || len(f.Engine) != 1 || len(f.Engine[0].Protocols) == 0 {
		t.Errorf("%d diluted, %d exhibits, %d good, %d engine", len(f.Diluted), len(f.Exhibits), len(f.Good), len(f.Engine))
	}
	for _, p := range f.Engine[0].Protocols {
		if p.Trials+p.Void == 0 {
			t.Errorf("%s had no trial", p.Name)
		}
	}
}

// A probe is blind if it does not say what it must; whether the fault or the expectation is another is the same.
func TestABlindProbeIsTold(t *testing.T) {
	equipped(t)
	blind := []museum.Exhibit{few[1], few[0]}
	blind[0].Verdict, blind[0].Violations = result.Broken, []string{"several-winners"}
	blind[1].Verdict, blind[1].Violations = result.Holds, nil
	f := calibrated(t, Options{Exhibits: blind, Parts: []string{"exhibits"}})
	problems := strings.Join(f.Problems(), "\n")
	if f.Status() != StatusBad || !strings.Contains(problems, "MISSED: mkdir: one mount hides that (mkdir=takes-existing over 1 mount): 1 of 1 runs") || !strings.Contains(problems, "FALSE ALARM: mkdir: mkdir takes an existing directory") {
		t.Errorf("status %d: %s", f.Status(), problems)
	}
}

// started is a run whose contenders stand ready.
func started(t *testing.T) *run {
	t.Helper()
	r := &run{Options: Options{Seed: 1, Progress: func(line string) { t.Log(line) }}, file: new(File), ctx: t.Context(), size: thin, place: t.TempDir()}
	var err error
	if r.line, err = race.Start(race.Config{Ops: Ops(), Contenders: contenders, HangAfter: hangAfter, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.line.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// A survey that takes every promise for kept, where exclusive creates are not: what it calls safe must be seen to fail.
func TestAnEscapeIsSeen(t *testing.T) {
	equipped(t)
	r := started(t)
	r.size.StormTrials = 5
	e := Engine{Faults: "excl=lookup-create", Mounts: 2}
	g, err := r.faulty("64m", e.Mounts, e.Faults)
	if err != nil {
		t.Fatal(err)
	}
	blind := &result.Target{Scope: result.ScopeMount}
	for _, name := range survey.Needed() {
		blind.Findings = append(blind.Findings, result.Finding{Promise: name, Verdict: result.Holds, Scope: blind.Scope})
	}
	if err := errors.Join(r.storm(g, blind, &e), r.close(g)); err != nil {
		t.Fatal(err)
	}
	f := good()
	f.Engine = []Engine{e}
	if problems := strings.Join(f.Problems(), "\n"); f.Status() != StatusBad || !strings.Contains(problems, "ESCAPE: generations is called safe on excl=lookup-create over 2 mounts") {
		t.Errorf("status %d: %s\n%+v", f.Status(), problems, e)
	}
}

// A probe that races several operations must not have the rounds for each of them.
func TestThePowerIsVerifiedInAsManyRoundsAsAreClaimed(t *testing.T) {
	if why := missingForContention(); why != "" {
		testenv.Lacks(t, why)
	}
	quick, err := config.Named("quick")
	if err != nil {
		t.Fatal(err)
	}
	r := started(t)
	const claimed = 3000
	for _, x := range probes.Dilutables() {
		if x.Races == 1 {
			continue
		}
		d := Diluted{Probe: x.Probe, Contested: []int{claimed}, LeastP: 1e-9}
		if err := newPlanter(r, t.TempDir(), x, &d).verify(surveyBench(&quick)); err != nil {
			t.Fatal(err)
		}
		// Rounds end with their batch.
		if d.Least.Runs != 1 || len(d.Least.Missed) != 1 || d.Least.Missed[0] > 1.6*claimed {
			t.Errorf("%s: %+v", x.Probe, d.Least)
		}
	}
}

func TestWithoutPrivileges(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Lacks(t, "needs root, to become somebody else")
	}
	dir, err := os.MkdirTemp("", "claimbench-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program)
	c.Dir, c.Env = dir, append(os.Environ(), asSomebody+"="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, _ := c.CombinedOutput()
	if status := c.ProcessState.ExitCode(); status != StatusPartial {
		t.Errorf("status %d, want %d", status, StatusPartial)
	}
	for _, want := range []string{"excl-create", "1/1", "not run: exhibits, good, engine: this user is not root"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

func TestAnInterruptionKeepsWhatWasMeasured(t *testing.T) {
	equipped(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := mounts(t)
	f, err := Run(ctx, Options{Seed: 1, Sizes: &thin, Dir: t.TempDir(), Exhibits: museum.Planted, Parts: []string{"exhibits"}, Progress: func(line string) {
		if strings.HasPrefix(line, "exhibits: ") {
			time.AfterFunc(50*time.Millisecond, cancel) // in the middle of the second one
		}
	}})
	if err != nil || f.Incomplete != "interrupted" || len(f.Exhibits) == 0 || len(f.Exhibits) > 3 || f.Status() != StatusPartial {
		t.Errorf("%v: %q, %d exhibits, status %d", err, f.Incomplete, len(f.Exhibits), f.Status())
	}
	if after := mounts(t); after != before {
		t.Errorf("mounts are left:\n%s", after)
	}
}
