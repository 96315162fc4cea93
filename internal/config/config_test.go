package config

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimbench/claimbench/configs"
)

func quick(t *testing.T) Config {
	t.Helper()
	c, err := Named("quick")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "my.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestQuickIsTheSurveyOfAMinute(t *testing.T) {
	want := Config{
		Budget: time.Minute, Contenders: []int{2, 8}, Rounds: 20_000, ProbeTime: time.Second, ScanShare: 0.25,
		ColdRounds: 64, ColdPause: time.Millisecond, HangAfter: 5 * time.Second, ReleaseWait: 3 * time.Second, MaxWait: 5 * time.Second,
		MinContested: 300, Probes: []string{}, Workloads: []string{"forty", "storm", "forced", "deaths"}, Trials: 20,
		DeathsOf: []string{"excl", "generations"}, Require: []string{"generations"}, Disposable: []string{}, Seed: 0,
	}
	if got := quick(t); !reflect.DeepEqual(got, want) {
		t.Errorf("quick is %+v\nwant %+v", got, want)
	}
}

func TestFullIsTheSurveyOfNineMinutes(t *testing.T) {
	want := quick(t)
	want.Budget, want.Contenders, want.Rounds, want.ProbeTime = 9*time.Minute, []int{2, 4, 8, 16, 40}, 200_000, 20*time.Second
	want.ColdRounds, want.HangAfter, want.ReleaseWait, want.MaxWait = 1000, 30*time.Second, 90*time.Second, time.Minute
	want.Workloads = []string{"forty", "storm", "takeover", "forced", "deaths", "stall", "unrelated"}
	want.Trials, want.DeathsOf = 100, []string{"excl", "flock-reread", "generations", "generations-linked", "quarantine", "flock-held"}
	got, err := Named("full")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("full is %+v, %v\nwant %+v", got, err, want)
	}
}

func TestNamedKnowsOnlyTheBuiltInSurveys(t *testing.T) {
	for name, want := range map[string]string{
		"fulll":     `unknown survey "fulll"; did you mean "full"?`,
		"soak":      `unknown survey "soak"; the surveys are quick, full`,
		"":          `unknown survey ""; the surveys are quick, full`,
		"../config": `unknown survey "../config"; the surveys are quick, full`,
	} {
		if c, err := Named(name); err == nil || err.Error() != want || !reflect.DeepEqual(c, Config{}) {
			t.Errorf("Named(%q) = %+v, %v; want %s", name, c, err, want)
		}
	}
}

func TestEveryBuiltInSurveyIsNamed(t *testing.T) {
	files, err := configs.Files.ReadDir(".")
	if err != nil || len(files) != len(builtin()) {
		t.Fatalf("%d files, %v; %d names", len(files), err, len(builtin()))
	}
	for _, f := range files {
		if _, err := Named(strings.TrimSuffix(f.Name(), ".yaml")); err != nil {
			t.Error(err)
		}
	}
}

var keyLine = regexp.MustCompile(`^([a-z_]+): \S`)

// keys is the keys that a built-in file sets, in its order; a key that is not under a comment of its own fails.
func keys(t *testing.T, file string) (list []string) {
	t.Helper()
	data, err := configs.Files.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		if m := keyLine.FindStringSubmatch(line); m != nil {
			list = append(list, m[1])
			if !strings.HasPrefix(lines[i-1], "# ") {
				t.Errorf("%s:%d: %s has no comment above it", file, i+1, m[1])
			}
		}
	}
	return list
}

func TestQuickSetsEveryKeyInTheOrderOfTheTable(t *testing.T) {
	var table, tags []string
	for _, s := range new(Config).settings() {
		table = append(table, s.key)
	}
	for f := range reflect.TypeFor[Config]().Fields() {
		tags = append(tags, f.Tag.Get("yaml"))
	}
	if file := keys(t, "quick.yaml"); !slices.Equal(file, table) || !slices.Equal(tags, table) {
		t.Errorf("quick.yaml has %v\nthe table %v\nthe struct %v", file, table, tags)
	}
}

func TestEachSettingPointsAtItsField(t *testing.T) {
	c := new(Config)
	v := reflect.ValueOf(c).Elem()
	for i, s := range c.settings() {
		if s.value != v.Field(i).Addr().Interface() {
			t.Errorf("%s points elsewhere", s.key)
		}
	}
}

func TestFullSaysOnlyWhatIsDifferent(t *testing.T) {
	full, err := Named("full")
	if err != nil {
		t.Fatal(err)
	}
	var differ []string
	for i, condition := range full.Conditions() {
		if condition != quick(t).Conditions()[i] {
			key, _, _ := strings.Cut(condition, "=")
			differ = append(differ, key)
		}
	}
	if got := keys(t, "full.yaml"); !slices.Equal(got, differ) {
		t.Errorf("full.yaml sets %v; different are %v", got, differ)
	}
}

func TestLoadReadsOverQuick(t *testing.T) {
	for content, change := range map[string]func(*Config){
		"":                 func(*Config) {},
		"\n# nothing\n":    func(*Config) {},
		"---\n":            func(*Config) {},
		"---\n...\n":       func(*Config) {},
		"{}":               func(*Config) {},
		"\ufeffseed: 5\n":  func(c *Config) { c.Seed = 5 },
		"rounds: 7\n":      func(c *Config) { c.Rounds = 7 },
		"rounds: 20_001\n": func(c *Config) { c.Rounds = 20_001 },
		"---\nbudget: 1m30s\nseed: 18446744073709551615\n...\n": func(c *Config) { c.Budget, c.Seed = 90*time.Second, math.MaxUint64 },
		"contenders:\n  - 64\n  - 2\n":                          func(c *Config) { c.Contenders = []int{64, 2} },
		"probes: [flock, \"mkdir\"]\nrequire: []\n":             func(c *Config) { c.Probes, c.Require = []string{"flock", "mkdir"}, []string{} },
		"{\"scan_share\": 0, \"cold_rounds\": 0}":               func(c *Config) { c.ScanShare, c.ColdRounds = 0, 0 },
		"scan_share: 9e-1\ncold_pause: '1us'\n":                 func(c *Config) { c.ScanShare, c.ColdPause = 0.9, time.Microsecond },
		"rounds: 1\nmin_contested: 1\nhang_after: 1ns\n":        func(c *Config) { c.Rounds, c.MinContested, c.HangAfter = 1, 1, 1 },
	} {
		got, err := Load(write(t, content))
		want := quick(t)
		change(&want)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v\nwant %+v", content, got, err, want)
		}
	}
}

func TestLoadNamesFileLineAndFault(t *testing.T) {
	const all = "the keys are budget, contenders, rounds, probe_time, scan_share, cold_rounds, cold_pause, " +
		"hang_after, release_wait, max_wait, min_contested, probes, workloads, trials, deaths_of, require, disposable, seed"
	const octal = "has a leading zero, which some readers of YAML take for octal; write"
	for _, c := range []struct{ content, want string }{
		// keys
		{"\n\n# a comment\nbudget: 1s\n\n\ncontendres: [2]\n", `7: unknown key "contendres"; did you mean "contenders"?`},
		{"Rounds: 5\n", `1: unknown key "Rounds"; did you mean "rounds"?`},
		{"cold-rounds: 5\n", `1: unknown key "cold-rounds"; did you mean "cold_rounds"?`},
		{"attempts: 5\n", `1: unknown key "attempts"; ` + all},
		{"1: 5\n", `1: unknown key "1"; ` + all},
		{"~: 5\n", `1: unknown key "~"; ` + all},
		{"\"a\\nb\": 5\n", `1: unknown key "a\nb"; ` + all},
		{"{? [budget] : 1s}\n", `1: expected a key, got a list`},
		{strings.Repeat("x", 1000) + ": 5\n", `1: unknown key "` + strings.Repeat("x", 40) + `"; ` + all},
		{"<<: {rounds: 5}\n", `1: unknown key "<<"; ` + all},
		{"rounds: 5\nseed: 1\nrounds: 5\n", `3: key "rounds" is set already in line 1`},
		{"rounds: 5\n'rounds': 6\n", `2: key "rounds" is set already in line 1`},
		// documents
		{"rounds: 5\n---\nseed: 1\n", `2: a second document begins; expected one only`},
		{"rounds: 5\n---\n", `2: a second document begins; expected one only`},
		{"rounds: 5\n...\n---\n---\n", `3: a second document begins; expected one only`},
		{"- rounds\n", `1: expected keys and values such as budget: 60s, got a list`},
		{"\nrounds 5\n", `2: expected keys and values such as budget: 60s, got the text "rounds 5"`},
		{"42\n", `1: expected keys and values such as budget: 60s, got 42`},
		// syntax
		{"rounds: [2\nseed: 1\n", `2: not valid YAML: did not find expected ',' or ']'`},
		{"seed: 1\nrounds: }\n", `2: not valid YAML: did not find expected node content`},
		{"seed: 1\n- rounds\n", `2: not valid YAML: did not find expected key`},
		{"seed: 1\n\trounds: 1\n", `2: not valid YAML: found a tab character that violates indentation`},
		{"seed: 1\nrounds: 1: 2\n", `2: not valid YAML: mapping values are not allowed in this context`},
		{"seed: 1\nrounds: \"5\n", `2: not valid YAML: found unexpected end of stream`},
		{"seed: 1\n---\nrounds: }\n", `3: not valid YAML: did not find expected node content`},
		{"seed: *other\n", ` not valid YAML: unknown anchor 'other' referenced`},
		{"seed: 1\n\x00", ` not valid YAML: control characters are not allowed`},
		{"seed: \xc3\x28\n", ` not valid YAML: invalid trailing UTF-8 octet`},
		// durations
		{"seed: 1\nbudget: 60\n", `2: budget: expected a duration such as 60s, got 60`},
		{"budget: \"60\"\n", `1: budget: expected a duration such as 60s, got the text "60"`},
		{"budget: 60 s\n", `1: budget: expected a duration such as 60s, got the text "60 s"`},
		{"budget: 1:30\n", `1: budget: expected a duration such as 60s, got the text "1:30"`},
		{"budget:\n", `1: budget: expected a duration such as 60s, got nothing`},
		{"budget: [60s]\n", `1: budget: expected a duration such as 60s, got a list`},
		{"budget: {s: 60}\n", `1: budget: expected a duration such as 60s, got keys and values`},
		{"budget: true\n", `1: budget: expected a duration such as 60s, got true`},
		{"budget: !!binary NjBz\n", `1: budget: expected a duration such as 60s, got NjBz`},
		{"budget: &a 60s\nprobe_time: *a\n", `2: probe_time: expected a duration such as 60s, got an alias`},
		{"budget: 0\n", `1: budget: expected a duration such as 60s, got 0`},
		{"budget: 060\n", `1: budget: 060 ` + octal + ` 60`},
		// numbers
		{"rounds: many\n", `1: rounds: expected a whole number, got the text "many"`},
		{"rounds: \"5\"\n", `1: rounds: expected a whole number, got the text "5"`},
		{"rounds: 2.5\n", `1: rounds: expected a whole number, got 2.5`},
		{"rounds: 1e3\n", `1: rounds: expected a whole number, got 1e3`},
		{"rounds: 0x10\n", `1: rounds: expected a whole number, got 0x10`},
		{"rounds: 0o10\n", `1: rounds: expected a whole number, got 0o10`},
		{"rounds: 0b10\n", `1: rounds: expected a whole number, got 0b10`},
		{"rounds: 99999999999999999999\n", `1: rounds: expected a whole number, got 99999999999999999999`},
		{"rounds: 9223372036854775808\n", `1: rounds: expected a whole number, got 9223372036854775808`},
		{"rounds: ~\n", `1: rounds: expected a whole number, got nothing`},
		{"rounds: !!int five\n", `1: rounds: expected a whole number, got five`},
		{"rounds: !!int \"a\\nb\"\n", `1: rounds: expected a whole number, got a\nb`},
		{"rounds: " + strings.Repeat("x", 1000) + "\n", `1: rounds: expected a whole number, got the text "` + strings.Repeat("x", 40) + `"`},
		{"rounds: 010\n", `1: rounds: 010 ` + octal + ` 10`},
		{"rounds: 08\n", `1: rounds: 08 ` + octal + ` 8`},
		{"rounds: -010\n", `1: rounds: -010 ` + octal + ` -10`},
		{"rounds: +0_10\n", `1: rounds: +0_10 ` + octal + ` 10`},
		{"rounds: 000\n", `1: rounds: 000 ` + octal + ` 0`},
		{"scan_share: 00\n", `1: scan_share: 00 ` + octal + ` 0`},
		{"seed: 010\n", `1: seed: 010 ` + octal + ` 10`},
		{"rounds: \"010\"\n", `1: rounds: expected a whole number, got the text "010"`},
		{"rounds: &010 5\nseed: *010\n", `2: seed: expected a whole number, 0 or more, got an alias`},
		{"rounds: &5 5\nseed: *5\n", `2: seed: expected a whole number, 0 or more, got an alias`},
		{"scan_share:\n", `1: scan_share: expected a number, got nothing`},
		{"seed: -1\n", `1: seed: expected a whole number, 0 or more, got -1`},
		{"seed: 18446744073709551616\n", `1: seed: expected a whole number, 0 or more, got 18446744073709551616`},
		{"scan_share: 25%\n", `1: scan_share: expected a number, got the text "25%"`},
		{"scan_share: !!float x\n", `1: scan_share: expected a number, got x`},
		{"scan_share: no\n", `1: scan_share: expected a number, got the text "no"`},
		// lists
		{"contenders: 8\n", `1: contenders: expected a list of numbers such as [2, 8], got 8`},
		{"contenders: 010\n", `1: contenders: expected a list of numbers such as [2, 8], got 010`},
		{"contenders:\n", `1: contenders: expected a list of numbers such as [2, 8], got nothing`},
		{"contenders:\n- 2\n- many\n", `3: contenders: expected a whole number, got the text "many"`},
		{"contenders:\n- 2\n- 010\n", `3: contenders: 010 ` + octal + ` 10`},
		{"contenders: [[2]]\n", `1: contenders: expected a whole number, got a list`},
		{"contenders: &a [*a]\n", `1: contenders: expected a whole number, got an alias`},
		{"probes: flock\n", `1: probes: expected a list of names such as [flock, mkdir], got the text "flock"`},
		{"probes:\n# - flock\n", `1: probes: expected a list of names such as [flock, mkdir], got nothing`},
		{"require: [flock, 5]\n", `1: require: expected a name, got 5`},
		{"require: ['']\n", `1: require: expected a name, got the text ""`},
		{"require: [~]\n", `1: require: expected a name, got nothing`},
		// ranges
		{"seed: 1\nbudget: 0s\n", `2: budget: 0s is out of range; expected more than 0s`},
		{"budget: -1m\n", `1: budget: -1m0s is out of range; expected more than 0s`},
		{"probe_time: 0s\n", `1: probe_time: 0s is out of range; expected more than 0s`},
		{"cold_pause: 0s\n", `1: cold_pause: 0s is out of range; expected more than 0s`},
		{"hang_after: -1ns\n", `1: hang_after: -1ns is out of range; expected more than 0s`},
		{"release_wait: 0ms\n", `1: release_wait: 0s is out of range; expected more than 0s`},
		{"max_wait: 0s\n", `1: max_wait: 0s is out of range; expected more than 0s`},
		{"contenders: [2, 1]\n", `1: contenders: 1 is out of range; expected 2 to 64`},
		{"seed: 1\ncontenders: [65]\n", `2: contenders: 65 is out of range; expected 2 to 64`},
		{"contenders: []\n", `1: contenders: the list is empty; expected at least one number from 2 to 64`},
		{"contenders: [2, 8, 2]\n", `1: contenders: 2 is in the list twice`},
		{"rounds: 0\n", `1: rounds: 0 is out of range; expected at least 1`},
		{"cold_rounds: -1\n", `1: cold_rounds: -1 is out of range; expected at least 0`},
		{"min_contested: 0\n", `1: min_contested: 0 is out of range; expected at least 1`},
		{"scan_share: 0.91\n", `1: scan_share: 0.91 is out of range; expected 0 to 0.9`},
		{"scan_share: -0.1\n", `1: scan_share: -0.1 is out of range; expected 0 to 0.9`},
		{"scan_share: .nan\n", `1: scan_share: NaN is out of range; expected 0 to 0.9`},
		{"scan_share: .inf\n", `1: scan_share: +Inf is out of range; expected 0 to 0.9`},
		{"probes: [flock, mkdir, flock]\n", `1: probes: flock is in the list twice`},
		{"require: [flock, flock]\n", `1: require: flock is in the list twice`},
		{"disposable: [scratch]\n", `1: disposable: "scratch" is not a path from the root; expected one such as /mnt/scratch`},
		{"disposable: [/mnt/a, /mnt/a]\n", `1: disposable: /mnt/a is in the list twice`},
		// size
		{"# " + strings.Repeat("x", maxBytes), ` larger than 1 MiB, so not a survey`},
	} {
		path := write(t, c.content)
		got, err := Load(path)
		var fault *Error
		if !errors.As(err, &fault) || err.Error() != path+":"+c.want || !reflect.DeepEqual(got, Config{}) {
			t.Errorf("%.80q:\n got  %v\n want %s:%s", c.content, err, path, c.want)
			continue
		}
		if fault.File != path {
			t.Errorf("%.80q: the error's file is %s", c.content, fault.File)
		}
	}
}

func TestLoadOfWhatIsNoFileIsOneLine(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "none.yaml")
	_, err := Load(missing)
	if want := "open " + missing + ": no such file or directory; the built-in surveys are quick and full"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v lost its errno", err)
	}
	_, err = Load(dir)
	if want := "read " + dir + ": is a directory"; err == nil || err.Error() != want || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := Load(filepath.Join(write(t, ""), "below")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v, want ENOTDIR", err)
	}
}

func TestValidateFindsWhatWasChangedAfterwards(t *testing.T) {
	c := quick(t)
	if err := c.Validate(); err != nil {
		t.Errorf("quick: %v", err)
	}
	c.Budget = -time.Second
	if err, want := c.Validate(), "budget: -1s is out of range; expected more than 0s"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := (Config{}).Validate(); err == nil {
		t.Error("the zero Config is valid")
	}
}

func TestConditionsAreInTheOrderOfTheFile(t *testing.T) {
	c := quick(t)
	c.Probes = []string{"flock", "mkdir"}
	want := []string{
		"budget=1m0s", "contenders=2,8", "rounds=20000", "probe_time=1s", "scan_share=0.25", "cold_rounds=64",
		"cold_pause=1ms", "hang_after=5s", "release_wait=3s", "max_wait=5s", "min_contested=300", "probes=flock,mkdir",
		"workloads=forty,storm,forced,deaths", "trials=20", "deaths_of=excl,generations", "require=generations", "disposable=", "seed=0",
	}
	if got := c.Conditions(); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestLoadedSurveysShareNothing(t *testing.T) {
	a := quick(t)
	a.Contenders[0], a.Require[0] = 99, "spoilt"
	if b := quick(t); b.Contenders[0] != 2 || b.Require[0] != "generations" {
		t.Errorf("a second survey is %+v", b)
	}
}

func FuzzDecodeRefusesOrIsValid(f *testing.F) {
	for _, s := range []string{"", "budget: 60s\nrounds: 010", "contenders: &a [2, *a]", "? [x]\n: {y: !!int z}", "a: |\n b\n---\n", "%YAML 1.1\n---\nseed: 1", "seed: 1 # c\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		base, err := Named("quick")
		if err != nil {
			t.Fatal(err)
		}
		c, err := decode("f.yaml", data, base)
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Errorf("decoded, and not valid: %v", err)
			}
			return
		}
		if msg := err.Error(); strings.ContainsAny(msg, "\n\r") || !strings.HasPrefix(msg, "f.yaml:") {
			t.Errorf("not one line with the file's name: %q", msg)
		}
	})
}
