package survey

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A route over which files are empty for ever, as 9p with cache=loose shows them, still leads to the directory.
func TestARouteIsKnownByTheNameOfTheDirectoryNotByWhatItShowsInIt(t *testing.T) {
	routes := []string{t.TempDir(), t.TempDir()}
	w, err := makeWorkdir(routes)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SameEverywhere(context.Background(), time.Millisecond); err == nil {
		t.Error("a route without the directory passed")
	}
	if err := os.Mkdir(filepath.Join(routes[1], DirPrefix+w.nonce), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(routes[1], DirPrefix+w.nonce, ManifestName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.SameEverywhere(context.Background(), time.Millisecond); err != nil {
		t.Error(err)
	}
}
