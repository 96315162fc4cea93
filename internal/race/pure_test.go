package race

import "testing"

func round(routes int, events ...Event) (Round, int) { return Round{Events: events}, routes }

func won(invoke, ret int64) Event  { return Event{Invoke: invoke, Return: ret} }
func lost(invoke, ret int64) Event { return Event{Invoke: invoke, Return: ret, Errno: 17} }

func TestContestedIsOverlapWithTheWinner(t *testing.T) {
	never := lost(15, 0) // never came back: it may have happened at any time since
	for _, c := range []struct {
		what   string
		routes int
		events []Event
		want   bool
	}{
		{"overlap", 1, []Event{won(10, 20), lost(15, 25)}, true},
		{"the loser inside the winner", 1, []Event{won(10, 20), lost(12, 13)}, true},
		{"touching: intervals are closed", 1, []Event{won(10, 20), lost(20, 25)}, true},
		{"one after the other", 1, []Event{won(10, 20), lost(21, 25)}, false},
		{"only losers overlap each other", 1, []Event{won(10, 20), lost(30, 40), lost(35, 45)}, false},
		{"a contender that stayed away", 1, []Event{won(10, 20), {Unready: true, Errno: 28}}, false},
		{"a contender that never came back", 1, []Event{won(10, 20), never}, true},
		{"no winner, losers overlap", 1, []Event{lost(10, 20), lost(15, 25)}, true},
		{"no winner, one after the other", 1, []Event{lost(10, 20), lost(25, 30)}, false},
		{"two winners, each with its time", 1, []Event{won(10, 20), won(30, 40)}, false},
		{"two routes: 0 and 2 share one", 2, []Event{won(10, 20), lost(30, 40), lost(15, 25)}, false},
		{"two routes: 0 and 1 do not", 2, []Event{won(10, 20), lost(15, 25), lost(30, 40)}, true},
		{"a reader overlaps the writer", 1, []Event{{Invoke: 10, Return: 20, Role: Writer}, {Invoke: 15, Return: 25, Role: Reader}}, true},
		{"readers overlap each other only", 1, []Event{{Invoke: 10, Return: 20, Role: Writer}, {Invoke: 30, Return: 45, Role: Reader}, {Invoke: 40, Return: 45, Role: Reader}}, false},
	} {
		r, routes := round(c.routes, c.events...)
		if got := r.Contested(routes, nil); got != c.want {
			t.Errorf("%s: contested is %v", c.what, got)
		}
	}
}

func TestAnAttemptThatDidNotTakePartIsNoContention(t *testing.T) {
	lostToAnother := func(ev *Event) bool { return ev.Errno == 0 || ev.Errno == 17 }
	readOnly := Event{Invoke: 15, Return: 25, Errno: 30}
	for _, c := range []struct {
		what  string
		other Event
		want  bool
	}{{"refused with EROFS", readOnly, false}, {"lost", lost(15, 25), true}} {
		r := Round{Events: []Event{won(10, 20), c.other}}
		if got := r.Contested(1, lostToAnother); got != c.want {
			t.Errorf("%s: contested is %v", c.what, got)
		}
	}
}

func TestSteeringDelaysTheOneThatWins(t *testing.T) {
	offsets := []int64{0, 0}
	for range 10 {
		steer(offsets, []int{90, 10}, 1000, 1)
	}
	if offsets[0] <= 0 || offsets[1] != 0 {
		t.Errorf("contender 0 wins nine of ten; offsets are %v", offsets)
	}
	for range 20 {
		steer(offsets, []int{10, 90}, 1000, 1)
	}
	if offsets[0] != 0 || offsets[1] <= 0 {
		t.Errorf("contender 1 wins nine of ten; offsets are %v", offsets)
	}
	before := []int64{5, 7}
	steer(before, []int{0, 0}, 1000, 1)
	if before[0] != 5 || before[1] != 7 {
		t.Errorf("nobody won, and offsets moved to %v", before)
	}
}

func TestSteeringGoesBackWhereOffsetsCostContention(t *testing.T) {
	offsets := []int64{0, 8000}
	steer(offsets, []int{90, 10}, 1000, 0.5)
	if offsets[0] != 0 || offsets[1] != 4000 {
		t.Errorf("half the rounds were contested; offsets are %v", offsets)
	}
}

func TestAScanVisitsEveryAlignmentOfEachLane(t *testing.T) {
	j := job{phase: Scan, width: 1000, n: 4, lanes: 2}
	seen := [2]map[int64]bool{{}, {}}
	for number := range int64(4 * scanSteps) {
		var at [2]int64
		for lane := range 2 {
			r := newRunner(nil, lane, &j)
			at[lane] = j.startOffset(&r, number)
		}
		swept := int(number/scanSteps) % 2
		seen[swept][at[swept]-at[1-swept]] = true
	}
	for lane, shifts := range seen {
		if len(shifts) != scanSteps || !shifts[-1000] || !shifts[1000] {
			t.Errorf("lane %d was shifted by %d different amounts, by a whole width to both sides: %v", lane, len(shifts), shifts[-1000] && shifts[1000])
		}
	}
}

func TestJitterRepeatsFromItsSeed(t *testing.T) {
	offset := func(seed uint64, number int64) int64 {
		j := job{phase: Tight, width: 4000, jitter: 500, n: 2, lanes: 2, seed: seed}
		r := newRunner(nil, 1, &j)
		return j.startOffset(&r, number)
	}
	differ := false
	for number := range int64(50) {
		o, again, other := offset(1, number), offset(1, number), offset(2, number)
		if o != again {
			t.Fatal("the same seed gives another jitter")
		}
		if o < 0 || o > 500 {
			t.Errorf("a jitter of %d ns, of 500 at most", o)
		}
		differ = differ || o != other
	}
	if !differ {
		t.Error("another seed gives the same jitter")
	}
}

func TestEveryLeaderMeetsEveryLeaderOfTheOtherLane(t *testing.T) {
	j := job{n: 8, lanes: 2}
	met := map[[2]int]bool{}
	for number := range int64(64) {
		var leaders []int
		for id := range 8 {
			if r := newRunner(nil, id, &j); r.leads(number) {
				leaders = append(leaders, id)
			}
		}
		if len(leaders) != 2 || leaders[0]%2 == leaders[1]%2 {
			t.Fatalf("round %d is led by %v; one per lane is right", number, leaders)
		}
		met[[2]int{leaders[0], leaders[1]}] = true
	}
	if len(met) != 16 {
		t.Errorf("%d pairs of leaders met, of 16", len(met))
	}
}

func TestNamesAreHexAndTerminated(t *testing.T) {
	e := newEnv(17)
	e.at(0x2f, false)
	if got := string(e.name[:4]); got != "r2f\x00" {
		t.Errorf("hot: %q", got)
	}
	e.at(0xabc, true)
	if got := string(e.name[:7]); got != "dabc/r\x00" {
		t.Errorf("cold: %q", got)
	}
	if got := string(e.own[:6]); got != "own11\x00" {
		t.Errorf("own: %q", got)
	}
}

func TestAMarkIsReadBackFromPermissionBits(t *testing.T) {
	for id := range MaxContenders {
		e := newEnv(id)
		if got := OwnerByMark(0o100000 | e.Mark()); int(got) != id {
			t.Errorf("contender %d reads back as %d", id, got)
		}
	}
	if got := OwnerByMark(0o100644); got != NoOwner {
		t.Errorf("0644 is owned by %d", got)
	}
}
