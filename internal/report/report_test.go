package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/claimbench/claimbench/internal/result"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func TestReports(t *testing.T) {
	text := func(o TextOptions) func(io.Writer, []*result.File) error {
		return func(w io.Writer, files []*result.File) error { return Text(w, files, o) }
	}
	for _, test := range []struct {
		golden string
		write  func(io.Writer, []*result.File) error
		files  string
	}{
		{"ext4.txt", text(TextOptions{}), "ext4"},
		{"ext4.80.txt", text(TextOptions{Width: 80}), "ext4"},
		{"nfs.txt", text(TextOptions{}), "nfs"},
		{"nfs.120.txt", text(TextOptions{Width: 120}), "nfs"},
		{"nfs.80.txt", text(TextOptions{Width: 80}), "nfs"},
		{"nfs.60.txt", text(TextOptions{Width: 60}), "nfs"},
		{"nfs.color.txt", text(TextOptions{Width: 100, Color: true}), "nfs"},
		{"nfs.verbose.txt", text(TextOptions{Width: 120, Verbose: true}), "nfs"},
		{"odd.100.txt", text(TextOptions{Width: 100}), "odd"},
		{"empty.txt", text(TextOptions{}), "empty"},
		{"both.txt", text(TextOptions{}), "ext4 nfs"},
		{"none.txt", text(TextOptions{}), ""},
		{"nfs.md", Markdown, "nfs"},
		{"odd.md", Markdown, "odd"},
		{"empty.md", Markdown, "empty"},
		{"both.md", Markdown, "ext4 nfs"},
		{"both.csv", CSV, "ext4 nfs"},
		{"odd.csv", CSV, "odd"},
		{"empty.csv", CSV, "empty"},
	} {
		t.Run(test.golden, func(t *testing.T) {
			var got bytes.Buffer
			if err := test.write(&got, load(t, strings.Fields(test.files)...)); err != nil {
				t.Fatal(err)
			}
			golden(t, test.golden, got.Bytes())
		})
	}
}

// golden compares got with the golden file, and leaves it beside that when they differ.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err == nil && bytes.Equal(want, got) {
		os.Remove(path + ".got") // of an earlier failure
		return
	}
	if err := os.WriteFile(path+".got", got, 0o644); err != nil {
		t.Error(err)
	}
	t.Errorf("see %s.got (-rewrite accepts it):\n%s%v", path, cmp.Diff(string(want), string(got)), err)
}

func load(t *testing.T, names ...string) []*result.File {
	t.Helper()
	var files []*result.File
	for _, name := range names {
		dir := "../result/testdata/good/"
		if strings.HasPrefix(name, "bench-") {
			dir = "testdata/"
		}
		f, err := result.Load(dir + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

func TestTablesFitTheTerminal(t *testing.T) {
	for name, least := range map[string]int{"ext4": 60, "nfs": 60, "odd": 80} {
		for width := least; width <= 200; width += 5 {
			for _, verbose := range []bool{false, true} {
				out := table(t, TextOptions{Width: width, Verbose: verbose}, load(t, name)...)
				for line := range strings.Lines(out) {
					line = strings.TrimRight(line, "\n")
					if n := columnsOf(line); n > width && !strings.HasPrefix(line, "    ") {
						t.Fatalf("%s: %d of %d columns: %s", name, n, width, line)
					}
				}
			}
		}
	}
}

func TestNoWidthIsTooSmall(t *testing.T) {
	for _, name := range []string{"ext4", "nfs", "odd", "empty"} {
		for width := range 60 {
			if out := table(t, TextOptions{Width: width}, load(t, name)...); len(out) == 0 {
				t.Errorf("%s: nothing at %d columns", name, width)
			}
		}
	}
}

func TestEightyColumnsKeepTheEvidence(t *testing.T) {
	for _, name := range []string{"ext4", "nfs"} {
		out := table(t, TextOptions{Width: 80}, load(t, name)...)
		for _, column := range []string{"promise", "verdict", "violations", "contested", "bound", "control"} {
			if !strings.Contains(out, column) {
				t.Errorf("%s: %s is not shown at 80 columns", name, column)
			}
		}
		if !strings.Contains(out, "(Not shown at 80 columns: ") {
			t.Errorf("%s: the table hides that columns are missing", name)
		}
	}
}

// Every text of a file may come from another machine, so none may reach the terminal as it is.
func TestNothingInAFileSteersTheTerminal(t *testing.T) {
	for _, o := range []TextOptions{{}, {Width: 80}, {Verbose: true}} {
		for _, out := range []string{table(t, o, load(t, "odd")...), written(t, Markdown, load(t, "odd")...)} {
			if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%q in the output: ...%q...", out[i], out[max(0, i-20):i+10])
			}
		}
	}
}

func TestColorsTouchOnlyVerdicts(t *testing.T) {
	files := load(t, "ext4", "nfs")
	plain, colored := table(t, TextOptions{Width: 90}, files...), table(t, TextOptions{Width: 90, Color: true}, files...)
	stripped := colored
	for verdict, code := range map[string]string{"holds": "32", "broken": "31", "hung": "31", "unsupported": "33", "unproven": "33"} {
		if !strings.Contains(colored, "\x1b["+code+"m"+verdict+"\x1b[0m") {
			t.Errorf("%s has no colour", verdict)
		}
		stripped = strings.ReplaceAll(stripped, "\x1b["+code+"m"+verdict+"\x1b[0m", verdict)
	}
	if diff := cmp.Diff(plain, stripped); diff != "" {
		t.Errorf("(-plain +coloured without verdict colours):\n%s", diff)
	}
}

func TestAVerdictNeverGoesWithoutItsScope(t *testing.T) {
	files := load(t, "ext4", "nfs")
	for _, f := range Formats[:2] { // table and markdown
		var out bytes.Buffer
		if err := f.Write(&out, files, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			for _, v := range result.Verdicts() {
				for _, before := range []string{"  ", "| ", ": "} {
					if _, rest, found := strings.Cut(line, before+string(v)); found && !strings.HasPrefix(rest, " (") && strings.Contains(line, "|") {
						t.Errorf("%s: %s", f.Name, line)
					}
				}
			}
		}
	}
}

func TestIncompleteIsOnTheFirstLine(t *testing.T) {
	files := load(t, "nfs")
	for name, out := range map[string]string{"table": table(t, TextOptions{}, files...), "markdown": written(t, Markdown, files...)} {
		if first, _, _ := strings.Cut(out, "\n"); !strings.Contains(first, "INCOMPLETE: interrupted after 21 s") {
			t.Errorf("%s begins with %q", name, first)
		}
	}
}

func TestHeadersPrintAsTheyAre(t *testing.T) {
	g := &grid{columns: []column{{name: "p99 µs"}, {name: "o_excl winners"}}, cells: [][][]string{{{"p99 µs"}, {"1"}}, {{"o_excl winners"}, {"2"}}}}
	got, err := g.render()
	if err != nil {
		t.Fatal(err)
	}
	if want := "p99 µs  o_excl winners\n----------------------\n1       2\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestCSVHasOneRowPerFindingAndAbsentIsEmpty(t *testing.T) {
	records, err := csv.NewReader(strings.NewReader(written(t, CSV, load(t, "ext4", "nfs", "empty")...))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 1+8+6 {
		t.Fatalf("%d records", len(records))
	}
	cell := func(row int, name string) string { return records[row][slices.Index(records[0], name)] }
	for _, test := range []struct {
		row        int
		name, want string
	}{
		{1, "promise", "excl-create"}, {1, "upper95", "0.0001475"}, {1, "violations", "0"}, {1, "round_p50_us", "12.34"},
		{1, "class", ""}, {1, "container", ""}, {1, "errnos", "EEXIST=61920"}, {1, "options", "rw,relatime,errors=remount-ro,data=ordered"},
		{8, "promise", "names"}, {8, "rounds", "0"}, {8, "upper95", ""}, {8, "control_rounds", ""}, {8, "control_violations", ""}, {8, "round_p50_us", ""},
		{10, "control_violations", "0"}, {12, "class", "local-only"}, {12, "lock_options", "local_lock=flock"},
	} {
		if got := cell(test.row, test.name); got != test.want {
			t.Errorf("%s of row %d is %q, want %q", test.name, test.row, got, test.want)
		}
	}
}

func TestJSONOfOneFileIsAResultFile(t *testing.T) {
	files := load(t, "nfs")
	saved, err := os.ReadFile("../result/testdata/good/nfs.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(saved), written(t, JSON, files...)); diff != "" {
		t.Errorf("(-saved +reported):\n%s", diff)
	}
	if many := written(t, JSON, append(files, files...)...); !strings.HasPrefix(many, "[{\n") || !strings.HasSuffix(many, "\n}]\n") {
		t.Errorf("two files:\n%s", many)
	}
	if none := written(t, JSON); none != "[]\n" {
		t.Errorf("no file: %q", none)
	}
}

func TestEveryFormatReturnsTheErrorOfItsWriter(t *testing.T) {
	names := map[string]bool{}
	for _, f := range Formats {
		names[f.Name] = true
		if err := f.Write(full{}, load(t, "nfs"), TextOptions{}); !errors.Is(err, errFull) {
			t.Errorf("%s: error %v", f.Name, err)
		}
	}
	if len(names) != len(Formats) {
		t.Errorf("%d names for %d formats", len(names), len(Formats))
	}
}

var errFull = errors.New("no space left on device")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// The same files always give the same report: maps must not show their order.
func TestReportsAreDeterministic(t *testing.T) {
	for _, f := range Formats {
		var first bytes.Buffer
		if err := f.Write(&first, load(t, "ext4", "nfs", "odd"), TextOptions{Verbose: true, Color: true}); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			var again bytes.Buffer
			if err := f.Write(&again, load(t, "ext4", "nfs", "odd"), TextOptions{Verbose: true, Color: true}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Bytes(), again.Bytes()) {
				t.Fatalf("%s differs from one time to the next", f.Name)
			}
		}
	}
}

func TestAReportLeavesTheFileAsItWas(t *testing.T) {
	files := load(t, "nfs")
	events := files[0].Targets[0].Findings[0].Counterexample.Round.Events
	slices.Reverse(events)
	before := slices.Clone(events)
	table(t, TextOptions{Verbose: true}, files...)
	if diff := cmp.Diff(before, events); diff != "" {
		t.Errorf("the events were sorted in place:\n%s", diff)
	}
}

func TestLongRoundsAreCutShort(t *testing.T) {
	files := load(t, "nfs")
	round := &files[0].Targets[0].Findings[0].Counterexample.Round
	round.Events = slices.Repeat(round.Events[:1], 1000)
	out := table(t, TextOptions{}, files...)
	if !strings.Contains(out, "and 968 more contenders in the result file") || strings.Count(out, "\n") > 150 {
		t.Errorf("%d lines:\n%s", strings.Count(out, "\n"), out)
	}
}

func table(t *testing.T, o TextOptions, files ...*result.File) string {
	t.Helper()
	return written(t, func(w io.Writer, files []*result.File) error { return Text(w, files, o) }, files...)
}

func written(t *testing.T, write func(io.Writer, []*result.File) error, files ...*result.File) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out, files); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
