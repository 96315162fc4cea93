package bench

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/race"
)

func TestALineThatIsTooShortIsAnError(t *testing.T) {
	l := lineIn(t, 1, t.TempDir())
	for _, w := range All {
		if w.Name == scale.Name {
			continue
		}
		if rows, err := Run(t.Context(), w, Options{Line: l}); err == nil || len(rows) > 0 || !strings.Contains(err.Error(), "contenders, and there are 1") {
			t.Errorf("%s: %v", w.Name, err)
		}
	}
}

// Every workload ends soon when it is cancelled, leaves nothing behind, and the line is as good as before.
func TestCancellingAWorkloadLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	l := lineIn(t, 40, dir)
	for _, w := range All {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		rows, err := Run(ctx, w, Options{Line: l, Full: true})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", w.Name, err)
		}
		for _, r := range rows {
			if !r.Control && (r.Missed > 0 || r.Duplicates > 0 && r.Protocol != "check-then-create") {
				t.Errorf("%s: %+v", w.Name, r)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %d names, %v", w.Name, len(left), err)
		}
	}
	clean(t, "afterwards", rowsOf(t, "forty", Options{Line: l, Trials: 1, Protocols: []string{"generations"}})["generations"])
}

func TestTheBudgetEndsEveryWorkload(t *testing.T) {
	l := lineIn(t, 40, t.TempDir())
	for _, w := range All {
		rows, err := Run(t.Context(), w, Options{Line: l, Full: true, Until: time.Now().Add(100 * time.Millisecond)})
		if err != nil && !errors.Is(err, errLate) {
			t.Errorf("%s: %v", w.Name, err)
		}
		for _, r := range rows {
			if r.Keys > 1_000_000 || r.Missed > 0 {
				t.Errorf("%s: %+v", w.Name, r)
			}
		}
	}
}

// What takes long is not hung as long as it gets on.
func TestContendersThatGetOnAreNotHung(t *testing.T) {
	l := lineThat(t, race.Config{Contenders: 4, HangAfter: time.Second}, t.TempDir())
	b := newBencher(t, Options{Line: l})
	o := b.order("excl", b.newDir(), 1)
	if err := b.abandon(0, o); err != nil {
		t.Fatal(err)
	}
	o.Patience = int64(3 * time.Second)
	r := b.row("storm", "excl", "", 4, 1)
	if judged, err := b.trial(r, 4, o); err != nil || !judged || r.Missed != 1 {
		t.Errorf("%v: %v", err, r.Voided)
	}
}

func TestAFilesystemThatHangsEndsTheWorkload(t *testing.T) {
	routes := brokenMounts(t, 1, faultfs.HangLock)
	l := lineThat(t, race.Config{Contenders: 16, HangAfter: time.Second}, routes...)
	var hung *race.HungError
	rows, err := Run(t.Context(), storm, Options{Line: l, Trials: 1000, Protocols: []string{"flock-held"}})
	if !errors.As(err, &hung) {
		t.Errorf("got %v", err)
	}
	for _, r := range rows {
		if r.Trials > 0 {
			t.Errorf("%+v", r)
		}
	}
}
