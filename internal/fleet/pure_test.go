package fleet

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

func TestWherePutsEverythingBelow(t *testing.T) {
	nonce := "0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		nonce, sub, want string
		ok               bool
	}{
		{"", "", "", true},
		{nonce, "", dirPrefix + nonce, true},
		{nonce, "excl-create", dirPrefix + nonce + "/excl-create", true},
		{"", "excl-create", "", false},
		{"..", "", "", false},
		{nonce + "/..", "", "", false},
		{nonce, "..", "", false},
		{nonce, "a/b", "", false},
		{nonce, "a\x00b", "", false},
		{nonce, ".x", "", false},
		{nonce + "\n", "", "", false},
	} {
		got, err := where(c.nonce, c.sub)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("where(%q, %q) = %q, %v", c.nonce, c.sub, got, err)
		}
	}
}

func FuzzWhere(f *testing.F) {
	f.Add("0123456789abcdef0123456789abcdef", "excl-create")
	f.Add("..", "..")
	f.Fuzz(func(t *testing.T, nonce, sub string) {
		dir, err := where(nonce, sub)
		if err == nil && dir != "" && (bytes.Contains([]byte(dir), []byte("..")) || dir[:len(dirPrefix)] != dirPrefix || bytes.Count([]byte(dir), []byte("/")) > 1) {
			t.Errorf("where(%q, %q) = %q", nonce, sub, dir)
		}
	})
}

func FuzzMessages(f *testing.F) {
	f.Add(encode(hello{Protocol: Protocol, Name: "alpha"}))
	f.Add(encode(order{Do: toHeat, Heat: &race.Heat{Op: "mkdir", N: 2, Rounds: 4}}))
	f.Add(encode(answer{Failure: &failure{Text: "x", Hung: 5}, Events: pack(make([]race.Event, 1))}))
	f.Add([]byte(`{"do":"enter","do":"leave"}`))
	f.Add([]byte(`{}{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a answer
		if decode(data, &a) == nil {
			_ = a.Failure.error("h")
			_, _ = unpack[race.Event](a.Events, 1)
			_, _ = unpack[race.After](a.After, 3)
			_ = patched(a.Words, func(who, i int, _ uint64) {
				if who < 0 || who >= race.MaxContenders || i < 0 || i >= race.Words {
					t.Errorf("a word %d of contender %d", i, who)
				}
			})
		}
		_, _ = decode(data, &hello{}), decode(data, &order{})
		_, _ = decode(data, &errand{}), decode(data, &news{})
	})
}

func FuzzPatches(f *testing.F) {
	words, told := make([]uint64, race.Words), make([]uint64, race.Words)
	words[7], words[9], words[race.Words-1] = 1, 2, 3
	f.Add(changes(nil, 5, words, told))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = patched(data, func(who, i int, _ uint64) {
			if who < 0 || who >= race.MaxContenders || i < 0 || i >= race.Words {
				t.Errorf("a word %d of contender %d", i, who)
			}
		})
	})
}

func TestStrangeMessagesAreErrors(t *testing.T) {
	for _, data := range []string{"", "null", "[]", "{", `{"do":1}`, `{"do":"enter","unknown":1}`, `{"do":"enter"}{"do":"enter"}`, `{"do":"enter","do":"begin"}`, "\xff"} {
		if err := decode([]byte(data), &order{}); err == nil && data != "null" {
			t.Errorf("%q was taken for an order", data)
		}
	}
	if err := decode(make([]byte, mostBytes+1), &order{}); err == nil {
		t.Error("a message beyond the bound was read")
	}
}

func TestWordsArriveAsTheyWereWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	here, told, there := make([]uint64, race.Words), make([]uint64, race.Words), make([]uint64, race.Words)
	for range 50 {
		for range rng.IntN(40) {
			here[rng.IntN(race.Words)] = rng.Uint64N(3)
		}
		from := rng.IntN(race.Words - 100)
		for i := range 50 {
			here[from+i] = uint64(i)
		}
		patches := changes(nil, 9, here, told)
		if err := patched(patches, func(who, i int, w uint64) {
			if who != 9 {
				t.Fatalf("contender %d", who)
			}
			there[i] = w
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(here, there) || !slices.Equal(here, told) {
			t.Fatal("the words differ")
		}
		if more := changes(nil, 9, here, told); len(more) != 0 {
			t.Fatalf("%d bytes of news without any", len(more))
		}
	}
}

// contestOf imitates hosts that reach a server after different times; who comes first wins.
func contestOf(p *pace, delays []int64, rng *rand.Rand, rounds int) *report {
	r := &report{rounds: rounds, took: time.Duration(rounds) * 5 * time.Millisecond, wins: make([]int, len(delays))}
	for range rounds {
		best, first := 0, int64(1<<62)
		for i, d := range delays {
			if at := d + p.offsets[i] + rng.Int64N(p.width/2+1) + rng.Int64N(300e3); at < first {
				best, first = i, at
			}
		}
		r.wins[best]++
		r.widths = append(r.widths, 2e6)
	}
	return r
}

func TestOffsetsSpreadTheWins(t *testing.T) {
	for _, delays := range [][]int64{{0, 0}, {0, 3e6}, {5e6, 0, 2e6}, {0, 200e3, 400e3, 12e6}} {
		rng := rand.New(rand.NewPCG(5, 6))
		p := newPace(len(delays), 300*time.Microsecond)
		for range 30 {
			p.after(contestOf(p, delays, rng, 20), mostRounds)
		}
		wins, total := make([]int, len(delays)), 0
		for range 30 {
			r := contestOf(p, delays, rng, 20)
			p.after(r, mostRounds)
			for i, w := range r.wins {
				wins[i] += w
				total += w
			}
		}
		for i, w := range wins {
			if share := float64(w) / float64(total) * float64(len(delays)); share < 0.5 || share > 1.8 {
				t.Errorf("delays %v: route %d won %d of %d rounds; offsets %v", delays, i, w, total, p.offsets)
			}
		}
	}
}

func TestStartsAreAnnouncedEarlierWhereContendersAreLate(t *testing.T) {
	p := newPace(2, 0)
	before := p.lead
	p.after(&report{rounds: 10, took: time.Second, late: 5, wins: []int{5, 5}}, mostRounds)
	if p.lead <= before {
		t.Errorf("lead %d, before %d", p.lead, before)
	}
	for range 1000 {
		p.after(&report{rounds: 10, took: time.Millisecond, wins: []int{5, 5}}, mostRounds)
	}
	if p.lead != leastLead || p.size != mostRounds {
		t.Errorf("lead %d, size %d", p.lead, p.size)
	}
	for range 1000 {
		p.after(&report{rounds: 10, took: time.Hour, late: 10, wins: []int{10, 0}}, mostRounds)
	}
	if p.lead != mostLead || p.size != 8 || slices.Max(p.offsets) > mostOffset {
		t.Errorf("lead %d, size %d, offsets %v", p.lead, p.size, p.offsets)
	}
}

func TestAnOverlapWithinTheUncertaintyIsNone(t *testing.T) {
	r := race.Round{Events: []race.Event{{Invoke: 100, Return: 200}, {Invoke: 150, Return: 300, Errno: 17}}}
	for _, c := range []struct {
		unsure int64
		want   bool
	}{{0, true}, {49, true}, {50, true}, {51, false}} {
		r.Unsure = func(i, j int) int64 { return c.unsure }
		if got := r.Contested(2, nil); got != c.want {
			t.Errorf("unsure by %d: contested %v", c.unsure, got)
		}
	}
}

func TestALongWayDoesNotShortenTheLead(t *testing.T) {
	p := newPace(2, 30*time.Millisecond)
	before := p.lead
	p.after(&report{rounds: 10, took: time.Second, late: 5, wins: []int{5, 5}}, mostRounds)
	if p.lead < before {
		t.Errorf("starts come too late, and are announced %v ahead instead of %v", time.Duration(p.lead), time.Duration(before))
	}
}

func TestAClaimOfALostHostIsInheritedOnce(t *testing.T) {
	no := func(by string, at int64) asked {
		return asked{what: "generations", by: by, invoke: at, until: at + 1e6}
	}
	won := func(by string, at int64) asked {
		a := no(by, at)
		a.won, a.given = true, true
		return a
	}
	given := func(by string, at int64) asked { a := no(by, at); a.given = true; return a }
	failed := func(by string, at int64) asked { a := no(by, at); a.err = errors.New("no answer"); return a }
	for _, c := range []struct {
		name                               string
		asks                               []asked
		trials, void, executed, duplicates int
	}{
		{"one", []asked{no("a", 1e9), won("b", 2e9), given("a", 3e9)}, 1, 0, 1, 0},
		{"two", []asked{won("a", 1e9), won("b", 1e9)}, 1, 0, 2, 1},
		{"nobody, of a host that may live", []asked{no("a", 1e9), no("b", 90e9)}, 0, 1, 0, 0},
		{"no answer", []asked{no("a", 1e9), failed("b", 2e9)}, 0, 1, 0, 0},
		{"an answer that was lost", []asked{failed("a", 1e9), given("b", 2e9)}, 0, 1, 0, 0},
		{"nobody asked", nil, 0, 1, 0, 0},
	} {
		rows := inherited([]estate{{holds: []string{"flock", "generations"}, asks: c.asks}})
		if len(rows) != 1 {
			t.Fatalf("%s: %+v", c.name, rows)
		}
		if r := rows[0]; r.Trials != c.trials || r.Void != c.void || r.Executed != c.executed || r.Duplicates != c.duplicates || r.Missed != 0 {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	unknown := inherited([]estate{
		{holds: []string{"generations"}, asks: []asked{no("a", 1e9)}}, {holds: []string{"generations"}, asks: []asked{given("b", 1e9)}},
	})
	if r := unknown[0]; r.Void != 2 || len(r.Voided) != 2 {
		t.Errorf("two hosts whose claims came to different ends: %+v", r)
	}
	twice := inherited([]estate{
		{holds: []string{"generations"}, sign: 1e9, asks: []asked{no("a", 2e9), won("a", 3e9)}},
		{holds: []string{"generations"}, sign: 5e9, asks: []asked{won("b", 9e9)}},
	})
	if r := twice[0]; r.Trials != 2 || r.Expected != 2 || r.Executed != 2 || r.Duplicates != 0 || r.TakeoverMS.N != 2 || r.TakeoverMS.Max != 4001 {
		t.Errorf("two hosts: %+v", r)
	}
}

func TestHowLongWhatALostHostHeldIsRefused(t *testing.T) {
	e := estate{holds: []string{"flock", "flock-held", "generations", "ofd-lock", "posix-lock"}, sign: 1e9, asks: []asked{
		{what: "flock", invoke: 2e9, until: 3e9}, {what: "ofd-lock", invoke: 4e9, until: 5e9, won: true, given: true},
		{what: "flock", invoke: 6e9, until: 7e9, err: errors.New("no answer")}, {what: "flock", invoke: 8e9, until: 9e9, won: true, given: true},
		{what: "flock", by: "another", invoke: 8.5e9, until: 9.5e9},
		{what: "posix-lock", invoke: 31e9, until: 32e9}, {what: "flock-held", invoke: 2e9, until: 3e9, err: errors.New("no answer")},
		{what: "generations", invoke: 2e9, until: 3e9}, {what: "generations", invoke: 4e9, until: 5e9, given: true},
	}}
	want := []result.Held{{What: "flock", RefusedS: 1, GivenS: 8}, {What: "ofd-lock", GivenS: 4}, {What: "posix-lock", RefusedS: 30}}
	if diff := cmp.Diff(want, e.waits()); diff != "" {
		t.Error(diff)
	}
}
