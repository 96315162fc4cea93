package engine

import (
	"context"
	"errors"
	"math"
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
		{"TTL", Options{TTL: math.MaxInt64}},
		{"Margin", Options{Margin: math.MaxInt64}},
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
	for _, path := range []string{"", file, link, link + "/", filepath.Join(dir, "missing"), file + "/x", "a\x00b"} {
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
