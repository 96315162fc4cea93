// Package results holds published results: the JSON files of surveys, the tables rendered from them, and README.md,
// the page of all of them. Nothing here is edited by hand.
package results

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
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

// TestTheFortyTableOfTheReadmeIsThatOfTheResult compares what stands between the two marks of the project's README.
func TestTheFortyTableOfTheReadmeIsThatOfTheResult(t *testing.T) {
	f, err := result.Load("local-filesystems.json")
	if err != nil {
		t.Fatal(err)
	}
	f.Targets = f.Targets[:1]
	var table bytes.Buffer
	if err := report.Text(&table, []*result.File{f}, report.TextOptions{Table: "forty", Width: 120}); err != nil {
		t.Fatal(err)
	}
	const readme, begin, end = "../README.md", "<!-- begin: forty, rendered by go test ./results -rewrite -->\n", "<!-- end: forty -->"
	page, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("%s has no place for the table, between %q and %q", readme, begin, end)
	}
	rendered(t, readme, []byte(before+begin+"```\n"+strings.TrimSpace(table.String())+"\n```\n"+end+after))
}

// published is every result in this directory, by its name without .json.
func published(t *testing.T) []report.Named {
	t.Helper()
	paths, err := filepath.Glob("*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d published results, %v", len(paths), err)
	}
	// What a run of compose.yaml has left here, by its time, is not published by that.
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasPrefix(path, "compose-2") })
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
