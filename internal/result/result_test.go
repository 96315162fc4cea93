package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLoadReturnsWhatSaveWasGiven(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	want := filled()
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a round trip (-saved +loaded):\n%s", diff)
	}
}

func TestSavingAgainChangesNoByte(t *testing.T) {
	first := encode(t, filled())
	f, err := Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), string(encode(t, f))); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

func TestAnEventIsOneLine(t *testing.T) {
	f := minimal()
	f.Host.OS = "a {\"b\": [c]}, d"
	f.Targets = []Target{{Name: "{x}", Scope: ScopeMount, Routes: []Route{}, Findings: []Finding{{
		Promise: "mkdir", Verdict: Broken, Scope: ScopeMount,
		Violated: []Round{{Operation: "mkdir", Events: []Event{{Contender: 1, Errno: "EEXIST"}, {Contender: 2}}}},
	}}}}
	data := encode(t, f)
	for _, want := range []string{
		"\n                {\"contender\": 1, \"route\": 0, \"cpu\": 0, \"invoke_ns\": 0, \"return_ns\": 0, \"errno\": \"EEXIST\"},\n",
		"\n    \"os\": \"a {\\\"b\\\": [c]}, d\",\n", "\n      \"name\": \"{x}\",\n",
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is not in\n%s", want, data)
		}
	}
	again, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, again); diff != "" {
		t.Errorf("(-saved +loaded):\n%s", diff)
	}
}

func TestUnknownMembersAreKeptAtEveryLevel(t *testing.T) {
	doc := parse(t, encode(t, filled()))
	if n := addLater(doc); n < len(structs()) {
		t.Fatalf("added members to %d objects, there are %d types", n, len(structs()))
	}
	in, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Decode(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(doc, parse(t, encode(t, f))); diff != "" {
		t.Errorf("(-given +kept):\n%s", diff)
	}
}

// addLater puts a member of a later version into every object that is not a map.
func addLater(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			if !strings.Contains(" errnos kinds figures statfs later ", " "+name+" ") {
				n += addLater(child)
			}
		}
		v["from_v1_9"] = map[string]any{"n": json.Number("1.50"), "list": []any{"ü", nil, true}}
		n++
	case []any:
		for _, child := range v {
			n += addLater(child)
		}
	}
	return n
}

func TestEveryTypeKeepsUnknownMembersAndOmitsOnlyWhatIsAbsent(t *testing.T) {
	for name, typ := range structs() {
		if f, ok := typ.FieldByName("Unknown"); !ok || f.Tag.Get("json") != ",embed" || f.Type != rawType {
			t.Errorf("%s has no member that keeps what it does not know", name)
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			// In the second version of the json package omitempty keeps 0 and false.
			if strings.HasSuffix(f.Tag.Get("json"), ",omitempty") && f.Type.Comparable() && f.Type.Kind() != reflect.String && f.Type.Kind() != reflect.Pointer {
				t.Errorf("%s.%s: omitempty does not omit a zero %s; use omitzero", name, f.Name, f.Type)
			}
		}
	}
}

func TestAbsentIsAbsentAndZeroIsZero(t *testing.T) {
	f := minimal()
	f.Targets[0].Findings[0].Upper95 = new(float64)
	got := string(encode(t, f))
	for _, absent := range []string{"incomplete", "commit", "boot_id", "kinds", "control", "counterexample", "null"} {
		if strings.Contains(got, absent) {
			t.Errorf("%s is in the file:\n%s", absent, got)
		}
	}
	for _, present := range []string{`"upper95": 0`, `"rounds": 0`, `"seed": 0`, `"routes": []`} {
		if !strings.Contains(got, present) {
			t.Errorf("%s is not in the file:\n%s", present, got)
		}
	}
}

func minimal() *File {
	return &File{Schema: Schema, Targets: []Target{{
		Name: "t", Scope: ScopeProcess,
		Findings: []Finding{{Promise: "excl-create", Verdict: Unproven, Scope: ScopeProcess, Reason: "no rounds"}},
	}}}
}

func TestSaveRefusesAFileThatBreaksTheRules(t *testing.T) {
	nan, high := math.NaN(), 1.5
	for _, test := range []struct {
		name  string
		spoil func(*File, *Finding)
		want  string
	}{
		{"no schema", func(f *File, _ *Finding) { f.Schema = "" }, "names no schema"},
		{"no verdict", func(_ *File, g *Finding) { g.Verdict = "" }, `/targets/0/findings/0/verdict is "", want one of holds, broken`},
		{"unknown verdict", func(_ *File, g *Finding) { g.Verdict = "safe" }, `verdict is "safe"`},
		{"no scope of a finding", func(_ *File, g *Finding) { g.Scope = "" }, "/targets/0/findings/0/scope"},
		{"no scope of a target", func(f *File, _ *Finding) { f.Targets[0].Scope = "" }, "/targets/0/scope"},
		{"no promise", func(_ *File, g *Finding) { g.Promise = "" }, "promise is empty"},
		{"NaN in a figure", func(_ *File, g *Finding) { g.Figures = map[string]float64{"p50_us": nan} }, "/targets/0/findings/0/figures/p50_us is NaN"},
		{"NaN behind a pointer", func(_ *File, g *Finding) { g.Upper95 = &nan }, "/upper95 is NaN"},
		{"infinite duration", func(f *File, _ *Finding) { f.DurationS = math.Inf(1) }, "/duration_s is +Inf"},
		{"rate above 1", func(_ *File, g *Finding) { g.Upper95 = &high }, "upper95 is 1.5"},
		{"negative count", func(_ *File, g *Finding) { g.Violations = -1 }, "negative"},
		{"more contested than run", func(_ *File, g *Finding) { g.Rounds, g.Contested = 1, 2 }, "2 contested of 1 rounds"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "r.json")
			if err := minimal().Save(path); err != nil {
				t.Fatal(err)
			}
			before := readFile(t, path)
			f := minimal()
			test.spoil(f, &f.Targets[0].Findings[0])
			if err := f.Save(path); err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "save "+path+": ") {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if !bytes.Equal(before, readFile(t, path)) {
				t.Error("the file that was there has changed")
			}
			onlyFile(t, dir, "r.json")
		})
	}
}

func TestSaveReplacesTheFileWhole(t *testing.T) {
	tmp := t.TempDir() // on the same filesystem, so that renameio would use it
	t.Setenv("TMPDIR", tmp)
	untouched := time.Unix(1e9, 0)
	if err := os.Chtimes(tmp, untouched, untouched); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "r.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := minimal().Save(path); err != nil {
		t.Fatal(err)
	}
	if data := make([]byte, 10); must(old.Read(data)) != 3 {
		t.Error("a reader of the old file sees the new one: it was written in place")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mask := umask(); info.Mode() != 0o644&^mask {
		t.Errorf("mode %v under umask %v", info.Mode(), mask)
	}
	onlyFile(t, dir, "r.json")
	if info, err := os.Stat(tmp); err != nil || !info.ModTime().Equal(untouched) {
		t.Errorf("TMPDIR was written to at %v (%v)", info.ModTime(), err)
	}
}

func TestAWriteThatFailsLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	occupied := filepath.Join(dir, "occupied")
	if err := os.Mkdir(occupied, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := write(occupied, []byte("x")); err == nil {
		t.Error("a directory was replaced by a file")
	}
	onlyFile(t, dir, "occupied")
}

func TestSaveFollowsASymlink(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "latest"), filepath.Join(dir, "r.json")
	if err := errors.Join(os.WriteFile(target, nil, 0o644), os.Symlink("r.json", link)); err != nil {
		t.Fatal(err)
	}
	if err := minimal().Save(link); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is now %v (%v)", info.Mode(), err)
	}
	if len(readFile(t, target)) == 0 {
		t.Error("the file behind the link is as it was")
	}
}

func TestSaveErrorsNameTheFileThatWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "no", "r.json"): "no such file or directory",
		dir:                                "not a regular file; choose another name",
		fifo:                               "not a regular file; choose another name",
	} {
		if err := minimal().Save(path); err == nil || err.Error() != "save "+path+": "+want {
			t.Errorf("error %v, want save %s: %s", err, path, want)
		}
	}
	onlyFile(t, dir, "fifo")
}

func TestSaveWritesPathsThatAreNotUTF8(t *testing.T) {
	f := minimal()
	f.Targets[0].Name = "/mnt/\xff\xfe"
	path := filepath.Join(t.TempDir(), "r.json")
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if name := got.Targets[0].Name; name != "/mnt/\ufffd\ufffd" {
		t.Errorf("name %q", name)
	}
}

func TestLoadSaysWhatIsWrongInOneLine(t *testing.T) {
	whole := string(encode(t, minimal()))
	v := func(schema string) string { return strings.Replace(whole, Schema, schema, 1) }
	for _, test := range []struct{ name, content, want string }{
		{"empty", "", "is empty; run the survey again"},
		{"blank", " \n\n", "is empty; run the survey again"},
		{"cut", whole[:200], "cut off after 200 bytes; copy it again or run the survey again"},
		{"cut in a literal", `{"schema":tr`, "cut off after 12 bytes; copy it again or run the survey again"},
		{"text", "hello", "not JSON: invalid character 'h' at start of value at byte 0; name a file that claimbench wrote"},
		{"zeros after a crash", "\x00\x00\x00", `not JSON: invalid character '\x00' at start of value at byte 0; name a file that claimbench wrote`},
		{"two files in one", whole + whole, "not JSON: invalid character '{' after top-level value"},
		{"array", "[]", "not a claimbench result file: it holds no JSON object"},
		{"null", "null", "not a claimbench result file: it names no schema"},
		{"other JSON", `{"name":"x"}`, "not a claimbench result file: it names no schema"},
		{"blank schema", `{"schema":""}`, "not a claimbench result file: it names no schema"},
		{"schema of another kind", `{"schema":1}`, "not a claimbench result file: its schema is not a string"},
		{"foreign", `{"schema":"fio/v3"}`, `not a claimbench result file: its schema is "fio/v3"`},
		{"newer", v("claimbench.result/v2"), "claimbench.result/v2 was written by a newer claimbench; this one reads v1"},
		{"newer, other shape", `{"schema":"claimbench.result/v10.2","targets":7}`, "claimbench.result/v10.2 was written by a newer claimbench; this one reads v1"},
		{"v0", v("claimbench.result/v0"), `"claimbench.result/v0" is no version that claimbench ever wrote; this one reads v1`},
		{"v1x", v("claimbench.result/v1x"), `"claimbench.result/v1x" is no version that claimbench ever wrote; this one reads v1`},
		{"a string for a count", strings.Replace(whole, `"rounds": 0`, `"rounds": "0"`, 1), "is damaged or was edited: /targets/0/findings/0/rounds is a string, want an integer"},
		{"a fraction for a count", strings.Replace(whole, `"rounds": 0`, `"rounds": 1.5`, 1), "is damaged or was edited: /targets/0/findings/0/rounds is a number, want an integer (invalid syntax)"},
		{"an object for targets", `{"schema":"claimbench.result/v1","targets":{}}`, "is damaged or was edited: /targets is an object, want an array"},
		{"not a time", `{"schema":"claimbench.result/v1","started":"noon"}`, "is damaged or was edited: /started is a string, want a time"},
		{"no verdict", strings.Replace(whole, "unproven", "", 1), `is damaged or was edited: /targets/0/findings/0/verdict is "", want one of`},
		{"a member twice", `{"schema":"claimbench.result/v1","schema":"claimbench.result/v2"}`, "not JSON: duplicate object member name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.json")
			if err := os.WriteFile(path, []byte(test.content), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path)
			refusal(t, err, path, test.want)
		})
	}
}

func TestLoadRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(dir)
	refusal(t, err, dir, "is a directory; name a result file in it")

	missing := filepath.Join(dir, "none.json")
	_, err = Load(missing)
	refusal(t, err, missing, "no such file; name one that claimbench wrote")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v hides that the file does not exist", err)
	}

	_, err = Load("a\nb")
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q, want one line", err)
	}
}

func TestLoadBoundsTheSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, MaxSize+1)); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Load(path)
	runtime.ReadMemStats(&after)
	refusal(t, err, path, "is larger than the 256 MiB a result file may have; survey fewer targets into one file")
	if read := after.TotalAlloc - before.TotalAlloc; read > MaxSize/2 {
		t.Errorf("read %d bytes of it first", read)
	}
	if _, err := readAtMost(strings.NewReader("12345"), 4); err == nil {
		t.Error("a pipe has no size, and no limit either")
	}
	if data, err := readAtMost(strings.NewReader("12345"), 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v at the limit", data, err)
	}
}

func TestLoadAcceptsAMinorVersionAndKeepsItsName(t *testing.T) {
	f := minimal()
	f.Schema = "claimbench.result/v1.3"
	got, err := Decode(encode(t, f))
	if err != nil {
		t.Fatal(err)
	}
	if got.Schema != f.Schema {
		t.Errorf("schema %q", got.Schema)
	}
}

// refusal fails the test unless err is a LoadError of one line that begins with want after the path.
func refusal(t *testing.T, err error, path, want string) {
	t.Helper()
	var load *LoadError
	if !errors.As(err, &load) || load.Path != path || load.Reason == "" {
		t.Fatalf("error %v of type %T, want a LoadError about %s", err, err, path)
	}
	if got := err.Error(); !strings.HasPrefix(got, "load "+path+": "+want) || strings.Contains(got, "\n") {
		t.Errorf("error\n%s\nwant\nload %s: %s", got, path, want)
	}
}

func encode(t *testing.T, f *File) []byte {
	t.Helper()
	data, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parse(t *testing.T, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func onlyFile(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("%s holds %v, want only %s", dir, entries, name)
	}
}

func umask() fs.FileMode {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return fs.FileMode(mask)
}

func must(n int, _ error) int { return n }
