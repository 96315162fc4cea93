package probes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/museum"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

const (
	holds       = result.Holds
	broken      = result.Broken
	unsupported = result.Unsupported
	unproven    = result.Unproven
)

func TestEveryKindOfViolationHasAFault(t *testing.T) {
	for _, kind := range gravity {
		if kind == pathsDiffer {
			continue // the path is derived by the program alone
		}
		shows := func(x museum.Exhibit) bool { return len(x.Violations) > 0 && x.Violations[0] == kind }
		if !slices.ContainsFunc(museum.Planted, shows) {
			t.Errorf("no planted fault must show %s", kind)
		}
	}
}

func TestPlantedFaultsAreSeen(t *testing.T) { areSeen(t, museum.Planted) }

// Two at once: much of their time goes by in waiting.
func TestReportedFailuresAreSeen(t *testing.T) { areSeen(t, museum.Reported) }

// areSeen shows the exhibits to their probes.
func areSeen(t *testing.T, exhibits []museum.Exhibit) {
	for i, x := range exhibits {
		if x.Probe == "" || testing.Short() && i%8 != 0 {
			continue
		}
		t.Run(x.Probe+"/"+x.Name, func(t *testing.T) {
			t.Parallel()
			size := "256m"
			if x.Probe == fullDisk.Name {
				size = "8m"
			}
			dirs := newFaultyOf(t, size, x.Mounts, x.Faults)
			if x.Verdict == result.Hung {
				check(t, impatientBench(t, dirs[0]), &x)
				return
			}
			b := smallBench(t, 4, dirs...)
			b.Disposable = true
			if waitsInVain(&x) {
				b.HoldWait, b.MaxWait = 100*time.Millisecond, 200*time.Millisecond
			}
			check(t, b, &x)
		})
	}
}

// waitsInVain says of a fault that each experiment will wait as long as it may.
func waitsInVain(x *museum.Exhibit) bool {
	long := slices.ContainsFunc(x.Violations, func(kind string) bool {
		return slices.Contains([]string{lockOutlives, waiterAsleep, lockWithheld, staysFull}, kind)
	})
	return long || (x.Probe == "visibility" || x.Probe == "path-agreement") && len(x.Violations) > 0
}

// check runs the probe and compares the finding.
func check(t *testing.T, b Bench, x *museum.Exhibit) {
	t.Helper()
	f := insist(t, b, x.Probe, x.Verdict)
	if v, ok := f.Figures[""]; ok {
		t.Errorf("%s: a figure without a name: %v", x.Probe, v)
	}
	if differs := x.Differs(&f); differs != "" {
		t.Fatalf("%s\n\t%s", differs, describe(&f))
	}
	if len(x.Violations) > 0 {
		believable(t, &f, x.Mounts)
	}
}

// believable checks that a counterexample can convince somebody who was not there.
func believable(t *testing.T, f *result.Finding, routes int) {
	t.Helper()
	x := f.Counterexample
	if x == nil || f.Kinds[x.Kind] == 0 || x.Sentence == "" || !strings.Contains(f.Reason, x.Sentence) || len(f.Violated) == 0 {
		t.Fatalf("no proper counterexample: %+v\n\t%s", x, describe(f))
	}
	for _, r := range append([]result.Round{x.Round}, f.Violated...) {
		if len(r.Events) < 2 || r.Operation == "" || r.Phase == "" {
			t.Errorf("incomplete round %+v", r)
		}
		for _, ev := range r.Events {
			waiting := ev.Return == 0 && (x.Kind == waiterAsleep || x.Kind == lockOutlives)
			if ev.PID == 0 || ev.Route != ev.Contender%routes || ev.Invoke == 0 || !waiting && ev.Return < ev.Invoke {
				t.Errorf("%s %d: incomplete event %+v", r.Operation, r.Number, ev)
			}
		}
	}
	if x.Kind == severalWinners {
		severalWon(t, f, routes)
	}
}

// severalWon checks the winners of the counterexample: over each route there is one, and what they made has an inode.
func severalWon(t *testing.T, f *result.Finding, routes int) {
	t.Helper()
	r, over, won, inodes := f.Counterexample.Round, map[int]bool{}, 0, 0
	for _, ev := range r.Events {
		if ev.Errno == "" {
			over[ev.Route] = true
			won++
			inodes += int(min(ev.Inode, 1))
		}
	}
	leaves := slices.ContainsFunc(Ops(), func(op race.Op) bool { return op.Name == r.Operation && op.After != nil })
	if won < 2 || len(over) < routes || leaves && (inodes == 0 || r.After == nil) {
		t.Errorf("%d winners over %d of %d routes, %d of them with an inode: %+v", won, len(over), routes, inodes, r)
	}
}

func TestAFullFilesystemProvesNothing(t *testing.T) {
	share, dirs := newShare(t, "256m", 2, "")
	b := smallBench(t, 4, dirs...)
	for _, p := range harmless() {
		t.Run(p.Name, func(t *testing.T) {
			share.Remove(faultfs.NoSpace)
			enterFresh(t, b, p.Name, dirs...)
			share.Plant(faultfs.NoSpace.New())
			check(t, b, &museum.Exhibit{Probe: p.Name, Verdict: unproven, Reason: "ENOSPC"})
		})
	}
}

func TestAnAlmostFullFilesystemIsNotBroken(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	share, dirs := newShare(t, "256m", 2, "")
	b := smallBench(t, 4, dirs...)
	for _, p := range harmless() {
		t.Run(p.Name, func(t *testing.T) {
			share.Remove(faultfs.NoSpace)
			enterFresh(t, b, p.Name, dirs...)
			share.Plant(faultfs.Fault{Kind: faultfs.NoSpace, Every: 3})
			if f := run(t, b, p.Name); f.Verdict != holds && f.Verdict != unproven {
				t.Error(describe(&f))
			}
		})
	}
}

// Where each call takes its time, a step of many calls takes longer than one may hang.
func TestAStepOfManySlowCallsDoesNotHang(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dirs := newFaulty(t, 1, "reply=slow,delay=60ms")
	b, e := smallBench(t, 2, dirs...), newEvidence("steps")
	b.Line = newLine(t, 2, time.Second, dirs...)
	_, errVisibility := b.watchOnce(t.Context(), 0, false, time.Second)
	errPaths := b.agreeOn(t.Context(), e, bySignature, 0, 0)
	churn := slices.IndexFunc(rules, func(r rule) bool { return strings.Contains(r.name, "20 times") })
	_, _, errRule := b.playRule(t.Context(), 0, &rules[churn])
	if errVisibility != nil || errPaths != nil || errRule != nil {
		t.Errorf("visibility: %v; path-agreement: %v; lock-rules: %v", errVisibility, errPaths, errRule)
	}
}
