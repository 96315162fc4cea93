package probes

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/race"
)

func TestANameIsJudgedByWhoseFileItIs(t *testing.T) {
	mine, other := claimNumbers()[0], claimNumbers()[1]
	saw := func(n int) race.Event { return race.Event{Saw: uint64(n)} }
	got := func(errno unix.Errno) race.Event { return race.Event{Errno: uint32(errno)} }
	for _, c := range []struct {
		what        string
		made, whose race.Event
		want        ruling
	}{
		{"made, and its own", got(0), saw(mine), ruling{}},
		{"taken by another", got(unix.EEXIST), saw(other), ruling{kind: namesMerged}},
		{"made, and another's", got(0), saw(other), ruling{kind: namesMerged}},
		{"taken, and nobody knows by whom", got(unix.EEXIST), got(unix.EIO), ruling{failed: true}},
		{"taken by what the probe did not make", got(unix.EEXIST), race.Event{Saw: noNumber}, ruling{failed: true}},
		{"too long", got(unix.ENAMETOOLONG), race.Event{}, ruling{kind: nameRefused}},
		{"not allowed", got(unix.EPERM), race.Event{}, ruling{kind: nameRefused}},
		{"the disk is full", got(unix.ENOSPC), race.Event{}, ruling{failed: true}},
		{"made, and not there", got(0), got(unix.ENOENT), ruling{kind: nameRefused}},
		{"made, and it cannot be read", got(0), got(unix.EIO), ruling{failed: true}},
		{"made, and its content is late", got(0), race.Event{Saw: noNumber}, ruling{failed: true}},
	} {
		v := judgeNaming(&naming{number: mine, made: c.made, whose: c.whose})
		if v.kind != c.want.kind || v.failed != c.want.failed || v.refused {
			t.Errorf("%s: %+v, want %+v", c.what, v, c.want)
		}
		if (v.kind != "") != (v.sentence != "") {
			t.Errorf("%s: kind %q with sentence %q", c.what, v.kind, v.sentence)
		}
	}
}

// The forms that the engine documents are those that the probe makes.
func TestEveryDocumentedFormOfNameIsProbed(t *testing.T) {
	doc, err := os.ReadFile("../engine/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^//\t(\S.*\S)`).FindAllStringSubmatch(string(doc), -1)
	forms := 0
	for _, l := range lines {
		for _, path := range regexp.MustCompile(`(?:<fan>|<sig>|params|clock|sentinel)\S*|clock/\S+`).FindAllString(l[1], -1) {
			for component := range strings.SplitSeq(strings.Trim(path, ",/"), "/") {
				forms++
				made := regexp.MustCompile("^" + asPattern(component) + "$")
				if !slices.ContainsFunc(claimNames, made.MatchString) {
					t.Errorf("no name of the form %s", component)
				}
			}
		}
	}
	if forms < 12 {
		t.Errorf("only %d forms found in the documentation", forms)
	}
}

func asPattern(form string) string {
	p := regexp.QuoteMeta(form)
	for from, to := range map[string]string{
		"<sig>": "[0-9a-f]{64}", "<fan>": "[0-9a-f]{3}", "<N>": "[0-9]+", "<nonce>": "[0-9a-f]{32}", "<claimed_at_ms>": "[0-9]{13}",
	} {
		p = strings.ReplaceAll(p, from, to)
	}
	return p
}

func TestTheCorpusHasEachClaimNameOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range claimNames {
		if seen[strings.ToLower(name)] {
			t.Errorf("%s is there twice", name)
		}
		seen[strings.ToLower(name)] = true
		if len(name) > 143 {
			t.Errorf("%s: %d bytes are too long for eCryptfs", name, len(name))
		}
	}
}

// What does not decide is said all the same.
func TestWhatBecomesOfNamesIsNoted(t *testing.T) {
	for _, c := range []struct {
		fault faultfs.Kind
		says  []string
		never string
	}{
		{faultfs.NamesFoldCase, []string{"case is folded here: \"k\" and \"K\"", "case is folded beyond ASCII here: ", `"\u03c3" and "\u03c2"`, `upper-case letters are listed otherwise than they were made: "Key" as "KEY"`}, `"\u00e9" and`},
		{faultfs.NamesNormalised, []string{"Unicode is normalised here: ", "are listed otherwise than they were made: \"e\\u0301\" as \"\\u00e9\""}, "case is folded"},
		{faultfs.NamesDropEnd, []string{"trailing dots or spaces are dropped here: ", "a dot or space at the end are listed otherwise"}, "case is folded"},
		{faultfs.NamesReserved, []string{"characters that Windows forbids are refused in names: \"a:b\" (EINVAL)"}, "one name"},
		{faultfs.NamesShort, []string{"more than 143 bytes are refused"}, "one name"},
		{faultfs.InodesUnstable, nil, "name"},
	} {
		b := smallBench(t, 2, newFaulty(t, 1, c.fault.String())...)
		f := run(t, b, "names")
		notes := strings.Join(f.Warnings, "\n")
		for _, says := range c.says {
			if !strings.Contains(notes, says) {
				t.Errorf("fault %s: no note says %q: %s", c.fault, says, describe(&f))
			}
		}
		if strings.Contains(notes, c.never) {
			t.Errorf("fault %s: a note says %q: %s", c.fault, c.never, describe(&f))
		}
	}
}

// A pair of names is counted once, however many routes there are.
func TestPairsOfNamesAreCountedOverOneRoute(t *testing.T) {
	for _, mounts := range []int{1, 2} {
		f := run(t, smallBench(t, 2, newFaulty(t, mounts, "names=drop-end")...), "names")
		if n := f.Figures["pairs_merged_count"]; n != 2 {
			t.Errorf("%d routes: %v pairs merged, want k and k., k and k with a space", mounts, n)
		}
	}
}

func TestTheLongestNamesAreMeasured(t *testing.T) {
	b := newBench(t, 2, t.TempDir())
	f := run(t, b, "names")
	for figure, want := range map[string]float64{
		"name_max_bytes": 255, "name_max_2_byte_letters_count": 127, "name_max_3_byte_letters_count": 85, "name_max_4_byte_letters_count": 63,
	} {
		if f.Figures[figure] != want {
			t.Errorf("%s is %v, want %v", figure, f.Figures[figure], want)
		}
	}
	if f.Verdict != holds || len(f.Warnings) > 0 || f.Control.Violations != 2 {
		t.Error(describe(&f))
	}
	t.Logf("%.3f s", f.DurationS)
}
