package faultfs

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestATextParsesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(anyFault), 0, 4).Draw(t, "faults")
		got, err := Parse(Text(want))
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nread as %+v, %v\nis      %+v", Text(want), got, err, want)
		}
	})
}

func anyFault(t *rapid.T) Fault {
	f := Kind(rapid.IntRange(0, int(kindCount)-1).Draw(t, "kind")).New()
	for range rapid.IntRange(0, 2).Draw(t, "calls") {
		f.On = append(f.On, Call(rapid.IntRange(0, int(callCount)-1).Draw(t, "call")))
	}
	f.Every = rapid.IntRange(0, 9).Draw(t, "every")
	f.P = rapid.Float64Range(0, 1).Draw(t, "p")
	for _, m := range measures {
		*m.of(&f) = time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, m.key))
	}
	return f
}

func TestEachKindHasATextOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for k, text := range kinds {
		what, how, ok := strings.Cut(text, "=")
		if !ok || what == "" || how == "" || seen[text] {
			t.Errorf("kind %d is %q", k, text)
		}
		seen[text] = true
	}
}

func TestATextThatIsWrongIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"every=3":                       "the first part must be a kind",
		"excl=maybe":                    `fault "excl=maybe"`,
		"excl=lookup-create,every=0":    "at least 1",
		"excl=lookup-create,p=2":        "above 0, and 1 at most",
		"excl=lookup-create,p=x":        "invalid syntax",
		"winner=eio,on=chmod":           `no call is named "chmod"`,
		"excl=lookup-create,delay=3":    "missing unit",
		"excl=lookup-create,":           "is neither a kind nor one of",
		"excl=lookup-create,names=fold": "is neither a kind nor one of",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
}

func TestAFaultByChanceIsSeededAndAsFrequentAsItSays(t *testing.T) {
	fired := func(seed uint64) (n int, first []bool) {
		s, err := New(t.TempDir(), seed, Fault{Kind: ExclDropped, P: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 100_000 {
			now := s.fires(ExclDropped)
			first = append(first, now)
			if now {
				n++
			}
		}
		return n, first
	}
	n, one := fired(1)
	_, again := fired(1)
	_, other := fired(2)
	if n < 800 || n > 1200 { // 1000, and six standard deviations
		t.Errorf("%d of 100000 at 0.01", n)
	}
	if !reflect.DeepEqual(one, again) || reflect.DeepEqual(one, other) {
		t.Error("the seed decides")
	}
}
