package explore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimbench/claimbench/engine"
)

func TestRequirementsAreThoseOfThisCode(t *testing.T) {
	sum, err := Fingerprint("../..")
	if err != nil {
		t.Fatal(err)
	}
	if sum != Requirements.Sources {
		t.Error("the engine or the explorer changed since the table was explored: make requirements")
	}
	if want := len(engine.Protocols) * len(Weaknesses); len(Requirements.Cells) != want {
		t.Errorf("%d cells, want %d: make requirements", len(Requirements.Cells), want)
	}
}

func TestPageOfRequirementsIsTheTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := Requirements.WriteMarkdown(&want); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, want.Bytes()) {
		t.Error("docs/requirements.md is not what the table says: make requirements")
	}
}

// TestFilesOfTheTableAreWrittenBothOrNeither has the Go table fail to be written, and the page stays as it was.
func TestFilesOfTheTableAreWrittenBothOrNeither(t *testing.T) {
	root := t.TempDir()
	page, table := filepath.Join(root, "docs", "page.md"), filepath.Join(root, "internal", "explore", "requirements_table.go")
	if err := errors.Join(os.MkdirAll(table, 0o777), os.Mkdir(filepath.Dir(page), 0o777), os.WriteFile(page, []byte("old"), 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := Requirements.WriteFiles(page); err == nil {
		t.Error("the Go table was written where a directory is")
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != "old" {
		t.Errorf("the page is %.20q, %v", got, err)
	}
	if err := errors.Join(os.Remove(table), Requirements.WriteFiles(page)); err != nil {
		t.Fatal(err)
	}
	names, err := namesIn(root)
	want := []string{"docs", "docs/page.md", "internal", "internal/explore", "internal/explore/requirements_table.go"}
	if diff := cmp.Diff(want, names); err != nil || diff != "" {
		t.Errorf("%v; it should be left (-) with what it is (+)\n%s", err, diff)
	}
}
