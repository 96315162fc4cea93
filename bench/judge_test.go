package bench

import (
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/claimbench/claimbench/internal/result"
)

// ran is an execution: when its claim was won, when it began, ended and was recorded as done, and until when its lease
// lasts. 0 is never.
func ran(who int, won, began, ended, done, expires int64) attempted {
	return attempted{
		Attempt: result.Attempt{
			Contender: who, Invoke: won - 5, Return: won, Outcome: "won", Expires: expires, Began: began, Ended: ended, Done: done,
		},
		tries: 1, firstInvoke: won - 5, firstReturn: won,
	}
}

func refused(who int, invoke, back int64, outcome string) attempted {
	return attempted{
		Attempt: result.Attempt{Contender: who, Invoke: invoke, Return: back, Outcome: outcome},
		tries:   1, firstInvoke: invoke, firstReturn: back,
	}
}

func died(a attempted, at int64) attempted {
	a.Died = at
	return a
}

func gaveUp(a attempted, at int64) attempted {
	a.left = at
	return a
}

func tried(a attempted, times int64) attempted {
	a.tries = times
	return a
}

func firstTry(a attempted, invoke, back int64) attempted {
	a.firstInvoke, a.firstReturn = invoke, back
	return a
}

func wrote(a attempted, sink int64) attempted {
	a.sink = sink
	return a
}

const long = int64(1_000_000)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		what string
		all  []attempted
		want verdict
	}{
		{"one executes, one is refused", []attempted{ran(0, 10, 11, 20, 25, long), refused(1, 8, 12, "held")},
			verdict{attempts: 2, executed: 1, contested: true}},
		{"the refusal came before the claim began", []attempted{ran(0, 10, 11, 20, 25, long), refused(1, 1, 4, "held")},
			verdict{attempts: 2, executed: 1}},
		{"two at once", []attempted{ran(0, 10, 11, 20, 25, long), ran(1, 12, 13, 22, 0, long)},
			verdict{attempts: 2, executed: 2, duplicates: 1, contested: true, kind: "duplicate"}},
		{"the second begins after the first ended, whose lease is good", []attempted{ran(0, 10, 11, 20, 0, long), ran(1, 30, 31, 40, 45, long)},
			verdict{attempts: 2, executed: 2, duplicates: 1, kind: "duplicate"}},
		{"the second executes what is recorded as done", []attempted{ran(0, 10, 11, 20, 25, 15), ran(1, 100, 101, 110, 0, long)},
			verdict{attempts: 2, executed: 2, duplicates: 1, kind: "duplicate"}},
		{"a take-over from the dead", []attempted{died(ran(0, 10, 11, 0, 0, long), 15), ran(1, 30, 31, 40, 45, long)},
			verdict{attempts: 2, executed: 2}},
		{"a take-over a moment before the death", []attempted{died(ran(0, 10, 11, 0, 0, long), 33), ran(1, 30, 31, 40, 45, long)},
			verdict{attempts: 2, executed: 2, duplicates: 1, kind: "duplicate"}},
		{"a take-over after the lease, the owner gone on and refused", []attempted{wrote(ran(0, 10, 11, 60, 0, 50), sinkRefused), ran(1, 55, 56, 58, 59, long)},
			verdict{attempts: 2, executed: 2, overlaps: 1, refused: 1}},
		{"the same, and the sink lets it through", []attempted{wrote(ran(0, 10, 11, 60, 0, 50), sinkAccepted), ran(1, 55, 56, 58, 59, long)},
			verdict{attempts: 2, executed: 2, overlaps: 1, accepted: 1}},
		{"a take-over after the lease, the owner over before", []attempted{ran(0, 10, 11, 45, 0, 50), ran(1, 55, 56, 58, 59, long)},
			verdict{attempts: 2, executed: 2}},
		{"three at once are two duplicates", []attempted{ran(0, 10, 11, 20, 25, long), ran(1, 10, 12, 20, 0, long), ran(2, 10, 13, 20, 0, long)},
			verdict{attempts: 3, executed: 3, duplicates: 2, contested: true, kind: "duplicate"}},
		{"nobody comes to the end", []attempted{died(ran(0, 10, 11, 0, 0, long), 15), refused(1, 20, 25, "held")},
			verdict{attempts: 2, executed: 1, missed: 1, kind: "missed"}},
		{"it counts as done, and nobody did it", []attempted{refused(0, 20, 25, "done")},
			verdict{attempts: 1, missed: 1, kind: "missed"}},
		{"the one who did it died before it heard that it is recorded", []attempted{died(ran(0, 10, 11, 14, 0, long), 15), refused(1, 20, 25, "done")},
			verdict{attempts: 2, executed: 1}},
		{"an execution after another was told that it is done, whose owner did not live to hear it", []attempted{
			died(ran(0, 10, 11, 14, 0, long), 15), refused(1, 20, 25, "done"), ran(2, 28, 29, 40, 45, long)},
			verdict{attempts: 3, executed: 2, duplicates: 1, kind: "duplicate"}},
		{"an execution before another was told", []attempted{
			died(ran(0, 10, 11, 14, 0, long), 15), refused(1, 20, 30, "done"), ran(2, 28, 29, 40, 45, long)},
			verdict{attempts: 3, executed: 2}},
		{"a successor of one that gave up because it could not record the work", []attempted{gaveUp(ran(0, 10, 11, 14, 0, long), 15), ran(1, 20, 21, 30, 35, long)},
			verdict{attempts: 2, executed: 2}},
		{"a successor beside one that gave up later", []attempted{gaveUp(ran(0, 10, 11, 14, 0, long), 25), ran(1, 20, 21, 30, 35, long)},
			verdict{attempts: 2, executed: 2, duplicates: 1, kind: "duplicate"}},
		{"an owner that lost its lease and went away is beside nobody", []attempted{gaveUp(ran(0, 10, 11, 0, 0, 50), 52), ran(1, 55, 56, 58, 59, long)},
			verdict{attempts: 2, executed: 2}},
		{"the dead one met nobody a lease later", []attempted{died(refused(0, 1, 0, ""), 5), ran(1, 30, 31, 40, 45, long)},
			verdict{attempts: 2, executed: 1}},
		{"the dead one met who came meanwhile", []attempted{died(refused(0, 1, 0, ""), 29), ran(1, 30, 31, 40, 45, long)},
			verdict{attempts: 2, executed: 1, contested: true}},
		{"one begins at the very end of a lease", []attempted{ran(0, 10, 11, 60, 0, 50), ran(1, 48, 50, 58, 59, long)},
			verdict{attempts: 2, executed: 2, overlaps: 1}},
		{"only the first try met the winner", []attempted{ran(0, 10, 11, 20, 25, long), firstTry(refused(1, 30, 35, "done"), 6, 8)},
			verdict{attempts: 2, executed: 1, contested: true}},
		{"one begins as another is recorded as done, after the lease", []attempted{ran(0, 10, 11, 20, 25, 15), ran(1, 18, 25, 30, 0, long)},
			verdict{attempts: 2, executed: 2, duplicates: 1, kind: "duplicate"}},
		{"tries are counted, not contenders", []attempted{ran(0, 10, 11, 20, 25, long), tried(refused(1, 30, 31, "done"), 5)},
			verdict{attempts: 6, executed: 1}},
		{"who was told first counts", []attempted{died(ran(0, 10, 11, 14, 0, long), 15), refused(1, 20, 25, "done"), refused(3, 40, 45, "done"), ran(2, 28, 29, 40, 45, long)},
			verdict{attempts: 4, executed: 2, duplicates: 1, kind: "duplicate"}},
		{"it was ended, and nobody knows that it is done", []attempted{died(ran(0, 10, 11, 14, 0, long), 15), refused(1, 20, 25, "held")},
			verdict{attempts: 2, executed: 1, missed: 1, kind: "missed"}},
		{"the dead one had given up before", []attempted{died(gaveUp(ran(0, 10, 11, 0, 0, long), 40), 12), ran(1, 20, 21, 30, 35, long)},
			verdict{attempts: 2, executed: 2}},
		{"a contender that did not come back met the winner", []attempted{ran(0, 10, 11, 20, 25, long), refused(1, 9, 0, "")},
			verdict{attempts: 2, executed: 1, contested: true}},
	} {
		got := judge(1, []int{0}, c.all)
		if (got.sentence == "") != (got.kind == "") {
			t.Errorf("%s: a %s is told as %q", c.what, got.kind, got.sentence)
		}
		got.sentence = ""
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.what, got, c.want)
		}
	}
}

func TestJudgeKeepsKeysApart(t *testing.T) {
	other := ran(1, 10, 12, 20, 25, long)
	other.Key = 1
	v := judge(1, []int{0, 1}, []attempted{ran(0, 10, 11, 20, 25, long), other})
	if v.executed != 2 || v.duplicates != 0 || v.missed != 0 || v.contested {
		t.Errorf("two keys, each done once: %+v", v)
	}
}

func TestADuplicateIsToldBeforeAMissedKey(t *testing.T) {
	first, second := ran(0, 10, 11, 20, 25, long), ran(1, 10, 12, 20, 0, long)
	first.Key, second.Key = 1, 1
	meets := refused(2, 9, 12, "held")
	meets.Key = 1
	v := judge(1, []int{0, 1, 2}, []attempted{first, second, meets})
	if v.kind != "duplicate" || v.missed != 2 || v.duplicates != 1 || !v.contested {
		t.Errorf("%+v", v)
	}
}

func TestOnlyAnotherRouteIsAContest(t *testing.T) {
	same, other := refused(2, 8, 12, "held"), refused(1, 8, 12, "held")
	other.Route = 1
	winner := ran(0, 10, 11, 20, 25, long)
	if judge(2, []int{0}, []attempted{winner, same}).contested || !judge(2, []int{0}, []attempted{winner, same, other}).contested {
		t.Error("over two routes a contest is between them")
	}
}

// on is an attempt whose times are of another clock, which may be wrong by so much.
func on(clock int, unsure int64, a attempted) attempted {
	a.clock, a.unsure = clock, unsure
	return a
}

func TestWhatClocksCouldExplainIsNoViolation(t *testing.T) {
	dead := died(ran(0, 10, 100, 0, 0, long), 200)
	for _, c := range []struct {
		what string
		all  []attempted
		want int
	}{
		{"one begins just before the other dies", []attempted{dead, on(1, 50, ran(1, 10, 160, 200, 300, long))}, 0},
		{"one begins long before the other dies", []attempted{dead, on(1, 50, ran(1, 10, 140, 200, 300, long))}, 1},
		{"one begins before the other dies, by one clock", []attempted{on(1, 50, dead), on(1, 50, ran(1, 10, 160, 200, 300, long))}, 1},
		{"one begins just after the other was done", []attempted{ran(0, 10, 100, 150, 200, 100), on(1, 50, ran(1, 10, 240, 300, 400, long))}, 0},
		{"one begins long after the other was done", []attempted{ran(0, 10, 100, 150, 200, 100), on(1, 50, ran(1, 10, 260, 300, 400, long))}, 1},
		{"one begins just after another heard that it is done", []attempted{refused(0, 10, 100, "done"), on(1, 50, ran(1, 10, 140, 300, 400, long))}, 0},
	} {
		if v := judge(1, []int{0}, c.all); v.duplicates != c.want {
			t.Errorf("%s: %d duplicates, want %d: %s", c.what, v.duplicates, c.want, v.sentence)
		}
	}
	winner, early := ran(0, 10, 11, 20, 25, long), refused(1, 1, 3, "held")
	early.Route = 1
	if legal, _ := linearizable([]attempted{winner, on(1, 1, early)}); legal {
		t.Error("one was refused long before anybody came")
	}
	if legal, _ := linearizable([]attempted{winner, on(1, 8, early)}); !legal {
		t.Error("one was refused before anybody came, if the clocks were right")
	}
	near := refused(1, 8, 20, "held")
	near.Route = 1
	if judge(2, []int{0}, []attempted{winner, on(1, 3, near)}).contested || !judge(2, []int{0}, []attempted{winner, on(1, 1, near)}).contested {
		t.Error("a contest that the clocks could explain is none")
	}
}

func TestADuplicateSaysWhoAndWhen(t *testing.T) {
	v := judge(1, []int{0}, []attempted{ran(3, 10, 1_000, 20, 0, long), ran(5, 10, 13_000, 20, 0, long)})
	if want := "contender 5 executes key 0, 12µs after contender 3 began, whose lease is good"; v.sentence != want {
		t.Errorf("got %q, want %q", v.sentence, want)
	}
}

func TestHistories(t *testing.T) {
	for _, c := range []struct {
		what string
		all  []attempted
		want bool
	}{
		{"one wins, one is refused at the same time", []attempted{ran(0, 10, 11, 20, 25, long), refused(1, 8, 12, "held")}, true},
		{"two win", []attempted{ran(0, 10, 11, 20, 25, long), ran(1, 12, 13, 22, 0, long)}, false},
		{"one is refused before anybody came", []attempted{ran(0, 10, 11, 20, 25, long), refused(1, 1, 3, "held")}, false},
		{"one hears that it is done before it is", []attempted{ran(0, 10, 11, 20, 25, long), refused(1, 12, 15, "done")}, false},
		{"one hears that it is done afterwards", []attempted{ran(0, 10, 11, 20, 25, long), refused(1, 22, 30, "done")}, true},
		{"one is refused after it was done", []attempted{ran(0, 10, 11, 20, 25, long), refused(1, 30, 33, "held")}, true},
		{"one that did the work got no answer whether it is done", []attempted{ran(0, 10, 11, 20, 0, long), refused(1, 30, 33, "done")}, true},
		{"two got none", []attempted{ran(0, 10, 11, 20, 0, long), refused(1, 12, 0, ""), refused(2, 30, 33, "held")}, true},
		{"one that never came back may have won", []attempted{refused(0, 1, 0, ""), refused(1, 10, 13, "held")}, true},
	} {
		if got := porcupine.CheckOperations(model, history(c.all)); got != c.want {
			t.Errorf("%s: linearizable %v, want %v", c.what, got, c.want)
		}
	}
}

// What the model says of single steps, where no history of a trial without an end of leases gets to.
func TestGenerationsOnlyGrow(t *testing.T) {
	free := claimState{generation: 2}
	for generation, want := range map[uint64]bool{0: true, 1: false, 2: false, 3: true} {
		if ok, _ := stepOf(free, call{}, reply{outcome: "won", generation: generation}); ok != want {
			t.Errorf("generation %d after 2: %v", generation, ok)
		}
	}
}

func TestAnIllegalHistoryIsDrawn(t *testing.T) {
	legal, html := linearizable([]attempted{ran(0, 10, 11, 20, 25, long), ran(1, 12, 13, 22, 0, long)})
	if legal || !strings.Contains(string(html), "<html") {
		t.Errorf("two winners: legal %v, and %d bytes of drawing", legal, len(html))
	}
	if legal, html := linearizable([]attempted{ran(0, 10, 11, 20, 25, long)}); !legal || html != nil {
		t.Error("one winner is illegal")
	}
}

func TestOnlyWhatIsNotKnownToBeWrongIsDrawnUnasked(t *testing.T) {
	two := []attempted{ran(0, 10, 11, 20, 25, long), ran(1, 12, 13, 22, 0, long)}
	drawn := func(protocol string, asked ...string) (n int) {
		b := &bencher{Options: Options{Protocols: asked, Draw: func(string, string, []byte) { n++ }}}
		r := newRow("storm", protocol, "")
		b.explain(r, two)
		b.explain(r, two)
		return n
	}
	if n := drawn("generations"); n != 1 {
		t.Errorf("generations is drawn %d times, want the first history", n)
	}
	if n := drawn("unguarded"); n != 0 {
		t.Error("unguarded is drawn though nobody asked for it")
	}
	if n := drawn("unguarded", "unguarded"); n != 1 {
		t.Error("unguarded is not drawn though it was asked for")
	}
}
