package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostileKeys are pairwise different work. Some filesystem or clean-up rule
// takes some of them for one.
var hostileKeys = []Key{
	{"a"}, {"A"}, {"a."}, {"a "}, {" a"}, {"a", ""}, {"", "a"}, {"a\x00"}, {"a\n"}, {"a\r"}, {"a/"}, {"/a"}, {"a/b"}, {"a", "b"}, {"ab"}, {"a\\b"},
	{"."}, {".."}, {"../a"}, {"con"}, {"CON"}, {"nul.txt"}, {"a:b"}, {"a*"},
	{"\u00e9"}, {"e\u0301"}, {"stra\u00dfe"}, {"strasse"}, {"\u03c3"}, {"\u03c2"}, {"i"}, {"\u0131"}, {"\u0130"}, {"\uff41"},
	{"\xff"}, {"\xfe"}, {"\xff\xfe"}, {"\ufffd"}, {"\u4e2d"}, {"\u6587"},
	{strings.Repeat("x", 255)}, {strings.Repeat("x", 256)}, {strings.Repeat("x", 1<<20)}, {strings.Repeat("x", 1<<20) + "y"},
}

func TestEveryKeyIsItsOwnWork(t *testing.T) {
	g := newTestGuard(t, t.TempDir(), Options{})
	for _, key := range hostileKeys {
		out := claim(t, g, key, Won)
		if out.Generation != 1 {
			t.Errorf("%.20q is taken for another key", key)
		}
		if err := out.Lease.Done(nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range hostileKeys {
		claim(t, g, key, Done)
	}
}

func TestKeyOfNothingIsRefused(t *testing.T) {
	g := newTestGuard(t, t.TempDir(), Options{})
	for _, key := range []Key{nil, {}, {""}, {"", ""}} {
		var contract *ContractError
		if _, err := g.Claim(context.Background(), key); !errors.As(err, &contract) || contract.Field != "key" {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestSignatureDoesNotChange(t *testing.T) {
	// A directory outlives the program: printf '\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1k' | sha256sum
	const want = "a5bc347b2155e21411a10f0d7d15393286e9c5141429f4b53a8a3c0e62bbbe44"
	if got := (Key{"k"}).Sign(); got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestContract(t *testing.T) {
	short := func() ([]byte, error) { return make([]byte, 15), nil }
	same := func() ([]byte, error) { return make([]byte, 16), nil }
	broken := func() ([]byte, error) { return nil, syscall.EIO }
	for _, c := range []struct {
		field string
		o     Options
	}{
		{"TTL", Options{TTL: -1}},
		{"Deadline", Options{Deadline: -time.Second}},
		{"Deadline", Options{TTL: time.Second, Deadline: 2 * time.Second}},
		{"Margin", Options{Margin: -1}},
		{"Slack", Options{Slack: -1}},
		{"Slack", Options{TTL: time.Second, Slack: time.Second}},
		{"Poll", Options{Poll: -1}},
		{"Nonce", Options{Nonce: short}},
		{"Nonce", Options{Nonce: same}},
		{"Nonce", Options{Nonce: broken}},
		{"Protocol", Options{Protocol: "nonesuch"}},
	} {
		_, err := New(t.TempDir(), c.o)
		var contract *ContractError
		if !errors.As(err, &contract) || contract.Field != c.field {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

func TestDirectoryContract(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	link := filepath.Join(dir, "link")
	real := filepath.Join(dir, "real")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(real, 0o700), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", file, link, filepath.Join(dir, "missing"), file + "/x", "a\x00b"} {
		_, err := New(path, Options{})
		var contract *ContractError
		if !errors.As(err, &contract) || contract.Field != "dir" {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestUnequalProgramsAreRefused(t *testing.T) {
	for _, c := range []struct {
		field string
		o     Options
	}{
		{"TTL", Options{TTL: 29 * time.Second, Deadline: 15 * time.Second, Margin: 30 * time.Second, Slack: 3 * time.Second}},
		{"TTL", Options{TTL: 31 * time.Second, Deadline: 15 * time.Second, Margin: 30 * time.Second, Slack: 3 * time.Second}},
		{"Deadline", Options{Deadline: time.Second}},
		{"Margin", Options{Margin: time.Second}},
		{"Slack", Options{Slack: time.Second}},
		{"Sync", Options{Sync: true}},
		{"Protocol", Options{Protocol: "quarantine"}},
	} {
		dir := t.TempDir()
		newTestGuard(t, dir, Options{})
		newTestGuard(t, dir, Options{})
		_, err := New(dir, c.o)
		var differ *ParamsError
		if !errors.As(err, &differ) || differ.Field != c.field {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

func TestTornParametersGetASuccessor(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, paramsName(1)), []byte("d1 ab"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, dated: map[uint64]time.Duration{}}
	fs, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	o := Options{Clock: w}.withDefaults()
	seam := &hookFS{FullFS: fs, world: w}
	if err := agree(seam, o); !errors.Is(err, ErrUnknown) {
		t.Fatalf("young: %v", err)
	}
	w.advance(2 * paramsGrace)
	if err := agree(seam, o); err != nil {
		t.Fatalf("old: %v", err)
	}
	if p, err := readParams(seam); err != nil || p != o.params() {
		t.Errorf("parameters %+v, %v", p, err)
	}
	o.Margin++
	var differ *ParamsError
	if err := agree(seam, o); !errors.As(err, &differ) || differ.File != paramsName(2) {
		t.Errorf("unequal: %v", err)
	}
}

// plant puts something in the place of generation 1 of the test key.
func plant(t *testing.T, w *world, how func(path string) error) {
	t.Helper()
	path := filepath.Join(w.dir, sig.claim(1))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), how(path)); err != nil {
		t.Fatal(err)
	}
}

func TestForeignThingsAreNeverJudged(t *testing.T) {
	for what, how := range map[string]func(string) error{
		"directory":        func(p string) error { return os.Mkdir(p, 0o700) },
		"dangling symlink": func(p string) error { return os.Symlink("nowhere", p) },
		"symlink":          func(p string) error { return os.Symlink("/etc/passwd", p) },
		"FIFO":             func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		for _, name := range []string{"generations", "generations-linked"} {
			w := newWorld(t)
			plant(t, w, how)
			p, _ := w.join(name)
			for range 2 {
				_, err := p.Try(sig)
				var foreign *ForeignError
				if !errors.As(err, &foreign) || !errors.Is(err, ErrUnknown) {
					t.Errorf("%s, %s: %v", name, what, err)
				}
				w.advance(1000 * testTTL)
			}
		}
	}
}

func TestQuarantineLeavesForeignLocksAlone(t *testing.T) {
	for what, how := range map[string]func(string) error{
		"file":             func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"dangling symlink": func(p string) error { return os.Symlink("nowhere", p) },
		"symlink":          func(p string) error { return os.Symlink("/tmp", p) },
	} {
		w := newWorld(t)
		path := filepath.Join(w.dir, sig.lock())
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), how(path)); err != nil {
			t.Fatal(err)
		}
		w.advance(1000 * testTTL)
		p, _ := w.join("quarantine")
		var foreign *ForeignError
		if _, err := p.Try(sig); !errors.As(err, &foreign) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestUnreadableClaimsAreJudgedByAge(t *testing.T) {
	write := func(text string) func(string) error {
		return func(p string) error { return os.WriteFile(p, []byte(text), 0o600) }
	}
	for what, how := range map[string]func(string) error{
		"empty":             write(""),
		"torn":              write("c1 00112233"),
		"garbage":           write("\x00\xff not a claim"),
		"JSON":              write(`{"owner":"me"}`),
		"a byte of a claim": write("c"),
		"1 GiB": func(p string) error {
			return errors.Join(os.WriteFile(p, nil, 0o600), os.Truncate(p, 1<<30))
		},
		"unreadably long": write("c1 00 1 99999999999 00000000\n"),
	} {
		for _, name := range []string{"generations", "generations-linked"} {
			w := newWorld(t)
			plant(t, w, how)
			p, _ := w.join(name)
			start := time.Now()
			w.try(p, sig, Held)
			if d := time.Since(start); d > time.Second {
				t.Errorf("%s, %s: an attempt took %v", name, what, d)
			}
			w.advance(testTTL + time.Second)
			if out := w.try(p, sig, Won); out.Generation != 2 {
				t.Errorf("%s, %s: generation %d", name, what, out.Generation)
			}
		}
	}
}

func TestTornDoneIsDone(t *testing.T) {
	whole := string(record{state: stateDone, nonce: "0011223344556677", generation: 1, body: []byte("result")}.encode())
	for n := 1; n < len(whole); n++ {
		w := newWorld(t)
		plant(t, w, func(p string) error { return os.WriteFile(p, []byte(whole[:n]), 0o600) })
		w.advance(10 * testTTL)
		p, _ := w.join("generations")
		if out := w.try(p, sig, Done); !out.Torn {
			t.Errorf("%q is not called torn", whole[:n])
		}
	}
}

func TestFutureVersionIsNobodys(t *testing.T) {
	w := newWorld(t)
	plant(t, w, func(p string) error { return os.WriteFile(p, []byte("c2 whatever comes then"), 0o600) })
	p, _ := w.join("generations")
	for range 2 {
		if _, err := p.Try(sig); !errors.Is(err, ErrVersion) || !errors.Is(err, ErrUnknown) {
			t.Errorf("%v", err)
		}
		w.advance(1000 * testTTL)
	}
}

// What touch, a restored backup or a copy does to a claim is to its mtime. The
// ctime stays, and nobody executes for it.
func TestForgedTimes(t *testing.T) {
	for what, by := range map[string]time.Duration{"an hour ahead": time.Hour, "a year back": -365 * 24 * time.Hour, "a second ahead": time.Second} {
		w := newWorld(t)
		a, _ := w.join("generations")
		b, _ := w.join("generations")
		w.try(a, sig, Won)
		at := time.Now().Add(by)
		if err := os.Chtimes(filepath.Join(w.dir, sig.claim(1)), at, at); err != nil {
			t.Fatal(err)
		}
		w.try(b, sig, Held)
		w.advance(testTTL + 2*time.Second)
		if out := w.try(b, sig, Won); out.Generation != 2 {
			t.Errorf("%s: generation %d", what, out.Generation)
		}
	}
}

// A clock that was set back leaves claims whose ctime lies ahead as well.
func TestClaimsFromAheadAreNotJudged(t *testing.T) {
	each(t, leased(true), func(t *testing.T, name string) {
		w := newWorld(t)
		w.advance(time.Hour)
		a, _ := w.join(name)
		b, _ := w.join(name)
		w.try(a, sig, Won)
		w.advance(-time.Hour)
		var ahead *ClockError
		if _, err := b.Try(sig); !errors.As(err, &ahead) || !errors.Is(err, ErrUnknown) {
			t.Errorf("%v", err)
		}
		w.advance(time.Hour + testTTL + time.Second)
		w.try(b, sig, Won)
	})
}

func TestRecordTooLongIsRefused(t *testing.T) {
	each(t, leased(true), func(t *testing.T, name string) {
		w := newWorld(t)
		p, _ := w.join(name)
		out := w.try(p, sig, Won)
		var long *RecordError
		if err := out.Lease.Done(make([]byte, MaxRecord+1)); !errors.As(err, &long) {
			t.Errorf("%v", err)
		}
		if err := out.Lease.Done(make([]byte, MaxRecord)); err != nil {
			t.Fatal(err)
		}
		if out := w.try(p, sig, Done); len(out.Record) != MaxRecord || out.Torn {
			t.Errorf("%d bytes, torn %v", len(out.Record), out.Torn)
		}
	})
}
