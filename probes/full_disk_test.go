package probes

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

func TestAClaimOnAFullDiskIsRefusedOrWhole(t *testing.T) {
	const number = 6
	whole := race.Event{Saw: uint64(claimByte(number))}
	got := func(errno unix.Errno) race.Event { return race.Event{Errno: uint32(errno)} }
	for _, c := range []struct {
		what      string
		linked    bool
		did, look race.Event
		want      ruling
		refused   bool
	}{
		{"made, and whole", false, got(0), whole, ruling{}, false},
		{"made, and empty", false, got(0), race.Event{Saw: sawEmpty}, ruling{kind: contentEmpty}, false},
		{"made, and torn", true, got(0), race.Event{Saw: sawTorn}, ruling{kind: contentTorn}, false},
		{"made, and not there", true, got(0), got(unix.ENOENT), ruling{kind: objectVanished}, false},
		{"refused, and absent", false, got(unix.ENOSPC), got(unix.ENOENT), ruling{}, true},
		{"over quota, and absent", true, got(unix.EDQUOT), got(unix.ENOENT), ruling{}, true},
		{"refused, and left empty", false, got(unix.ENOSPC), race.Event{Saw: sawEmpty}, ruling{note: leavesTorn}, true},
		{"its link refused, and there", true, got(unix.ENOSPC), whole, ruling{kind: successDenied}, true},
		{"an I/O error", false, got(unix.EIO), got(unix.ENOENT), ruling{failed: true}, false},
		{"it cannot be looked at", false, got(0), got(unix.EIO), ruling{failed: true}, false},
	} {
		v, refused := judgeFull(&fullClaim{linked: c.linked, number: number, did: c.did, look: c.look})
		if v.kind != c.want.kind || v.failed != c.want.failed || v.note != c.want.note || refused != c.refused {
			t.Errorf("%s: %+v %v, want %+v %v", c.what, v, refused, c.want, c.refused)
		}
	}
}

func TestSpaceThatIsGivenBackCanBeUsed(t *testing.T) {
	for errno, want := range map[unix.Errno]ruling{
		0: {}, unix.ENOSPC: {kind: staysFull}, unix.EDQUOT: {kind: staysFull}, unix.EIO: {failed: true}, unix.EPERM: {failed: true},
	} {
		if v := judgeFreed(true, race.Event{Errno: uint32(errno)}); v.kind != want.kind || v.failed != want.failed {
			t.Errorf("%s: %+v, want %+v", told(errno), v, want)
		}
	}
	if v := judgeFreed(false, race.Event{}); v.kind != staysFull {
		t.Errorf("nothing could be removed: %+v", v)
	}
}

func TestASmallFilesystemIsFilledAndGivenBack(t *testing.T) {
	needRoot(t)
	for name, dir := range map[string]string{
		"tmpfs": newTmpfsOf(t, "8m"), "ext4": newLoop(t, "ext4", "e2fsprogs", 24<<20),
		"ext4, half of it kept for root": newLoop(t, "ext4", "e2fsprogs", 400<<20, "-m", "50"),
	} {
		b := smallBench(t, 2, dir)
		b.Disposable = true
		f := run(t, b, "full-disk")
		t.Logf("%s: %.3f s %v", name, f.DurationS, f.Figures)
		writesVanish := slices.ContainsFunc(f.Warnings, func(w string) bool { return strings.Contains(w, "more could be written") })
		if f.Verdict != holds || writesVanish || f.Control.Violations != 1 || f.Figures["refused_count"] == 0 {
			t.Errorf("%s: %s", name, describe(&f))
		}
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			if e.Name() != "lost+found" {
				t.Errorf("%s: left behind: %s", name, e.Name())
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// What could not be removed because nobody answers, is no space that stays full.
func TestARemovalThatHangsIsTold(t *testing.T) {
	dirs := newFaulty(t, 1, "unlink=hang")
	b := smallBench(t, 2, dirs...)
	b.Line = newLine(t, 2, 300*time.Millisecond, dirs...)
	var hung *race.HungError
	name := b.Line.Name()
	if ev, err := b.Line.Do(t.Context(), 0, "full-claim", name, 0); err != nil || ev.Errno != 0 {
		t.Fatalf("%s, %v", told(unix.Errno(ev.Errno)), err)
	}
	if _, err := b.giveBack(t.Context(), []int64{name}); !errors.As(err, &hung) {
		t.Errorf("removing hangs: %v", err)
	}
}

// Nothing is filled unless somebody says that it may be.
func TestAFilesystemThatIsNotDisposableIsNotFilled(t *testing.T) {
	dir := t.TempDir()
	b := smallBench(t, 2, dir)
	f := run(t, b, "full-disk")
	if f.Verdict != unproven || !strings.HasPrefix(f.Reason, "not run") || f.Advice == "" || f.Rounds != 0 {
		t.Error(describe(&f))
	}
}
