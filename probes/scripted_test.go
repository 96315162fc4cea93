package probes

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// counted is evidence of so many rounds, of which some failed, were refused, or violate.
func counted(rounds, failed, refused, violations int) *evidence {
	e := newEvidence("steps")
	for i := range rounds {
		r, v := race.Round{Events: did(0, unix.EEXIST)}, ruling{}
		switch {
		case i < failed:
			v, r = ruling{failed: true}, race.Round{Events: did(unix.EIO, 0)}
		case i < failed+refused:
			v, r = ruling{refused: true}, race.Round{Events: did(unix.ENOSYS, 0)}
		case i < failed+refused+violations:
			v = ruling{kind: namesMerged, sentence: "two are one"}
		}
		e.add(&r, false, v, func() result.Round { return result.Round{} })
	}
	return e
}

func TestScriptedChecksAreAllOrNothing(t *testing.T) {
	fired, dud := counted(2, 0, 0, 2), counted(2, 0, 0, 1)
	for _, c := range []struct {
		what       string
		e, control *evidence
		err        error
		want       result.Verdict
		reason     string
	}{
		{"all right", counted(10, 0, 0, 0), fired, nil, holds, "no violation in 10 scripted checks"},
		{"some left out", counted(10, 0, 3, 0), fired, nil, holds, "no violation in 7 scripted checks"},
		{"one failed", counted(10, 1, 0, 0), fired, nil, unproven, "1 of 10 checks failed, errnos seen: EEXIST ×9, EIO ×1"},
		{"one failed, and so did the control", counted(10, 1, 0, 0), dud, nil, unproven, "1 of 10 checks failed"},
		{"half the control", counted(10, 0, 0, 0), dud, nil, unproven, "the positive control fired in 1 of 2 checks only"},
		{"no control at all", counted(10, 0, 0, 0), counted(0, 0, 0, 0), nil, unproven, "the positive control fired in 0 of 0"},
		{"nothing", counted(0, 0, 0, 0), fired, nil, unproven, "nothing was checked"},
		{"a violation", counted(10, 2, 0, 1), dud, nil, broken, "two are one"},
		{"refused", counted(3, 0, 3, 0), fired, nil, unsupported, "ENOSYS"},
		{"interrupted", counted(3, 0, 0, 0), fired, context.Canceled, unproven, interrupted},
		{"hung", counted(3, 0, 0, 0), fired, &race.HungError{Op: "name-make"}, result.Hung, "name-make"},
	} {
		f := result.Finding{Figures: map[string]float64{}}
		answer(&f, c.e, c.control, c.err)
		_, rate := f.Figures["violations_high95_share"]
		if f.Verdict != c.want || !strings.Contains(f.Reason, c.reason) || f.Upper95 != nil || rate {
			t.Errorf("%s: %s, want %s with %q", c.what, describe(&f), c.want, c.reason)
		}
	}
}

func TestEveryClassIsInTheSchema(t *testing.T) {
	schema, err := os.ReadFile("../internal/result/result.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`"class": \{ "enum": \[(.*?)\]`).FindSubmatch(schema)
	for _, class := range []string{enforced, localOnly, noOp, emulated, foldsCase} {
		if line == nil || !strings.Contains(string(line[1]), `"`+class+`"`) {
			t.Errorf("the schema does not know the class %s", class)
		}
	}
}
