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
	"github.com/claimbench/claimbench/internal/testenv"
)

var rewrite = flag.Bool("rewrite", false, "render the tables again")

func TestPublishedResultsAreValidAndTheirTablesAreRenderedFromThem(t *testing.T) {
	for _, f := range published(t) {
		var table bytes.Buffer
		if err := report.Markdown(&table, []*result.File{f.File}); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		testenv.Rendered(t, f.Name+".md", table.Bytes(), *rewrite)
	}
}

func TestTheReadmeIsRenderedFromAllResults(t *testing.T) {
	var page bytes.Buffer
	if err := report.Overview(&page, published(t)); err != nil {
		t.Fatal(err)
	}
	testenv.Rendered(t, "README.md", page.Bytes(), *rewrite)
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
	testenv.RenderedBetween(t, readme, begin, end, "```\n"+strings.TrimSpace(table.String())+"\n```\n", *rewrite)
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
