// Package results holds published results: the JSON files of surveys, the tables rendered from them, and README.md,
// the page of all of them. Nothing here is edited by hand.
package results

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/claimbench/claimbench/configs"
	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/lab"
	"github.com/claimbench/claimbench/internal/report"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/testenv"
	"github.com/claimbench/claimbench/probes"
)

var rewrite = flag.Bool("rewrite", false, "render the tables again")

func TestPublishedResultsAreValidAndTheirTablesAreRenderedFromThem(t *testing.T) {
	_, files := published(t)
	for _, f := range files {
		var table bytes.Buffer
		if err := report.MarkdownPublished(&table, &f); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		testenv.Rendered(t, f.Name+".md", table.Bytes(), *rewrite)
	}
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) != len(files)+1 {
		t.Errorf("%d pages of %d results and README.md (%v): one is of a result that is gone", len(pages), len(files), err)
	}
}

func TestTheReadmeIsRenderedFromAllResults(t *testing.T) {
	targets, files := published(t)
	var missing []string
	for _, target := range targets {
		if !slices.ContainsFunc(files, func(f report.Published) bool { return f.File.Lab == target.Name }) {
			missing = append(missing, target.Name)
		}
	}
	var page bytes.Buffer
	if err := report.Overview(&page, files, missing); err != nil {
		t.Fatal(err)
	}
	testenv.Rendered(t, "README.md", page.Bytes(), *rewrite)
}

// TestPublishedResultsOfTheLabAreAsExpected keeps the tables and the expectations together: where one of them changes,
// the other has to.
func TestPublishedResultsOfTheLabAreAsExpected(t *testing.T) {
	_, files := published(t)
	for _, f := range files {
		for _, d := range f.Deviations {
			t.Error(d)
		}
	}
}

// TestTheFortyTableOfTheReadmeIsThatOfTheResult compares what stands between the two marks of the project's README.
func TestTheFortyTableOfTheReadmeIsThatOfTheResult(t *testing.T) {
	f, err := result.Load("ext4.json")
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

// published are the targets of the lab, and every result in this directory by its name without .json: those of the lab in
// its order, then the others.
func published(t *testing.T) ([]lab.Target, []report.Published) {
	t.Helper()
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return all.targets, all.files
}

type everything struct {
	targets []lab.Target
	files   []report.Published
}

// read reads once what is much to read.
var read = sync.OnceValues(func() (all everything, err error) {
	dir, err := fs.Sub(configs.Lab, "lab")
	if err != nil {
		return all, err
	}
	if all.targets, err = lab.Load(dir); err != nil {
		return all, err
	}
	paths, err := filepath.Glob("*.json")
	if err != nil || len(paths) == 0 {
		return all, fmt.Errorf("%d published results, %v", len(paths), err)
	}
	var wrong []error
	for _, path := range paths {
		// What a run of compose.yaml has left here, by its time, is not published by that.
		if strings.HasPrefix(path, "compose-2") {
			continue
		}
		f, err := all.load(path)
		wrong = append(wrong, err)
		all.files = append(all.files, f)
	}
	if err := errors.Join(wrong...); err != nil {
		return all, err
	}
	place := func(f report.Published) int { return cmp.Or(all.of(f.File.Lab)+1, len(all.targets)+1) }
	slices.SortStableFunc(all.files, func(a, b report.Published) int { return place(a) - place(b) })
	return all, nil
})

// of is the place of a target; -1 is none.
func (e *everything) of(name string) int {
	return slices.IndexFunc(e.targets, func(t lab.Target) bool { return t.Name == name })
}

// load reads a result, and adds what the lab knows of its target, if it comes from there.
func (e *everything) load(path string) (p report.Published, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	if err := result.Validate(data); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	f, err := result.Decode(data)
	if err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	p.Named = report.Named{Name: strings.TrimSuffix(path, ".json"), File: f}
	if f.Lab == "" {
		return p, nil
	}
	i := e.of(f.Lab)
	if i < 0 || p.Name != f.Lab {
		return p, fmt.Errorf("%s is of the target %q, which must be in the lab and give the file its name", path, f.Lab)
	}
	target := &e.targets[i]
	p.About = target.About
	p.Deviations, p.Unproven = target.CompareFile(f)
	for _, name := range names(target) {
		expected := report.Expected{Name: name, Claim: target.Claims[name]}
		if e, named := target.Expect[name]; named {
			expected.Verdict, expected.Because = e.String(), e.Because
		}
		p.Expected = append(p.Expected, expected)
	}
	return p, nil
}

// names are the promises and protocols that a target names, in the order of tables.
func names(target *lab.Target) []string {
	var all []string
	for _, p := range probes.All {
		all = append(all, p.Name)
	}
	for _, p := range engine.Protocols {
		all = append(all, p.Name)
	}
	return slices.DeleteFunc(all, func(name string) bool {
		_, expected := target.Expect[name]
		_, claimed := target.Claims[name]
		return !expected && !claimed
	})
}
