package explore

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unexplained is what a reader cannot know: an errno without words, a nonce, a signature.
var unexplained = regexp.MustCompile(`errno \d|[0-9a-f]{20}|: E[A-Z]+$`)

// TestTellEndsAsReplayDoes tells all violations of the table.
func TestTellEndsAsReplayDoes(t *testing.T) {
	told := 0
	for _, c := range Requirements.Cells {
		if c.Schedule == "" {
			continue
		}
		sc, ok := FindScenario(c.Scenario, Requirements.Contenders, Requirements.Preemptions, c.Weakness)
		schedule, err := ParseSchedule(c.Schedule)
		if !ok || err != nil {
			t.Fatalf("%s %v: scenario %q, %v", c.Protocol, c.Weakness, c.Scenario, err)
		}
		_, want, err := Replay(protocol(t, c.Protocol), sc, schedule)
		if err != nil {
			t.Fatalf("%s %v: %v", c.Protocol, c.Weakness, err)
		}
		lines, got, err := Tell(protocol(t, c.Protocol), sc, schedule)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s %v: %v, Replay (-) and Tell (+) end in\n%s", c.Protocol, c.Weakness, err, diff)
		}
		if len(lines) < len(schedule) {
			t.Errorf("%s %v: %d lines for %d steps", c.Protocol, c.Weakness, len(lines), len(schedule))
		}
		for _, l := range lines {
			if bad := unexplained.FindString(l.String()); bad != "" {
				t.Errorf("%s %v: %q in %q", c.Protocol, c.Weakness, bad, l)
			}
		}
		told++
	}
	if told == 0 {
		t.Error("the table has no violation: nothing was told")
	}
}

// TestTellSaysWhatTheLastStepOfAContenderCameBackWith is about a contender that ends with the step that is told.
func TestTellSaysWhatTheLastStepOfAContenderCameBackWith(t *testing.T) {
	schedule, err := ParseSchedule("AAAAABBB")
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := Tell(protocol(t, "excl"), scenario(t, "claim", Perfect), schedule)
	if err != nil {
		t.Fatal(err)
	}
	const want = "B creates k.claim: file exists (EEXIST); hears that another holds it"
	if got := lines[len(lines)-1].String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
