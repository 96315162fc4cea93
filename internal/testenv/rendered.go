package testenv

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// Rendered compares a file with what must stand in it, or with rewrite makes it so.
func Rendered(t testing.TB, path string, want []byte, rewrite bool) {
	t.Helper()
	if rewrite {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what it is rendered from (%v); go test with -rewrite, in the package of this test", path, err)
	}
}

// RenderedBetween does so for what stands between two marks.
func RenderedBetween(t testing.TB, path, begin, end, want string, rewrite bool) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("%s has no place for it, between %q and %q", path, begin, end)
	}
	Rendered(t, path, []byte(before+begin+want+end+after), rewrite)
}
