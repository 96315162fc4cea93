package engine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestQuarantineGrowthReachesAPlateau(t *testing.T) {
	w := newWorld(t)
	var plateau []int
	for n := range 200 {
		p, h := w.join("quarantine")
		out := w.try(p, sig, Won) // and dies
		_ = out
		w.advance(testTTL + time.Second)
		if _, err := p.(Reclaimer).Reclaim(1000); err != nil {
			t.Fatal(err)
		}
		names, err := h.List(sig.fan())
		if err != nil {
			t.Fatal(err)
		}
		if n > 20 {
			plateau = append(plateau, len(names))
		}
	}
	if lo, hi := slices.Min(plateau), slices.Max(plateau); hi > 8 || hi-lo > 2 {
		t.Errorf("%d to %d names after 200 crashes", lo, hi)
	}
}

func TestReclaimKeepsWhatARacerCanStillTarget(t *testing.T) {
	w := newWorld(t)
	dead, _ := w.join("quarantine")
	a, _ := w.join("quarantine")
	w.try(dead, sig, Won)
	w.advance(50 * testTTL) // the owner's lifetime: in the name, not in the age
	w.try(a, sig, Won)
	r := a.(Reclaimer)
	for _, step := range []struct {
		advance time.Duration
		removed int
	}{{0, 0}, {testTTL, 0}, {testTTL - time.Second, 0}, {2 * time.Second, 1}, {0, 0}} {
		w.advance(step.advance)
		done, err := r.Reclaim(1000)
		if err != nil || len(done.Removed) != step.removed {
			t.Errorf("removed %v, %v; want %d", done.Removed, err, step.removed)
		}
	}
}

func TestUnstampedEvictionCountsFromWhenItIsFound(t *testing.T) {
	w := newWorld(t)
	dead, _ := w.join("quarantine")
	a, ha := w.join("quarantine")
	b, _ := w.join("quarantine")
	w.try(dead, sig, Won)
	w.advance(50 * testTTL)
	if !die(ha, "mkdir", 1, func() { _, _ = a.Try(sig) }) {
		t.Fatal("A did not come to mkdir")
	}
	stale, err := filepath.Glob(filepath.Join(w.dir, sig.lock()+".stale-*"))
	if err != nil || len(stale) != 1 {
		t.Fatal(stale, err)
	}
	if err := os.Remove(filepath.Join(stale[0], stampName)); err != nil {
		t.Fatal(err)
	}
	r := b.(Reclaimer)
	for _, want := range []int{0, 0, 1} {
		done, err := r.Reclaim(1000)
		if err != nil || len(done.Removed) != want {
			t.Errorf("removed %v, %v; want %d", done.Removed, err, want)
		}
		w.advance(testTTL + time.Second)
	}
}

func TestReclaimRemovesPrivateNamesOfTheDead(t *testing.T) {
	for name, step := range map[string]string{"generations-linked": "link", "quarantine": "rename"} {
		w := newWorld(t)
		a, ha := w.join(name)
		b, hb := w.join(name)
		if !die(ha, step, 1, func() { _, _ = a.Try(sig) }) {
			t.Fatalf("%s: no %s to die at", name, step)
		}
		for _, want := range []int{0, 1} {
			done, err := b.(Reclaimer).Reclaim(1000)
			if err != nil || len(done.Removed) != want {
				t.Errorf("%s: removed %v, %v; want %d", name, done.Removed, err, want)
			}
			w.advance(2*testTTL + time.Second)
		}
		if names, err := hb.List(sig.fan()); err != nil || slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, privateMark) }) {
			t.Errorf("%s: left %v, %v", name, names, err)
		}
	}
}

func TestReclaimStopsAtItsLimit(t *testing.T) {
	w := newWorld(t)
	p, h := w.join("quarantine")
	if err := h.Mkdir(sig.fan()); err != nil {
		t.Fatal(err)
	}
	for n := range 25 {
		stale := staleName(sig, slot{rec: record{nonce: string(rune('a' + n))}})
		if err := errors.Join(h.Mkdir(stale), stamp(h, stale)); err != nil {
			t.Fatal(err)
		}
	}
	w.advance(2*testTTL + time.Second)
	for _, want := range []Reclaimed{{Left: 15}, {Left: 5}, {}} {
		done, err := p.(Reclaimer).Reclaim(10)
		if err != nil || done.Left != want.Left || len(done.Removed) > 10 {
			t.Errorf("removed %d, left %d, %v; want %d left", len(done.Removed), done.Left, err, want.Left)
		}
	}
}

// Only its own names are the engine's to remove.
func TestReclaimLeavesStrangersAlone(t *testing.T) {
	w := newWorld(t)
	p, h := w.join("quarantine")
	if err := h.Mkdir(sig.fan()); err != nil {
		t.Fatal(err)
	}
	strangers := []string{"a.new-1", string(sig) + ".newer", "x.lock.stale-0-0", "README"}
	for _, name := range strangers {
		if err := os.WriteFile(filepath.Join(w.dir, sig.fan(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.advance(1000 * testTTL)
	if done, err := p.(Reclaimer).Reclaim(1000); err != nil || len(done.Removed) != 0 {
		t.Errorf("removed %v, %v", done.Removed, err)
	}
}

func TestReclaimGoesOnPastWhatItCannotRemove(t *testing.T) {
	w := newWorld(t)
	p, h := w.join("quarantine")
	stuck, free := sig.lock()+".stale-1-a", sig.lock()+".stale-2-b"
	err := errors.Join(h.Mkdir(sig.fan()), h.Mkdir(stuck), stamp(h, stuck), h.Mkdir(free), stamp(h, free), h.Mkdir(stuck+"/foreign"))
	if err != nil {
		t.Fatal(err)
	}
	w.advance(2*testTTL + time.Second)
	done, err := p.(Reclaimer).Reclaim(1000)
	if !errors.Is(err, syscall.ENOTEMPTY) || !slices.Equal(done.Removed, []string{free}) || done.Kept != 1 {
		t.Errorf("removed %v, kept %d, %v", done.Removed, done.Kept, err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "ff"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := p.(Reclaimer).Quarantines(); !errors.Is(err, syscall.ENOTDIR) || len(all) != 1 {
		t.Errorf("quarantines %v, %v", all, err)
	}
}

// An NFSv3 server shows anything as the mtime of a file that is being created.
func TestStampIsNotJudgedByItsMtimeAlone(t *testing.T) {
	w := newWorld(t)
	dead, _ := w.join("quarantine")
	a, _ := w.join("quarantine")
	w.try(dead, sig, Won)
	w.advance(testTTL + time.Second)
	w.try(a, sig, Won)
	stamps, err := filepath.Glob(filepath.Join(w.dir, sig.lock()+".stale-*", stampName))
	if err != nil || len(stamps) != 1 {
		t.Fatal(stamps, err)
	}
	if err := os.Chtimes(stamps[0], time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if done, err := a.(Reclaimer).Reclaim(1000); err != nil || len(done.Removed) != 0 {
		t.Errorf("removed %v at once, %v", done.Removed, err)
	}
}
