package config

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"excl-create", "mkdir", "symlink", "link", "flock", "posix-lock", "ofd-lock", "lock-release", "lock-rules", "names", "seed"}
	for word, want := range map[string]string{
		"mkdir": "mkdir", "mkdri": "mkdir", "MKDIR": "mkdir", "Mkdr": "mkdir", "makedir": "mkdir",
		"excl_create": "excl-create", "exclcreate": "excl-create", "excl": "excl-create", "o-excl-create": "excl-create",
		"simlink": "symlink", "links": "link", "lnik": "link", "flok": "flock", "posix": "posix-lock", "ofdlock": "ofd-lock",
		"lock-relase": "lock-release", "sede": "seed", "name": "names", "lock-r": "", "lock": "flock",
		"": "", "durability": "", "x": "", "fsync": "", "zz": "", strings.Repeat("mkdir", 100): "",
	} {
		if got, ok := Nearest(word, known); got != want || ok != (want != "") {
			t.Errorf("Nearest(%q) = %q, %v; want %q", word, got, ok, want)
		}
	}
	if got, ok := Nearest("link", nil); ok {
		t.Errorf("near to nothing: %q", got)
	}
	for word, known := range map[string]string{"": "one", "xbz": "abc", "mk-dri": "rename"} {
		if got, ok := Nearest(word, []string{known}); ok {
			t.Errorf("%q is near to %q", word, got)
		}
	}
	if got, _ := Nearest("mkdri", []string{"MKDIR"}); got != "MKDIR" {
		t.Errorf("case keeps mkdri from MKDIR: %q", got)
	}
	if got, _ := Nearest("cat", []string{"cut", "cot"}); got != "cut" {
		t.Errorf("of two as near, %q; want the first", got)
	}
	if got, _ := Nearest("lnk", []string{"lock", "link"}); got != "link" {
		t.Errorf("%q; want the nearer, though it is the second", got)
	}
}

// slow is the definition of Levenshtein's distance.
func slow(a, b string) int {
	switch {
	case a == "":
		return len(b)
	case b == "":
		return len(a)
	case a[0] == b[0]:
		return slow(a[1:], b[1:])
	}
	return 1 + min(slow(a[1:], b), slow(a, b[1:]), slow(a[1:], b[1:]))
}

func TestDistanceIsByItsDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string { // few letters, so that words have some in common
		letters := make([]byte, random.IntN(7))
		for i := range letters {
			letters[i] = "abc"[random.IntN(3)]
		}
		return string(letters)
	}
	for range 2000 {
		a, b := word(), word()
		if got, want := distance([]rune(a), []rune(b)), slow(a, b); got != want {
			t.Fatalf("distance(%q, %q) = %d, want %d", a, b, got, want)
		}
	}
	if d := distance([]rune("café"), []rune("cafe")); d != 1 {
		t.Errorf("an accent counts %d", d)
	}
}
