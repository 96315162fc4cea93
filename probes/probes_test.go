package probes

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

func TestMain(m *testing.M) {
	race.Contend(Ops())
	os.Exit(m.Run())
}

func newBench(t testing.TB, n int, dirs ...string) Bench {
	t.Helper()
	line, err := race.Start(race.Config{Ops: Ops(), Contenders: n, HangAfter: 3 * time.Second, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := line.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := line.Enter(t.Context(), dirs...); err != nil {
		t.Fatal(err)
	}
	return Bench{
		Line: line, Routes: len(dirs), Scope: result.ScopeProcess, Contenders: []int{2, n}, Rounds: 20000,
		Time: time.Second, ScanShare: 0.25, ColdRounds: 64, ColdPause: time.Millisecond, MinProof: 300, HoldWait: 3 * time.Second,
	}
}

func TestTry(t *testing.T) {
	for _, root := range []string{"/dev/shm", "/root"} {
		dir, _ := os.MkdirTemp(root, "cb")
		defer os.RemoveAll(dir)
		b := newBench(t, 8, dir)
		for _, p := range All {
			f := Run(context.Background(), p, b)
			fmt.Printf("%-9s %-20s %-10s %s %d/%d viol=%d kinds=%v control=%+v errnos=%v %.1fs %s %v\n", root, f.Promise, f.Verdict, f.Class, f.Contested, f.Rounds, f.Violations, f.Kinds, f.Control.Violations, f.Errnos, f.DurationS, f.Reason, f.Warnings)
		}
		left, _ := os.ReadDir(dir)
		fmt.Println(len(left), left)
	}
}
