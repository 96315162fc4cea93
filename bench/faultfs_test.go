package bench

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/faultfs/faultfstest"
	"github.com/claimbench/claimbench/internal/testenv"
)

// The positive control of the whole bench: on a filesystem that breaks a promise, the protocols that rest on it are
// seen to fail, and those that do not rest on it are not.

// brokenLine has contenders over so many mounts of a filesystem with a fault.
func brokenLine(t *testing.T, contenders, mounts int, faults ...faultfs.Kind) Options {
	t.Helper()
	return Options{Line: lineIn(t, contenders, brokenMounts(t, mounts, faults...)...)}
}

func brokenMounts(t *testing.T, mounts int, faults ...faultfs.Kind) []string {
	t.Helper()
	var text []string
	for _, k := range faults {
		text = append(text, k.String())
	}
	return faultyMounts(t, mounts, strings.Join(text, ","))
}

// faultyMounts are those of a share with faults, in their text form.
func faultyMounts(t *testing.T, mounts int, faults string) (routes []string) {
	t.Helper()
	planted, err := faultfs.Parse(faults)
	if err != nil {
		t.Fatal(err)
	}
	return faultfstest.Mount(t, "size=256m", mounts, planted...)
}

func TestAnExclusiveCreateThatIsNoneShowsInStorm(t *testing.T) {
	if runtime.NumCPU() < 2 {
		testenv.Lacks(t, "contention needs two CPUs")
	}
	o := brokenLine(t, 16, 2, faultfs.ExclDropped)
	o.Trials, o.Protocols = 6, []string{"excl", "generations", "generations-linked"}
	seen := map[string]int{}
	for again := 0; again < 20 && (seen["excl"] == 0 || seen["generations"] == 0); again++ {
		rows := rowsOf(t, "storm", o)
		seen["excl"] += rows["excl"].Duplicates
		seen["generations"] += rows["generations"].Duplicates
		clean(t, "generations-linked rests on link", rows["generations-linked"])
	}
	if seen["excl"] == 0 || seen["generations"] == 0 {
		t.Errorf("excl and generations rest on O_EXCL: duplicates %v", seen)
	}
}

func TestALockThatExcludesNobodyShowsInForced(t *testing.T) {
	o := brokenLine(t, 4, 1, faultfs.LocksGranted)
	o.Trials, o.Protocols, o.TTL = 3, []string{"flock-reread", "flock-held", "generations", "quarantine"}, time.Second
	rows := rowsOf(t, "forced", o)
	for _, name := range []string{"flock-reread lock of two", "flock-held lock of two"} {
		if r := rows[name]; r.Trials == 0 || r.Duplicates != r.Trials {
			t.Errorf("%s: %d duplicates in %d trials: %+v", name, r.Duplicates, r.Trials, r)
		}
	}
	for _, name := range []string{"generations stale reader", "quarantine late rename"} {
		clean(t, name, rows[name])
	}
}

func TestLocksLocalToAMountShowOverTwo(t *testing.T) {
	o := brokenLine(t, 17, 2, faultfs.LocksLocal)
	o.Trials, o.Protocols = 4, []string{"flock-held", "generations"}
	rows := rowsOf(t, "takeover", o)
	if r := rows["flock-held"]; r.Trials == 0 || r.Duplicates == 0 {
		t.Errorf("flock-held: %+v", r)
	}
	clean(t, "generations", rows["generations"])
}

func TestALockThatOutlivesItsHolderShowsInDeaths(t *testing.T) {
	o := brokenLine(t, 4, 1, faultfs.LocksOutliveHolder)
	o.Trials, o.Protocols, o.TTL = 2, []string{"flock-held"}, 200*time.Millisecond
	if r := rowsOf(t, "deaths", o)["flock-held each step of a claim"]; r.Trials == 0 || r.Missed == 0 {
		t.Errorf("whoever died holds the key for ever: %+v", r)
	}
}

func TestWithoutLinksNothingIsProven(t *testing.T) {
	o := brokenLine(t, 40, 1, faultfs.LinkRefused)
	o.Trials, o.Protocols = 2, []string{"generations", "generations-linked"}
	for _, workload := range []string{"forty", "takeover"} {
		rows := rowsOf(t, workload, o)
		clean(t, workload+" generations", rows["generations"])
		if r := rows["generations-linked"]; r.Trials != 0 || r.Void != 2 || r.Missed+r.Duplicates > 0 {
			t.Errorf("%s: %d trials, %d void: %+v", workload, r.Trials, r.Void, r)
		}
	}
}
