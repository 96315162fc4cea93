package probes

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// files makes a succession from what the first looks say; the second looks are the same.
func files(sights ...likeness) (ids []identity) {
	for _, s := range sights {
		ids = append(ids, identity{First: s, Again: s})
	}
	return ids
}

func TestFilesAreToldApartBySomething(t *testing.T) {
	unstable := files(likeness{Ino: 1, Ctime: 1}, likeness{Ino: 2, Ctime: 2})
	unstable[1].Again.Ino = 3
	late := files(likeness{Ino: 1}, likeness{Ino: 2}, likeness{Ino: 3}, likeness{Ino: 4})
	late[2].Again.Ino = 9
	restless := files(likeness{Ino: 1, Ctime: 1}, likeness{Ino: 1, Ctime: 2})
	restless[0].Again.Ctime = 9
	for _, c := range []struct {
		what  string
		files []identity
		kind  string
		at    int
	}{
		{"numbers never come back", files(likeness{Ino: 1}, likeness{Ino: 2}, likeness{Ino: 3}), "", 0},
		{"a number comes back, the ctime does not", files(likeness{Ino: 1, Ctime: 1}, likeness{Ino: 1, Ctime: 2}), "", 0},
		{"only the birth differs", files(likeness{Ino: 1, Btime: 1}, likeness{Ino: 1, Btime: 2}), "", 0},
		{"only the handle differs", files(likeness{Ino: 1, Btime: 1, Handle: 5}, likeness{Ino: 1, Btime: 1, Handle: 6}), "", 0},
		{"only the size differs", files(likeness{Ino: 1, Size: 5}, likeness{Ino: 1, Size: 6}), "", 0},
		{"nothing differs", files(likeness{Ino: 1, Size: 5, Ctime: 1, Btime: 1, Handle: 5}, likeness{Ino: 1, Size: 5, Ctime: 1, Btime: 1, Handle: 5}), twins, 1},
		{"nothing differs from the one before the last", files(likeness{Ino: 1}, likeness{Ino: 2}, likeness{Ino: 1}), twins, 2},
		{"a handle that not every file has", files(likeness{Ino: 1, Handle: 5}, likeness{Ino: 1}), twins, 1},
		{"a handle that the first does not have", files(likeness{Ino: 1}, likeness{Ino: 1, Handle: 5}), twins, 1},
		{"a number that changes by itself", unstable, unstableNumber, 1},
		{"a later number that changes by itself", late, unstableNumber, 2},
		{"a ctime that changes by itself identifies nothing", restless, twins, 1},
	} {
		v, at := judgeSuccession(c.files)
		if v.kind != c.kind || at != c.at || (v.kind != "") != (v.sentence != "") {
			t.Errorf("%s: %+v at %d, want %q at %d", c.what, v, at, c.kind, c.at)
		}
	}
}

func TestHowSoonANumberComesBack(t *testing.T) {
	r := recur(tuples[0], files(likeness{Ino: 1}, likeness{Ino: 2}, likeness{Ino: 3}, likeness{Ino: 1}, likeness{Ino: 3}))
	if r != (recurrence{told: true, again: 2, soonest: 2, at: 3}) {
		t.Errorf("%+v", r)
	}
}

func TestWhatIdentifiesAFileIsSaid(t *testing.T) {
	many := func(n int, s func(i uint64) likeness) (out []identity) {
		for i := range uint64(n) {
			out = append(out, files(s(i))...)
		}
		return out
	}
	once := func(i uint64) likeness { return likeness{Ino: i} }
	tick := func(i uint64) likeness { return likeness{Ino: 1, Ctime: 1} }
	later := func(i uint64) likeness { return likeness{Ino: 1, Ctime: i} }
	handles := func(i uint64) likeness { return likeness{Ino: 1, Ctime: 1, Handle: i + 1} }
	handlesLater := func(i uint64) likeness { return likeness{Ino: 1, Ctime: i, Handle: i + 1} }
	cycle := func(i uint64) likeness { return likeness{Ino: i % 3, Ctime: i} }
	for _, c := range []struct {
		what        string
		many, apart []identity
		class, says string
	}{
		{"numbers do", many(9, once), many(5, once), "", "the inode number identifies a file"},
		{"the ctime does", many(9, later), many(5, later), reused, "at once; the inode number and ctime does (14 files)"},
		{"the ctime does after a tick", many(9, tick), many(5, later), reused, "the inode number and ctime does from 12ms later on, and before that nothing but the content"},
		{"the handle does", many(9, handles), many(5, handles), reused, "the file handle does (14"},
		{"the handle does, and after a tick the ctime", many(9, handles), many(5, handlesLater), reused, "the file handle does, and from 12ms later on the inode number and ctime"},
		{"for the third file", many(9, cycle), many(5, cycle), reused, "for file 3 after it"},
	} {
		f := result.Finding{Verdict: result.Holds, Figures: map[string]float64{}}
		noteReuse(&f, c.many, c.apart)
		half := f
		tellReuse(&f, newEvidence("succession"))
		if f.Class != c.class || !strings.Contains(f.Reason, c.says) {
			t.Errorf("%s: %q %s, want %q %s", c.what, f.Class, f.Reason, c.class, c.says)
		}
		failed := newEvidence("succession")
		failed.observe(1, map[uint32]int{uint32(unix.EIO): 20}, ruling{failed: true}, nil)
		if tellReuse(&half, failed); half.Verdict != unproven || !strings.Contains(half.Reason, "EIO") {
			t.Errorf("%s, and others could not be made: %s %s", c.what, half.Verdict, half.Reason)
		}
	}
}

func TestASyncIsAcceptedRefusedOrFails(t *testing.T) {
	for _, c := range []struct {
		made, errno unix.Errno
		want        ruling
	}{
		{0, 0, ruling{}},
		{0, unix.EINVAL, ruling{refused: true}},
		{0, unix.EOPNOTSUPP, ruling{refused: true}},
		{0, unix.EBADF, ruling{refused: true}},
		{0, unix.EIO, ruling{kind: syncFails}},
		{0, unix.ENOSPC, ruling{failed: true}},
		{0, unix.EDQUOT, ruling{failed: true}},
		{unix.ENOSPC, 0, ruling{failed: true}},
		{unix.EIO, unix.EIO, ruling{failed: true}},
	} {
		got := judgeSync("sync-dir", &race.Event{Errno: uint32(c.made)}, &race.Event{Errno: uint32(c.errno)})
		if got.kind != c.want.kind || got.refused != c.want.refused || got.failed != c.want.failed {
			t.Errorf("made %v, synced %v: %+v, want %+v", c.made, c.errno, got, c.want)
		}
	}
}

// What one route refuses is refused, whatever the other routes take.
func TestARouteThatRefusesToSyncIsNamed(t *testing.T) {
	some := func(op string, good, refused int) *evidence {
		e := newEvidence(op)
		for n, v := range map[int]ruling{good: {}, refused: {refused: true}} {
			for range n {
				e.add(&race.Round{Events: []race.Event{{Errno: uint32(unix.EINVAL)}}}, false, v, nil)
			}
		}
		return e
	}
	for _, c := range []struct {
		what        string
		files, dirs *evidence
		want        result.Verdict
		class, says string
	}{
		{"neither", some("f", 40, 0), some("d", 41, 0), holds, "", "accepted 81 times"},
		{"directories over one route", some("f", 40, 0), some("d", 20, 21), unsupported, onlyDirectories, "directories is refused"},
		{"files over one route", some("f", 20, 21), some("d", 40, 0), unsupported, "", "directories are synced"},
		{"both", some("f", 20, 21), some("d", 20, 21), unsupported, "", "over a route"},
	} {
		f := result.Finding{Verdict: result.Holds, Figures: map[string]float64{}}
		tellSync(&f, c.files, c.dirs)
		if f.Verdict != c.want || f.Class != c.class || !strings.Contains(f.Reason, c.says) {
			t.Errorf("%s: %s %q %s, want %s %q %s", c.what, f.Verdict, f.Class, f.Reason, c.want, c.class, c.says)
		}
	}
}

func TestWhereNobodyRacesAPartCanLeaveAllUnproven(t *testing.T) {
	fired := func() *evidence {
		c := newEvidence("control")
		c.observe(5, nil, ruling{kind: "x", sentence: "x"}, func() result.Round { return result.Round{} })
		return c
	}
	two := fired()
	two.parts = 2
	for _, c := range []struct {
		what    string
		rounds  []ruling // of 10 each
		failure map[uint32]int
		control *evidence
		want    result.Verdict
		says    string
	}{
		{"all is well", []ruling{{}, {}}, nil, fired(), holds, ""},
		{"one part of the control is missed", []ruling{{}, {}}, nil, two, unproven, "1 of 2 parts of the positive control"},
		{"the control is missed", []ruling{{}, {}}, nil, newEvidence("control"), unproven, "did not fire"},
		{"too little", []ruling{{}}, nil, fired(), unproven, "only 10 of 10 rounds"},
		{"a part is refused", []ruling{{}, {}, {refused: true}}, map[uint32]int{uint32(unix.EPERM): 3}, fired(), unsupported, "EPERM"},
		{"a part fails", []ruling{{}, {}, {failed: true}}, map[uint32]int{uint32(unix.EIO): 3}, fired(), unproven, "EIO"},
		{"a part says nothing", []ruling{{}, {}, {failed: true, note: "the clock was set"}}, nil, fired(), unproven, "the clock was set"},
		{"all is refused", []ruling{{refused: true}, {refused: true}}, map[uint32]int{uint32(unix.EPERM): 3}, fired(), unsupported, "EPERM"},
		{"a violation outweighs the rest", []ruling{{}, {failed: true}, {kind: timesBack, sentence: "back"}}, nil, newEvidence("control"), broken, "back"},
	} {
		e := newEvidence("x")
		for _, v := range c.rounds {
			failures := c.failure
			if v == (ruling{}) {
				failures = nil
			}
			e.observe(10, failures, v, func() result.Round { return result.Round{} })
		}
		f := result.Finding{Figures: map[string]float64{}}
		decideAlone(&f, e, c.control, 15, nil)
		partial(&f, e)
		if f.Verdict != c.want || !strings.Contains(f.Reason, c.says) {
			t.Errorf("%s: %s, %s; want %s, %q", c.what, f.Verdict, f.Reason, c.want, c.says)
		}
		if f.Contested != 0 || f.Upper95 != nil || f.Rounds != 10*len(c.rounds) {
			t.Errorf("%s: %d of %d contested, bound %v", c.what, f.Contested, f.Rounds, f.Upper95)
		}
	}
}
