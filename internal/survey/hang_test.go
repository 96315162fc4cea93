package survey

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/faultfs/faultfstest"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

func TestMain(m *testing.M) {
	race.Contend(Ops())
	os.Exit(m.Run())
}

func TestACallThatDoesNotComeBackIsLeftBehind(t *testing.T) {
	forever := make(chan struct{})
	defer close(forever)
	err := within(10*time.Millisecond, "mkdir x", func() error { <-forever; return nil })
	if err == nil || !strings.Contains(err.Error(), "mkdir x: no answer within 10ms") {
		t.Errorf("got %v", err)
	}
	want := errors.New("no")
	if err := within(time.Minute, "mkdir x", func() error { return want }); err != want {
		t.Errorf("got %v", err)
	}
}

// mounted mounts a share of a tmpfs, with faults of these kinds, so many times.
func mounted(t *testing.T, mounts int, kinds ...faultfs.Kind) []string {
	t.Helper()
	var faults []faultfs.Fault
	for _, k := range kinds {
		faults = append(faults, k.New())
	}
	return faultfstest.Mount(t, "", mounts, faults...)
}

// hanging mounts a filesystem of which one operation never comes back.
func hanging(t *testing.T, k faultfs.Kind) string {
	t.Helper()
	return mounted(t, 1, k)[0]
}

func surveyOf(t *testing.T, dir string) (*result.File, error) {
	t.Helper()
	c, err := config.Named("quick")
	if err != nil {
		t.Fatal(err)
	}
	c.Probes, c.Workloads = []string{"mkdir", "flock"}, nil
	c.HangAfter, c.ProbeTime, c.Rounds = time.Second, 100*time.Millisecond, 100
	return Run(t.Context(), Options{Targets: [][]string{{dir}}, Config: c, Version: "test"})
}

func TestASurveyOfAFilesystemThatHangsAtOnceEnds(t *testing.T) {
	_, err := surveyOf(t, hanging(t, faultfs.HangOpen))
	var target *TargetError
	if !errors.As(err, &target) || !strings.Contains(err.Error(), "no answer within 1s") {
		t.Errorf("got %v", err)
	}
}

func TestAHungFindingIsKeptAndTheOthersAreMade(t *testing.T) {
	f, err := surveyOf(t, hanging(t, faultfs.HangLock))
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]result.Verdict{}
	for _, finding := range f.Targets[0].Findings {
		verdicts[finding.Promise] = finding.Verdict
	}
	if len(verdicts) != 2 || verdicts["flock"] != result.Hung || verdicts["mkdir"] == result.Hung {
		t.Errorf("flock hangs: %v", verdicts)
	}
	if Decide(f, []string{"flock"}) != Unsafe {
		t.Error("a lock that hangs cannot be relied on")
	}
}
