// Package results holds published results: the JSON files of surveys, and the tables rendered from them. Nothing here
// is edited by hand.
package results

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claimbench/claimbench/internal/report"
	"github.com/claimbench/claimbench/internal/result"
)

var rewrite = flag.Bool("rewrite", false, "render the tables again")

func TestPublishedResultsAreValidAndTheirTablesAreRenderedFromThem(t *testing.T) {
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d published results, %v", len(files), err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := result.Validate(data); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		f, err := result.Load(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var table bytes.Buffer
		if err := report.Markdown(&table, []*result.File{f}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		rendered(t, strings.TrimSuffix(path, ".json")+".md", table.Bytes())
	}
}

func rendered(t *testing.T, path string, want []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Error(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not the table of its result (%v); go test ./results -rewrite", path, err)
	}
}
