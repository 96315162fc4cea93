package result

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSchemaAndTypesAgree(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Type       string
			Required   []string
			Properties map[string]map[string]any
		} `json:"$defs"`
	}
	if err := json.Unmarshal(SchemaJSON, &schema); err != nil {
		t.Fatal(err)
	}
	types := structs()
	for name, def := range schema.Defs {
		if def.Type == "object" && def.Properties != nil && types[name] == nil {
			t.Errorf("the schema has %s, which is no type", name)
		}
	}
	for name, typ := range types {
		def, found := schema.Defs[name]
		if !found {
			t.Errorf("%s is not in the schema", name)
			continue
		}
		var members, required []string
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Name == "Unknown" {
				continue
			}
			members = append(members, jsonName(f))
			if !strings.Contains(f.Tag.Get("json"), ",omit") {
				required = append(required, jsonName(f))
			}
			if got, want := schemaType(def.Properties[jsonName(f)]), goType(f.Type); got != "" && got != want {
				t.Errorf("%s.%s is %s in the schema and %s in Go", name, f.Name, got, want)
			}
		}
		slices.Sort(members)
		if diff := cmp.Diff(members, slices.Sorted(keys(def.Properties))); diff != "" {
			t.Errorf("members of %s (-type +schema):\n%s", name, diff)
		}
		if diff := cmp.Diff(required, def.Required); diff != "" {
			t.Errorf("required members of %s (-type +schema):\n%s", name, diff)
		}
	}
}

func keys(m map[string]map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// schemaType is what goType would call a member of the schema; "" for lists of words.
func schemaType(member map[string]any) string {
	if ref, ok := member["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		switch name {
		case "count":
			return "integer"
		case "texts":
			return "array"
		case "histogram":
			return "object"
		case "scope":
			return "string"
		}
		return name
	}
	kind, _ := member["type"].(string)
	return kind
}

func goType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return goType(t.Elem())
	case reflect.Slice:
		return "array"
	case reflect.Map:
		return "object"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	case reflect.Struct:
		if t == timeType {
			return "string"
		}
		return t.Name()
	}
	return "integer"
}

func TestGoodFilesAreValid(t *testing.T) {
	for _, path := range glob(t, "testdata/good/*.json") {
		data := readFile(t, path)
		if err := Validate(data); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		f, err := Load(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(string(data), string(encode(t, f))); diff != "" {
			t.Errorf("%s changes when it is saved again (-before +after):\n%s", path, diff)
		}
	}
	if err := Validate(encode(t, minimal())); err != nil {
		t.Errorf("a minimal file: %v", err)
	}
}

func TestBadFilesAreNot(t *testing.T) {
	want := map[string]string{
		"count-as-text":   "/targets/0/findings/0/rounds: got string, want integer",
		"foreign-schema":  "/schema: 'fio/v1' does not match pattern",
		"negative-count":  "/targets/0/findings/0/violations: minimum: got -1, want 0",
		"next-version":    "/schema: 'claimbench.result/v2' does not match pattern",
		"no-host":         "/: missing property 'host'",
		"no-scope":        "/targets/0/findings/0/scope: value must be one of",
		"no-verdict":      "/targets/0/findings/0: missing property 'verdict'",
		"not-a-time":      "/started: 'noon' is not valid date-time",
		"null-targets":    "/targets: got null, want array",
		"rate-above-one":  "/targets/0/findings/0/upper95: maximum: got 1.2, want 1",
		"unknown-class":   "/targets/0/findings/0/class: value must be one of",
		"unknown-verdict": "/targets/0/findings/0/verdict: value must be one of",
	}
	paths := glob(t, "testdata/bad/*.json")
	if len(paths) != len(want) {
		t.Errorf("%d bad files, %d expectations", len(paths), len(want))
	}
	for _, path := range paths {
		complaint := want[strings.TrimSuffix(filepath.Base(path), ".json")]
		err := Validate(readFile(t, path))
		if err == nil || complaint == "" || !strings.HasPrefix(err.Error(), "validate result: "+complaint) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %s", path, err, complaint)
		}
	}
}

func TestValidateRefusesWhatIsNotJSON(t *testing.T) {
	for _, text := range []string{"", "{", "no", "{}{}"} {
		if err := Validate([]byte(text)); err == nil {
			t.Errorf("%q is valid", text)
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", pattern, paths, err)
	}
	return paths
}

func TestEveryVerdictAndScopeIsInTheSchema(t *testing.T) {
	data, err := os.ReadFile("testdata/good/ext4.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range Verdicts() {
		for _, s := range Scopes() {
			f, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			f.Targets[0].Scope, f.Targets[0].Findings[0].Verdict = s, v
			if err := Validate(encode(t, f)); err != nil {
				t.Errorf("%s (%s): %v", v, s, err)
			}
		}
	}
}
