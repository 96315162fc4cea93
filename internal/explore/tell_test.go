package explore

import (
	"regexp"
	"testing"
)

// unexplained is what a reader cannot know: an errno without words, a nonce, a signature.
var unexplained = regexp.MustCompile(`errno \d|[0-9a-f]{20}|: E[A-Z]+$`)

// TestViolationsOfTheTableAreTold tells each schedule of the table again, for a reader who does not know the code.
func TestViolationsOfTheTableAreTold(t *testing.T) {
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
		lines, v, err := Tell(protocol(t, c.Protocol), sc, schedule)
		if err != nil || v == nil || v.Kind != c.Kinds[0] || v.What != c.Why {
			t.Errorf("%s %v: %v ends in %v, %v; want %v: %s", c.Protocol, c.Weakness, schedule, v, err, c.Kinds[0], c.Why)
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

// last is how the story of a schedule ends.
func last(t *testing.T, name, text string) string {
	t.Helper()
	schedule, err := ParseSchedule(text)
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := Tell(protocol(t, name), scenario(t, "claim", Perfect), schedule)
	if err != nil {
		t.Fatal(err)
	}
	return lines[len(lines)-1].String()
}

// TestTellSaysWhatTheLastStepOfAContenderCameBackWith is about a contender that ends with the step that is told.
func TestTellSaysWhatTheLastStepOfAContenderCameBackWith(t *testing.T) {
	const want = "B creates k.claim: file exists (EEXIST); hears that another holds it"
	if got := last(t, "excl", "AAAAABBB"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTellDoesNotRepeatWhatWasLearned is about a step that is a violation before it is done.
func TestTellDoesNotRepeatWhatWasLearned(t *testing.T) {
	const want = "B begins the work on key k"
	if got := last(t, "check-then-create", "ABAAAABBAAAAAAABBBBBBB"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNobodyIsFreshWhereZIsStillThere has all but Z end: it may hold the claim.
func TestNobodyIsFreshWhereZIsStillThere(t *testing.T) {
	for text, want := range map[string]string{"ZZZZZA!B!": "B dies", "ZZZZZZ!A!B!": "F comes when all others have ended or died: the key is not to be had, 3 TTLs after all have ended"} {
		if got := last(t, "excl", text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
