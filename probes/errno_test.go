package probes

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/testenv"
)

func TestACellIsJudgedByErrnoAndByWhatIsLeft(t *testing.T) {
	const ok, exists, perm = unix.Errno(0), unix.EEXIST, unix.EPERM
	taken := cell{call: callCreate, thing: aFile, want: errnos(exists)}
	onto := cell{call: callRenameFile, thing: aDir, want: errnos(unix.EISDIR)}
	removed := cell{call: callUnlink, thing: aGone, want: errnos(unix.ENOENT, unix.ESTALE)}
	unlinked := cell{call: callUnlink, thing: aFile, want: errnos(ok)}
	sticky := cell{call: callUnlink, thing: aFile, stranger: true, dir: dirSticky, want: errnos(perm)}
	closed := cell{call: callCreate, thing: aFile, stranger: true, dir: dirClosed, want: errnos(exists, unix.EACCES)}
	got := func(errno unix.Errno) celling { return celling{did: race.Event{Errno: uint32(errno)}} }
	with := func(errno unix.Errno, change func(*celling)) celling {
		g := got(errno)
		change(&g)
		return g
	}
	after := func(saw uint64) func(*celling) { return func(g *celling) { g.after.Saw = saw } }
	for _, c := range []struct {
		what string
		c    cell
		got  celling
		want ruling
	}{
		{"refused as it must be", taken, got(exists), ruling{}},
		{"given away", taken, got(ok), ruling{kind: takenNameGiven}},
		{"given away and emptied", taken, with(ok, after(thingEmptied)), ruling{kind: takenEmptied}},
		{"refused, and emptied", taken, with(exists, after(thingEmptied)), ruling{kind: takenEmptied}},
		{"refused, and gone", taken, with(exists, after(thingAbsent)), ruling{kind: changedByLoser}},
		{"refused, and another thing", taken, with(exists, after(thingOther)), ruling{kind: changedByLoser}},
		{"what is left cannot be seen", taken, with(exists, func(g *celling) { g.after.Errno = uint32(unix.EIO) }), ruling{failed: true}},
		{"denied", taken, got(perm), ruling{kind: deniedForTaken}},
		{"denied to all, as where nothing is in the way", taken, with(perm, func(g *celling) { g.absent = perm }), ruling{refused: true}},
		{"reported as missing", taken, got(unix.ENOENT), ruling{kind: wrongForTaken}},
		{"the disk is full", taken, got(unix.ENOSPC), ruling{failed: true}},
		{"the thing cannot be made", taken, with(ok, func(g *celling) { g.set.Errno = uint32(perm) }), ruling{refused: true}},
		{"no disk space for the thing", taken, with(ok, func(g *celling) { g.set.Errno = uint32(unix.ENOSPC) }), ruling{failed: true}},
		{"the directory was not seen", taken, with(unix.ENOENT, func(g *celling) { g.did.Unready = true }), ruling{failed: true}},
		{"an errno that is as good", onto, got(unix.ENOTDIR), ruling{note: "rename-file onto an empty directory gave ENOTDIR, where EISDIR is meant"}},
		{"a rename replaces a directory", onto, got(ok), ruling{kind: doneAnyway}},
		{"a rename fails, and the directory is gone", onto, with(unix.EISDIR, after(thingAbsent)), ruling{kind: changedByLoser}},
		{"gone", removed, got(unix.ENOENT), ruling{}},
		{"gone, and stale", removed, got(unix.ESTALE), ruling{}},
		{"gone, and removed", removed, got(ok), ruling{kind: goneRemoved}},
		{"not gone after all", removed, with(ok, func(g *celling) { g.drop.Errno = uint32(perm) }), ruling{failed: true}},
		{"removed", unlinked, with(ok, after(thingAbsent)), ruling{}},
		{"removal denied, and moved away", unlinked, with(perm, func(g *celling) { g.tried = true }), ruling{kind: unlinkDenied}},
		{"removal denied, and so is the rename", unlinked, with(perm, func(g *celling) { g.tried, g.away.Errno = true, uint32(perm) }), ruling{note: "unlink of a file gave EPERM, where success is meant"}},
		{"a second user, denied as he must be", sticky, with(perm, func(g *celling) { g.tried, g.away.Errno = true, uint32(perm) }), ruling{}},
		{"a second user, and permissions mean nothing", sticky, with(ok, after(thingAbsent)), ruling{note: "permissions are not enforced: a second user did what only the owner may"}},
		{"a second user in a closed directory, either errno", closed, got(unix.EACCES), ruling{}},
	} {
		v := judgeCell(&c.c, &c.got)
		if v.kind != c.want.kind || v.failed != c.want.failed || v.refused != c.want.refused || v.note != c.want.note {
			t.Errorf("%s: %+v, want %+v", c.what, v, c.want)
		}
		if (v.kind != "") != (v.sentence != "") {
			t.Errorf("%s: kind %q with sentence %q", c.what, v.kind, v.sentence)
		}
	}
}

func TestEveryMakerMeetsEveryThing(t *testing.T) {
	cells, figures := append(ownerCells(), strangerCells()...), map[string]bool{}
	for i := range cells {
		c := &cells[i]
		if figures[c.figure()] || len(c.want) == 0 || inWords[c.thing] == "" {
			t.Errorf("%s (%s) is there twice, wants nothing, or has no words", c, c.figure())
		}
		figures[c.figure()] = true
	}
	for _, call := range append(slices.Clone(makers), callRenameFile, callRenameDir) {
		for _, thing := range things[:7] {
			if c := (cell{call: call, thing: thing}); !figures[c.figure()] {
				t.Errorf("%s is not in the table", &c)
			}
		}
	}
}

func TestTheTableOfALocalFilesystemIsThatOfTheManPages(t *testing.T) {
	b := newBench(t, 2, t.TempDir())
	f := run(t, b, "errno-table")
	t.Logf("%.3f s", f.DurationS)
	if f.Verdict != holds || f.Control.Violations != 2 {
		t.Error(describe(&f))
	}
	want := map[string]unix.Errno{
		"create_file_errno": unix.EEXIST, "mkdir_dangling_symlink_errno": unix.EEXIST, "link_fifo_errno": unix.EEXIST,
		"rename_file_empty_dir_errno": unix.EISDIR, "unlink_gone_errno": unix.ENOENT,
	}
	if os.Geteuid() == 0 {
		want["unlink_file_stranger_sticky_errno"], want["unlink_file_stranger_closed_errno"] = unix.EPERM, unix.EACCES
		want["create_file_stranger_closed_errno"], want["unlink_file_stranger_open_errno"] = unix.EEXIST, 0
	}
	for figure, errno := range want {
		if got, ok := f.Figures[figure]; !ok || unix.Errno(got) != errno {
			t.Errorf("%s is %v, want %d", figure, f.Figures[figure], errno)
		}
	}
	for _, w := range f.Warnings {
		if os.Geteuid() == 0 || !strings.Contains(w, "does not run as root") {
			t.Errorf("unexpected note: %s", w)
		}
	}
}

// After a step as another user a contender is itself again.
func TestASecondUserIsAGuestInTheContender(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Lacks(t, "only root can be another user")
	}
	dir := t.TempDir()
	b := newBench(t, 2, dir)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if f := run(t, b, "errno-table"); f.Verdict != holds {
			t.Error(describe(&f))
		}
	}
	ev, err := b.Line.Do(t.Context(), 1, stepDir, b.Line.Name(), dirOwn)
	if err != nil || ev.Errno != 0 || ev.Inode != 0 {
		t.Errorf("the contender makes files as uid %d (%s, %v)", ev.Inode, errnoName(ev.Errno), err)
	}
}

// A FUSE filesystem without default_permissions leaves permissions to its server: that is a note, and no violation.
func TestPermissionsThatAreNotEnforcedAreNoted(t *testing.T) {
	b := smallBench(t, 2, newFaulty(t, 1, "")...)
	f := run(t, b, "errno-table")
	enforced := !slices.ContainsFunc(f.Warnings, func(w string) bool { return strings.Contains(w, "permissions are not enforced") })
	if f.Verdict != holds || enforced || f.Figures["unlink_file_stranger_sticky_errno"] != 0 {
		t.Error(describe(&f))
	}
}
