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
		{"a contender that did not come back met the winner", []attempted{ran(0, 10, 11, 20, 25, long), refused(1, 9, 0, "")},
			verdict{attempts: 2, executed: 1, contested: true}},
	} {
		got := judge([]int{0}, c.all)
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
	v := judge([]int{0, 1}, []attempted{ran(0, 10, 11, 20, 25, long), other})
	if v.executed != 2 || v.duplicates != 0 || v.missed != 0 || v.contested {
		t.Errorf("two keys, each done once: %+v", v)
	}
}

func TestADuplicateSaysWhoAndWhen(t *testing.T) {
	v := judge([]int{0}, []attempted{ran(3, 10, 1_000, 20, 0, long), ran(5, 10, 13_000, 20, 0, long)})
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
		{"one that never came back may have won", []attempted{refused(0, 1, 0, ""), refused(1, 10, 13, "held")}, true},
	} {
		if got := porcupine.CheckOperations(model, history(c.all)); got != c.want {
			t.Errorf("%s: linearizable %v, want %v", c.what, got, c.want)
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
