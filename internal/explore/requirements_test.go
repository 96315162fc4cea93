package explore

import (
	"bytes"
	"os"
	"testing"

	"github.com/claimbench/claimbench/engine"
)

func TestRequirementsAreThoseOfThisCode(t *testing.T) {
	sum, err := Fingerprint("../..")
	if err != nil {
		t.Fatal(err)
	}
	if sum != Requirements.Sources {
		t.Error("the engine or the explorer changed since the table was explored: make requirements")
	}
	if want := len(engine.Protocols) * len(Weaknesses); len(Requirements.Cells) != want {
		t.Errorf("%d cells, want %d: make requirements", len(Requirements.Cells), want)
	}
}

func TestPageOfRequirementsIsTheTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := Requirements.WriteMarkdown(&want); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, want.Bytes()) {
		t.Error("docs/requirements.md is not what the table says: make requirements")
	}
}

// TestViolationsOfTheTableHappen tells each schedule of the table again.
func TestViolationsOfTheTableHappen(t *testing.T) {
	for _, c := range Requirements.Cells {
		if c.Schedule == "" {
			continue
		}
		sc, ok := FindScenario(c.Scenario, Requirements.Contenders, Requirements.Preemptions, c.Weakness)
		schedule, err := ParseSchedule(c.Schedule)
		if !ok || err != nil {
			t.Fatalf("%s %v: scenario %q, %v", c.Protocol, c.Weakness, c.Scenario, err)
		}
		_, v, err := Replay(protocol(t, c.Protocol), sc, schedule)
		if err != nil || v == nil || v.Kind != c.Kinds[0] {
			t.Errorf("%s %v: %v ends in %v, %v", c.Protocol, c.Weakness, schedule, v, err)
		}
	}
}
