package probes

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// The contest of most cases: an exclusive create.
var creation = contest{
	op: "create", named: true, lost: []unix.Errno{unix.EEXIST},
	refusals: []unix.Errno{unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL},
}

func did(errnos ...unix.Errno) []race.Event {
	events := make([]race.Event, len(errnos))
	for i, errno := range errnos {
		events[i] = race.Event{Invoke: int64(10 + i), Return: int64(20 + i), Errno: uint32(errno)}
	}
	return events
}

func of(owner int16) race.After { return race.After{Owner: owner, Inode: 1} }

var (
	gone    = race.After{Errno: uint32(unix.ENOENT), Owner: race.NoOwner}
	nobodys = race.After{Owner: race.NoOwner, Inode: 1}
)

func TestAContestIsJudgedByWinnersAndByWhatIsThereAfterwards(t *testing.T) {
	const ok, exists = unix.Errno(0), unix.EEXIST
	for _, c := range []struct {
		what   string
		events []race.Event
		after  race.After
		marks  bool
		want   ruling
	}{
		{"one winner, its object", did(exists, ok, exists), of(1), true, ruling{}},
		{"two winners", did(ok, ok, exists), of(1), true, ruling{kind: severalWinners}},
		{"two winners count whatever is there", did(ok, ok), gone, false, ruling{kind: severalWinners}},
		{"one winner, nothing there", did(ok, exists), gone, true, ruling{kind: objectVanished}},
		{"one winner, another's object", did(ok, exists), of(1), true, ruling{kind: othersObject}},
		{"marks are not kept here: the owner means nothing", did(ok, exists), of(1), false, ruling{}},
		{"the owner is nobody in the round", did(ok, exists), of(55), true, ruling{}},
		{"the object has no mark", did(ok, exists), nobodys, true, ruling{}},
		{"all lost, nothing there", did(exists, exists), gone, true, ruling{kind: takenButAbsent}},
		{"all lost, one's own object is there", did(exists, exists), of(0), true, ruling{kind: successDenied}},
		{"all lost, somebody's object is there", did(exists, exists), nobodys, true, ruling{kind: noWinner}},
		{"refused to all", did(unix.ENOSYS, unix.ENOSYS), gone, true, ruling{refused: true}},
		{"the disk is full", did(unix.ENOSPC, unix.ENOSPC), gone, true, ruling{failed: true}},
		{"one lost, the other failed: nobody won, and nothing is proved", did(exists, unix.EIO), gone, true, ruling{failed: true}},
		{"a winner, and one that failed", did(ok, unix.EIO), of(0), true, ruling{}},
		{"a winner that never came back is no winner yet", []race.Event{{Invoke: 5}, {Invoke: 5, Return: 9, Errno: uint32(exists)}}, of(0), false, ruling{failed: true}},
	} {
		r := race.Round{Events: c.events, After: c.after}
		got := creation.judge(&r, 1, c.marks)
		if got.kind != c.want.kind || got.refused != c.want.refused || got.failed != c.want.failed {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
		if (got.kind != "") != (got.sentence != "") {
			t.Errorf("%s: kind %q with sentence %q", c.what, got.kind, got.sentence)
		}
	}
}

func TestAnObjectMissingOverAnotherRouteIsNotedOnly(t *testing.T) {
	absent := gone
	absent.By = 1
	r := race.Round{Events: did(0, unix.EEXIST), After: absent}
	if v := creation.judge(&r, 2, true); v.kind != "" || v.note == "" {
		t.Errorf("contender 1 is on another route than the winner: %+v", v)
	}
	absent.By = 2
	r = race.Round{Events: did(0, unix.EEXIST, unix.EEXIST), After: absent}
	if v := creation.judge(&r, 2, true); v.kind != objectVanished {
		t.Errorf("contender 2 is on the winner's route: %+v", v)
	}
}

func TestTheGravestKindIsShown(t *testing.T) {
	e := newEvidence("x")
	raw := func() result.Round { return result.Round{} }
	for _, kind := range []string{noWinner, severalWinners, releasedStaysTaken} {
		e.add(&race.Round{}, true, ruling{kind: kind, sentence: kind}, raw)
	}
	if e.example.Kind != severalWinners || e.violations != 3 {
		t.Errorf("%+v", e.example)
	}
	for _, kind := range gravity {
		if strings.Contains(kind, " ") {
			t.Errorf("%q is no stable word", kind)
		}
	}
}

func TestALoserKeepsWhatItCameWith(t *testing.T) {
	c := contest{op: "rename-dir", named: true, loserKeeps: true, lost: []unix.Errno{unix.ENOTEMPTY}}
	kept := race.Event{Invoke: 1, Return: 2, Errno: uint32(unix.ENOTEMPTY), Saw: 1}
	robbed := kept
	robbed.Saw = 0
	won := race.Event{Invoke: 1, Return: 2}
	if v := c.judge(&race.Round{Events: []race.Event{won, kept}, After: nobodys}, 1, false); v.kind != "" {
		t.Errorf("all is as it should be: %+v", v)
	}
	if v := c.judge(&race.Round{Events: []race.Event{won, robbed}, After: nobodys}, 1, false); v.kind != loserRobbed {
		t.Errorf("the loser's directory is gone: %+v", v)
	}
}

func TestAReaderMustSeeOldOrNew(t *testing.T) {
	const number = 7
	writer := race.Event{Invoke: 10, Return: 20, Role: race.Writer}
	reader := func(errno unix.Errno, saw uint64) race.Event {
		return race.Event{Invoke: 12, Return: 25, Role: race.Reader, Errno: uint32(errno), Saw: saw}
	}
	replace := watch{op: "rename-replace", mustBe: true, refusals: []unix.Errno{unix.EPERM}}
	fresh := watch{op: "publish", refusals: []unix.Errno{unix.EPERM}}
	refused, full := writer, writer
	refused.Errno, full.Errno = uint32(unix.EPERM), uint32(unix.ENOSPC)
	for _, c := range []struct {
		what   string
		w      *watch
		events []race.Event
		want   ruling
	}{
		{"old", &replace, []race.Event{writer, reader(0, number<<1)}, ruling{}},
		{"new", &replace, []race.Event{writer, reader(0, number<<1|1)}, ruling{}},
		{"neither", &replace, []race.Event{writer, reader(unix.ENOENT, 0)}, ruling{kind: nameAbsent}},
		{"not yet", &fresh, []race.Event{writer, reader(unix.ENOENT, 0)}, ruling{}},
		{"stale handle", &replace, []race.Event{writer, reader(unix.ESTALE, 0)}, ruling{kind: staleHandle}},
		{"empty", &fresh, []race.Event{writer, reader(0, sawEmpty)}, ruling{kind: contentEmpty}},
		{"torn", &fresh, []race.Event{writer, reader(0, sawTorn)}, ruling{kind: contentTorn}},
		{"of another round", &replace, []race.Event{writer, reader(0, (number-1)<<1)}, ruling{kind: contentTorn}},
		{"a reader's other error", &replace, []race.Event{writer, reader(unix.EIO, 0)}, ruling{failed: true}},
		{"refused to the writer", &replace, []race.Event{refused, reader(0, number<<1)}, ruling{refused: true}},
		{"the writer's disk is full", &replace, []race.Event{full, reader(0, number<<1)}, ruling{failed: true}},
		{"the writer could not prepare", &replace, []race.Event{{Unready: true}, reader(unix.ENOENT, 0)}, ruling{failed: true}},
		{"the same, after a reader", &replace, []race.Event{reader(unix.ENOENT, 0), {Unready: true}}, ruling{failed: true}},
		{"a violation behind another reader's error", &replace, []race.Event{writer, reader(unix.EIO, 0), reader(0, sawTorn)}, ruling{kind: contentTorn}},
	} {
		got := c.w.judge(&race.Round{Number: number, Events: c.events})
		if got.kind != c.want.kind || got.refused != c.want.refused || got.failed != c.want.failed {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestContentTellsTornFromWhole(t *testing.T) {
	whole := make([]byte, payload)
	for i := 0; i < payload; i += 8 {
		whole[i] = 9
	}
	torn := append([]byte(nil), whole...)
	torn[payload-8] = 8
	for what, c := range map[string]struct {
		b    []byte
		want uint64
	}{"whole": {whole, 9}, "empty": {nil, sawEmpty}, "half": {whole[:payload/2], sawTorn}, "mixed": {torn, sawTorn}} {
		if got := valueOf(c.b); got != c.want {
			t.Errorf("%s: %x, want %x", what, got, c.want)
		}
	}
}

func TestHoldersMustReadTheNextValues(t *testing.T) {
	read := func(errno unix.Errno, saw uint64) race.Event {
		return race.Event{Invoke: 1, Return: 2, Errno: uint32(errno), Saw: saw}
	}
	for _, c := range []struct {
		what   string
		events []race.Event
		want   ruling
	}{
		{"the next values, in any order", []race.Event{read(0, 6), read(0, 5), read(0, 7)}, ruling{}},
		{"the same value twice", []race.Event{read(0, 6), read(0, 5), read(0, 6)}, ruling{kind: lostUpdate}},
		{"two caches that each count for themselves", []race.Event{read(0, 10), read(0, 5)}, ruling{kind: lostUpdate}},
		{"not where the round before ended", []race.Event{read(0, 4), read(0, 5)}, ruling{kind: lostUpdate}},
		{"no lock to be had", []race.Event{read(unix.ENOLCK, 0), read(unix.ENOLCK, 0)}, ruling{refused: true}},
		{"an error", []race.Event{read(0, 5), read(unix.EIO, 5)}, ruling{failed: true}},
	} {
		count := counter{}
		if v := count.judge("count", &race.Round{Events: []race.Event{read(0, 4), read(0, 3)}}); v != (ruling{}) {
			t.Fatalf("the first round: %+v", v)
		}
		got := count.judge("count", &race.Round{Events: c.events})
		if got.kind != c.want.kind || got.refused != c.want.refused || got.failed != c.want.failed {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestAControlMustShowTwoWinnersOnDifferentRoutes(t *testing.T) {
	c := creation
	for _, k := range []struct {
		what   string
		routes int
		events []race.Event
		want   string
	}{
		{"two winners", 1, did(0, 0), severalWinners},
		{"two winners on one of two routes", 2, did(0, unix.EEXIST, 0), ""},
		{"two winners on two routes", 2, did(0, 0, unix.EEXIST), severalWinners},
		{"a violation that the control was not made for", 1, did(unix.EEXIST, unix.EEXIST), ""},
	} {
		if got := c.judgeControl(&race.Round{Events: k.events, After: gone}, k.routes); got.kind != k.want {
			t.Errorf("%s: %+v, want %q", k.what, got, k.want)
		}
	}
}

func TestAPartThatIsUnprovenMakesTheWholeUnproven(t *testing.T) {
	f := result.Finding{Verdict: result.Holds}
	unproved(&f, "by link", &evidence{rounds: 400, contested: 400}, fired(), 300)
	if f.Verdict != result.Holds {
		t.Errorf("a part that holds: %+v", f)
	}
	unproved(&f, "by rename", &evidence{rounds: 90, contested: 90}, fired(), 300)
	if f.Verdict != result.Unproven || !strings.Contains(f.Reason, "by rename: only 90") {
		t.Errorf("a part that proves nothing: %+v", f)
	}
}

func TestAReleaseIsJudgedByWhoGetsTheLock(t *testing.T) {
	r := release{lockKinds[0], false, "kill"}
	busy := race.Event{Invoke: 1, Return: 2, Errno: uint32(unix.EAGAIN)}
	held := race.Event{Invoke: 1, Return: 2}
	good := releaseEvent{hold: held, second: busy, blocked: true, began: 1e9, wait: race.Event{Invoke: 5, Return: 3e9}}
	change := func(f func(*releaseEvent)) releaseEvent { ev := good; f(&ev); return ev }
	for _, c := range []struct {
		what   string
		ev     releaseEvent
		shared bool
		want   ruling
	}{
		{"released", good, false, ruling{}},
		{"a waiter that was never seen to wait", change(func(ev *releaseEvent) { ev.wait = race.Event{} }), false, ruling{failed: true}},
		{"no such lock", change(func(ev *releaseEvent) { ev.hold.Errno = uint32(unix.ENOLCK) }), false, ruling{refused: true}},
		{"an error", change(func(ev *releaseEvent) { ev.hold.Errno = uint32(unix.EIO) }), false, ruling{failed: true}},
		{"a lock that does not exclude", change(func(ev *releaseEvent) { ev.second = held }), false, ruling{failed: true}},
		{"a second shared holder is refused", change(func(ev *releaseEvent) { ev.peer = busy }), true, ruling{kind: sharedRefused}},
		{"still held at the deadline", change(func(ev *releaseEvent) { ev.wait, ev.retry = race.Event{Invoke: 5}, busy }), false, ruling{kind: lockOutlives}},
		{"free, and the waiter sleeps on", change(func(ev *releaseEvent) { ev.wait, ev.retry = race.Event{Invoke: 5}, held }), false, ruling{kind: waiterAsleep}},
		{"the waiter never waited", change(func(ev *releaseEvent) { ev.blocked = false }), false, ruling{failed: true}},
	} {
		r := r
		r.shared = c.shared
		got, seconds := judgeRelease(r, &c.ev)
		if got.kind != c.want.kind || got.refused != c.want.refused || got.failed != c.want.failed {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
		if got == (ruling{}) && seconds != 2 {
			t.Errorf("%s after %v s, want 2", c.what, seconds)
		}
	}
}

func fired() *evidence { return &evidence{rounds: 30, contested: 30, violations: 20} }

func TestAVerdictNeedsEvidence(t *testing.T) {
	broken := &evidence{rounds: 9, contested: 1, violations: 1, kinds: map[string]int{severalWinners: 1}, example: &result.Counterexample{Sentence: "two won"}}
	silent := &evidence{rounds: 30, contested: 30}
	for _, c := range []struct {
		what    string
		e       *evidence
		control *evidence
		err     error
		want    result.Verdict
		reason  string
	}{
		{"enough contested rounds, and a control that fired", &evidence{rounds: 400, contested: 390}, fired(), nil, result.Holds, "390 contested rounds"},
		{"a control that did not fire", &evidence{rounds: 400, contested: 390}, silent, nil, result.Unproven, "control did not fire"},
		{"too few contested rounds", &evidence{rounds: 4000, contested: 299}, fired(), nil, result.Unproven, "only 299 of 4000"},
		{"no round at all", &evidence{}, fired(), nil, result.Unproven, "only 0 of 0"},
		{"one violation is enough, whatever the control and the number", broken, silent, nil, result.Broken, "two won (several-winners ×1 in 9 rounds)"},
		{"a violation seen before a hang", broken, fired(), &race.HungError{}, result.Broken, "two won"},
		{"a hang", &evidence{rounds: 400, contested: 390}, fired(), &race.HungError{Op: "x", After: time.Second}, result.Hung, "did not come back"},
		{"a contender that died is no verdict on the filesystem", &evidence{rounds: 400, contested: 390}, fired(), &race.DiedError{Cause: "signal: killed"}, result.Unproven, "the harness failed"},
		{"an interruption", &evidence{rounds: 400, contested: 390}, fired(), context.Canceled, result.Unproven, "interrupted after 390"},
		{"refused", &evidence{rounds: 50, refused: 50, errnos: map[string]int{"ENOSYS": 100}}, silent, nil, result.Unsupported, "ENOSYS ×100"},
		{"one route that hardly ever wins", &evidence{rounds: 400, contested: 390, wins: []int{395, 5}}, fired(), nil, result.Unproven, "route 1 won 1.2 %"},
		{"routes that win alike", &evidence{rounds: 400, contested: 390, wins: []int{200, 200}, met: map[[2]int]int{{0, 1}: 390}}, fired(), nil, result.Holds, "390"},
		{"two of three routes that never met", &evidence{rounds: 900, contested: 800, wins: []int{300, 300, 300}, met: map[[2]int]int{{0, 1}: 400, {1, 2}: 400}}, fired(), nil, result.Unproven, "routes 0 and 2 met in 0"},
		{"refused now and then", &evidence{rounds: 60, refused: 50, contested: 10, errnos: map[string]int{"ENOSYS": 100}}, fired(), nil, result.Unproven, "only 10"},
		{"a full disk", &evidence{rounds: 500, failed: 480, contested: 20, errnos: map[string]int{"ENOSPC": 960}}, fired(), nil, result.Unproven, "ENOSPC ×960"},
	} {
		got, reason := verdict(c.e, c.control, 300, c.err)
		if got != c.want || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %s, %q; want %s, %q", c.what, got, reason, c.want, c.reason)
		}
	}
}

func TestALockThatDoesNotExcludeHasAClass(t *testing.T) {
	holders := func(routes ...int) []result.Round {
		var r result.Round
		for _, route := range routes {
			r.Events = append(r.Events, result.Event{Route: route})
		}
		r.Events = append(r.Events, result.Event{Route: 0, Errno: "EAGAIN"}, result.Event{Route: 1, Errno: "EAGAIN"})
		return []result.Round{r}
	}
	onePerRoute := []result.Round{{Events: []result.Event{{Route: 0}, {Route: 1}}}}
	several := map[string]int{severalWinners: 1}
	for _, c := range []struct {
		what string
		f    result.Finding
		want string
	}{
		{"holds", result.Finding{Verdict: result.Holds}, enforced},
		{"two holders on one route", result.Finding{Verdict: result.Broken, Rounds: 2, Kinds: several, Violated: holders(0, 0)}, noOp},
		{"one holder on each route, and one on each was refused", result.Finding{Verdict: result.Broken, Rounds: 2, Kinds: several, Violated: holders(0, 1)}, localOnly},
		{"one contender on each route: what happens within one is not known", result.Finding{Verdict: result.Broken, Rounds: 2, Kinds: several, Violated: onePerRoute}, ""},
		{"one in three", result.Finding{Verdict: result.Broken, Rounds: 3, Kinds: several, Violated: holders(0, 1)}, ""},
		{"nobody gets it", result.Finding{Verdict: result.Broken, Kinds: map[string]int{noWinner: 1}}, ""},
		{"refused", result.Finding{Verdict: result.Unsupported}, ""},
	} {
		if got := lockClass(&c.f); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestCountsAreListedCommonestFirst(t *testing.T) {
	if got := countsOf(map[string]int{"EIO": 2, "EEXIST": 90, "EACCES": 2}); got != "EEXIST ×90, EACCES ×2, EIO ×2" {
		t.Error(got)
	}
	if got := countsOf(nil); got != "none" {
		t.Error(got)
	}
	if errnoName(uint32(unix.EEXIST)) != "EEXIST" || errnoName(9999) != "errno 9999" {
		t.Error(errnoName(uint32(unix.EEXIST)), errnoName(9999))
	}
}
