package engine

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

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
