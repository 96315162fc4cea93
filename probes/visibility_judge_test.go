package probes

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// at is a look at an instant, in ms, that takes one.
func at(ms int64, s state, errno ...unix.Errno) glance {
	g := glance{Invoke: ms * 1e6, Return: (ms + 1) * 1e6, State: s}
	if len(errno) > 0 {
		g.Errno = uint32(errno[0])
	}
	return g
}

// sawLate is a watcher that saw a change, made from 100 to 101 ms, with its last look.
func sawLate(looks ...glance) watchRecord {
	r := watchRecord{Earlier: at(90, absent, unix.ENOENT)}
	for _, g := range looks {
		s := spot{what: created}
		if g.State == old {
			s.what = replaced
		}
		r.note(g, &s)
	}
	return r
}

func TestAChangeIsJudgedByHowLateItWasSeen(t *testing.T) {
	const ms = time.Millisecond
	none := at(110, absent, unix.ENOENT)
	before := func(r watchRecord, s state) watchRecord { r.Earlier = at(90, s); return r }
	for _, c := range []struct {
		what string
		w    watched
		want ruling
		lag  time.Duration
	}{
		{"seen by the first look", watched{spot: spot{created, byStat, true}, seen: sawLate(at(110, fresh))}, ruling{}, 0},
		{"seen by the first look, which came late itself", watched{spot: spot{created, byStat, true}, seen: sawLate(at(9000, fresh))}, ruling{}, 0},
		{"seen by the second", watched{spot: spot{created, byStat, true}, seen: sawLate(none, at(130, fresh))}, ruling{}, 30 * ms},
		{"seen as late as is tolerable", watched{spot: spot{created, byStat, true}, seen: sawLate(none, at(1600, fresh))}, ruling{}, 1500 * ms},
		{"not seen as late as is tolerable", watched{spot: spot{created, byStat, true}, seen: sawLate(at(1601, absent), at(1602, fresh))}, ruling{}, 1502 * ms},
		{"not seen later than that", watched{spot: spot{created, byStat, true}, seen: sawLate(at(1602, absent), at(1603, fresh))}, ruling{kind: newNameLate}, 1503 * ms},
		{"nobody looked for a while, after a look that came too early", watched{spot: spot{created, byStat, true}, seen: sawLate(none, at(9000, fresh))}, ruling{}, 8900 * ms},
		{"not seen for half of the wait", watched{spot: spot{created, byStat, true}, seen: sawLate(at(111, absent)), patience: 20 * ms}, ruling{kind: newNameLate}, 10 * ms},
		{"not seen, and then every look failed", watched{spot: spot{created, byStat, true}, seen: sawLate(at(110, absent), at(111, failing, unix.EIO)), patience: 20 * ms}, ruling{failed: true}, 0},
		{"not seen for as long as is tolerable, of a longer wait", watched{spot: spot{created, byStat, true}, seen: sawLate(at(1602, absent)), patience: time.Hour}, ruling{kind: newNameLate}, 1501 * ms},
		{"not seen", watched{spot: spot{created, byOpen, false}, seen: sawLate(none)}, ruling{kind: newNameLate}, 9 * ms},
		{"not seen in a listing", watched{spot: spot{created, byList, false}, seen: sawLate(none)}, ruling{kind: newEntryLate}, 9 * ms},
		{"not seen after a listing either", watched{spot: spot{made, relists, false}, seen: sawLate(none)}, ruling{kind: newNameLate}, 9 * ms},
		{"the removed file stays", watched{spot: spot{removed, byStat, false}, seen: sawLate(at(110, old))}, ruling{kind: removedNameStays}, 9 * ms},
		{"the removed file stays listed", watched{spot: spot{removed, byList, false}, seen: sawLate(at(110, old))}, ruling{kind: removedInListing}, 9 * ms},
		{"the replaced file stays", watched{spot: spot{replaced, byOpen, false}, seen: sawLate(at(110, old))}, ruling{kind: oldFileStays}, 9 * ms},
		{"it stays for a moment", watched{spot: spot{replaced, byOpen, false}, seen: sawLate(at(110, old), at(120, fresh))}, ruling{}, 20 * ms},
		{"new times are not seen", watched{spot: spot{touched, byOpen, false}, seen: sawLate(at(110, old))}, ruling{kind: touchLate}, 9 * ms},
		{"old content after open, for a moment", watched{spot: spot{rewritten, byOpen, false}, seen: sawLate(at(110, old), at(111, fresh))}, ruling{kind: contentStale}, 11 * ms},
		{"no file after open, for a moment", watched{spot: spot{rewritten, byOpen, false}, seen: sawLate(none, at(111, fresh))}, ruling{}, 11 * ms},
		{"an old size by stat", watched{spot: spot{rewritten, byStat, false}, seen: sawLate(at(110, old))}, ruling{}, 9 * ms},
		{"a new file is empty at first", watched{spot: spot{created, byOpen, false}, seen: sawLate(at(110, neither), at(111, fresh))}, ruling{kind: contentStale}, 11 * ms},
		{"a name that was there is gone for a moment", watched{spot: spot{replaced, byStat, true}, seen: before(sawLate(none, at(120, fresh)), old)}, ruling{kind: nameAbsent}, 20 * ms},
		{"a stale handle, of a name that was there", watched{spot: spot{replaced, byOpen, true}, seen: before(sawLate(at(110, absent, unix.ESTALE), at(120, fresh)), old)}, ruling{kind: staleHandle}, 20 * ms},
		{"a name that is not seen yet, and that was not looked for", watched{spot: spot{replaced, byStat, false}, seen: sawLate(none, at(120, fresh))}, ruling{}, 20 * ms},
		{"what was before was not seen", watched{spot: spot{replaced, byStat, true}, seen: sawLate(at(110, fresh))}, ruling{failed: true}, 0},
		{"nobody looked", watched{spot: spot{created, byStat, true}, seen: sawLate()}, ruling{failed: true}, 0},
		{"every look failed", watched{spot: spot{created, byStat, true}, seen: sawLate(at(110, failing, unix.EIO))}, ruling{failed: true}, 0},
		{"the disk is full", watched{spot: spot{created, byStat, true}, change: glance{Errno: uint32(unix.ENOSPC)}}, ruling{failed: true}, 0},
		{"the operation is refused", watched{spot: spot{replaced, byStat, false}, change: glance{Errno: uint32(unix.EPERM)}}, ruling{refused: true}, 0},
	} {
		c.w.change.Invoke, c.w.change.Return = 100e6, 101e6
		got, lag := c.w.judge()
		if got.kind != c.want.kind || got.refused != c.want.refused || got.failed != c.want.failed || lag != c.lag {
			t.Errorf("%s: %+v after %v, want %+v after %v", c.what, got, lag, c.want, c.lag)
		}
		if (got.kind != "") != (got.sentence != "") {
			t.Errorf("%s: kind %q with sentence %q", c.what, got.kind, got.sentence)
		}
	}
}

func TestARemovalIsSeenWhenNothingIsThere(t *testing.T) {
	s := spot{removed, byOpen, true}
	for state, want := range map[state]bool{absent: true, old: false, failing: false, neither: false} {
		var r watchRecord
		if r.note(at(110, state), &s) != want || (r.Over == 1) != want {
			t.Errorf("%s: seen %v", state, !want)
		}
	}
	for errno, want := range map[unix.Errno]state{unix.ENOENT: absent, unix.ESTALE: absent, unix.EIO: failing} {
		if got := either(false, false, errno); got != want {
			t.Errorf("%v is %s, want %s", errno, got, want)
		}
	}
}

func TestANameThatIsReplacedIsNeverAbsent(t *testing.T) {
	for _, c := range []struct {
		what  string
		looks []glance
		want  ruling
	}{
		{"always there", []glance{at(1, fresh), at(2, fresh)}, ruling{}},
		{"not there before the first", []glance{at(1, absent, unix.ENOENT), at(2, fresh)}, ruling{}},
		{"absent", []glance{at(1, fresh), at(2, absent, unix.ENOENT), at(3, fresh)}, ruling{kind: nameAbsent}},
		{"stale", []glance{at(1, fresh), at(2, absent, unix.ESTALE)}, ruling{kind: staleHandle}},
		{"not whole", []glance{at(1, fresh), at(2, neither)}, ruling{kind: contentStale}},
		{"never seen", []glance{at(1, absent, unix.ENOENT)}, ruling{failed: true}},
		{"errors now and then", []glance{at(1, fresh), at(2, failing, unix.EIO)}, ruling{}},
	} {
		var r gazing
		for _, g := range c.looks {
			r.note(g)
		}
		if got := r.judge(1, 0); got.kind != c.want.kind || got.failed != c.want.failed {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestAnErrandKeepsItsParts(t *testing.T) {
	for _, do := range []errand{{writer: 255, slice: time.Hour, idle: true}, {writer: 3, slice: 1, anew: true}, {}} {
		if got := errandOf(do.arg()); got != do {
			t.Errorf("%+v, want %+v", got, do)
		}
	}
}

// A change that was looked at a thousand times before it was seen is no more evidence than one that was seen at once.
func TestAChangeIsOneRoundHoweverOftenItWasLookedAt(t *testing.T) {
	w := watched{spot: spot{created, byStat, false}, seen: sawLate(at(110, absent), at(120, absent), at(130, fresh))}
	e := newEvidence("visibility")
	for _, v := range []ruling{{}, {failed: true}, {refused: true}} {
		e.watch(nil, &w, v)
	}
	if e.rounds != 3 || e.contested != 1 || e.failed != 1 || e.refused != 1 {
		t.Errorf("%+v", e)
	}
}

// A filesystem that fills up in the middle, or becomes read-only, ends the passes.
func TestPassesEndWhereAllFails(t *testing.T) {
	later, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for _, c := range []struct {
		what  string
		e     evidence
		pass  int
		until time.Time
		want  bool
	}{
		{"a route has had no turn", evidence{failed: enoughFailed, violations: 1}, 1, past, true},
		{"too few looks", evidence{contested: enoughLooks - 1, failed: 30}, 2, past, true},
		{"enough looks, and time left", evidence{contested: enoughLooks}, 2, later, true},
		{"enough looks", evidence{contested: enoughLooks}, 2, past, false},
		{"a violation", evidence{contested: 1, violations: 1}, 2, later, false},
		{"nothing but failures", evidence{failed: 1}, 2, later, false},
		{"failures from some time on", evidence{contested: 1, failed: enoughFailed - 1, refused: 1}, 2, later, false},
	} {
		if got := c.e.wantsMore(c.pass, 2, c.until); got != c.want {
			t.Errorf("%s: wants more: %v", c.what, got)
		}
	}
}

func TestWhatIsKnownOfEachChangeDecides(t *testing.T) {
	for _, c := range []struct {
		what     string
		silent   change
		failed   int
		controls int
		gap      bool
		slowest  time.Duration
		want     result.Verdict
		warnings int
	}{
		{"all was seen at once", 255, 0, 20, false, 0, holds, 0},
		{"seen late", 255, 0, 20, false, time.Millisecond, holds, 1},
		{"a replacement is refused", replaced, 0, 20, false, 0, holds, 1},
		{"no replacement was made", replaced, 4, 20, false, 0, unproven, 0},
		{"a control that did not fire each time", 255, 0, 21, false, 0, unproven, 0},
		{"a gap that nobody saw", 255, 0, 20, true, 0, unproven, 0},
	} {
		l := newLateness()
		l.controls, l.gapMissed, l.slowest = c.controls, c.gap, c.slowest
		for what := range changes {
			l.heard[what] = change(what) != c.silent
		}
		f := result.Finding{Verdict: result.Holds, Figures: map[string]float64{}}
		l.conclude(&f, &evidence{failed: c.failed}, fired())
		if f.Verdict != c.want || len(f.Warnings) != c.warnings || f.Reason == "" {
			t.Errorf("%s: %+v", c.what, f)
		}
	}
}

func TestAPathLeadsToItsKeysFile(t *testing.T) {
	const number, key = 7, 3
	wrote := reach{Digest: [32]byte{1}, Nonce: nonceOf(number, key), Look: at(1, fresh)}
	read := func(nonce uint64, errno unix.Errno) reach {
		return reach{Digest: wrote.Digest, Nonce: nonce, Look: at(2, fresh, errno)}
	}
	other, full := read(wrote.Nonce, 0), wrote
	other.Digest[0], full.Look.Errno = 2, uint32(unix.ENOSPC)
	for _, c := range []struct {
		what          string
		written, read reach
		want          ruling
	}{
		{"its own nonce", wrote, read(wrote.Nonce, 0), ruling{}},
		{"another key's", wrote, read(nonceOf(number, key+1), 0), ruling{kind: keysMerged}},
		{"of another round", wrote, read(nonceOf(number-1, key), 0), ruling{kind: pathNotReached}},
		{"nothing", wrote, read(0, unix.ENOENT), ruling{kind: pathNotReached}},
		{"a stale handle", wrote, read(0, unix.ESTALE), ruling{kind: pathNotReached}},
		{"another path", wrote, other, ruling{kind: pathsDiffer}},
		{"an error", wrote, read(0, unix.EIO), ruling{failed: true}},
		{"an empty file", wrote, read(0, 0), ruling{failed: true}},
		{"not written", full, read(0, unix.ENOENT), ruling{failed: true}},
		{"not read", wrote, reach{}, ruling{failed: true}},
	} {
		r := reached{number: number, key: key, writer: 0, reader: 1, written: c.written, by: c.read}
		if got := r.judge(); got.kind != c.want.kind || got.failed != c.want.failed {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

// The keys of the corpus are all different, and so are their paths; the controls merge some and tear others apart.
func TestTheKeysOfTheCorpusHaveDifferentPaths(t *testing.T) {
	right, lossy := map[string]bool{}, map[string]bool{}
	for _, k := range keys(1) {
		right[bySignature.path(k, 0)] = true
		lossy[byCleaning.path(k, 0)] = true
		if bySignature.path(k, 0) != bySignature.path(k, 1) || byContender.path(k, 0) == byContender.path(k, 1) {
			t.Errorf("%q: paths of two contenders", k)
		}
	}
	if len(right) != len(keyParts) || len(lossy) > len(keyParts)-8 {
		t.Errorf("%d paths, and %d after cleaning, of %d keys", len(right), len(lossy), len(keyParts))
	}
}

func TestADemonstrationIsOfAReplacedFile(t *testing.T) {
	ev := func(errno unix.Errno, saw uint64) race.Event {
		return race.Event{Invoke: 1, Return: 2, Errno: uint32(errno), Saw: saw}
	}
	good := unlinked{made: ev(0, 0), judged: ev(0, judgedFile), replaced: ev(0, 0), removed: ev(0, 0), after: ev(unix.ENOENT, 0)}
	change := func(f func(*unlinked)) unlinked { u := good; f(&u); return u }
	for _, c := range []struct {
		what string
		u    unlinked
		want ruling
	}{
		{"the successor's file is gone", good, ruling{}},
		{"its handle is stale", change(func(u *unlinked) { u.after = ev(unix.ESTALE, 0) }), ruling{}},
		{"it is still there", change(func(u *unlinked) { u.after = ev(0, successorsFile) }), ruling{kind: unlinkIneffective}},
		{"the unlink is refused", change(func(u *unlinked) { u.removed, u.after = ev(unix.EBUSY, 0), ev(0, successorsFile) }), ruling{refused: true}},
		{"the replacement is refused", change(func(u *unlinked) { u.replaced = ev(unix.EACCES, 0) }), ruling{refused: true}},
		{"the unlink fails", change(func(u *unlinked) { u.removed = ev(unix.EIO, 0) }), ruling{failed: true}},
		{"nothing was made", change(func(u *unlinked) { u.made = ev(unix.ENOSPC, 0) }), ruling{failed: true}},
		{"another file was judged", change(func(u *unlinked) { u.judged.Saw = anothersFile }), ruling{failed: true}},
		{"the last look fails", change(func(u *unlinked) { u.after = ev(unix.EIO, 0) }), ruling{failed: true}},
	} {
		if got := c.u.judge(0, 1); got.kind != c.want.kind || got.failed != c.want.failed || got.refused != c.want.refused {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}
