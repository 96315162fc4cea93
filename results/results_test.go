// Package results holds published results: the JSON files of surveys, the tables rendered from them, and README.md,
// the page of all of them. Nothing here is edited by hand.
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
	for _, f := range published(t) {
		var table bytes.Buffer
		if err := report.Markdown(&table, []*result.File{f.File}); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		rendered(t, f.Name+".md", table.Bytes())
	}
}

func TestTheReadmeIsRenderedFromAllResults(t *testing.T) {
	var page bytes.Buffer
	if err := report.Overview(&page, published(t)); err != nil {
		t.Fatal(err)
	}
	rendered(t, "README.md", page.Bytes())
}

// published is every result in this directory, by its name without .json.
func published(t *testing.T) []report.Named {
	t.Helper()
	paths, err := filepath.Glob("*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d published results, %v", len(paths), err)
	}
	var files []report.Named
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := result.Validate(data); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		f, err := result.Load(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files = append(files, report.Named{Name: strings.TrimSuffix(path, ".json"), File: f})
	}
	return files
}

func rendered(t *testing.T, path string, want []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Error(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what its results render to (%v); go test ./results -rewrite", path, err)
	}
}
