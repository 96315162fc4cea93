package config

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

type shelf struct {
	Name  string            `yaml:"name"`
	Count int               `yaml:"count"`
	Open  bool              `yaml:"open"`
	Wait  time.Duration     `yaml:"wait"`
	Words []string          `yaml:"words"`
	Rows  [][]string        `yaml:"rows"`
	By    map[string]string `yaml:"by"`
	Sub   *shelf            `yaml:"sub"`
	Not   string            `yaml:"-"`
}

func TestStrictDecodesWhatTheStructHas(t *testing.T) {
	var got shelf
	err := Strict("x.yaml", []byte("name: a\ncount: 3\nopen: true\nwait: 2s\nwords: [a, '']\nrows: [[a], [b, c]]\nby: {k: v}\nsub: {name: b}\n"), &got)
	want := shelf{Name: "a", Count: 3, Open: true, Wait: 2 * time.Second, Words: []string{"a", ""},
		Rows: [][]string{{"a"}, {"b", "c"}}, By: map[string]string{"k": "v"}, Sub: &shelf{Name: "b"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestStrictNamesTheLineOfWhatIsWrong(t *testing.T) {
	for content, want := range map[string]string{
		"":                          `x.yaml: is empty; expected keys and values`,
		"name: a\nnmae: b\n":        `x.yaml:2: unknown key "nmae"; did you mean "name"?`,
		"name: a\nsub:\n  cuont: 1": `x.yaml:3: unknown key "cuont"; did you mean "count"?`,
		"name: a\nname: b\n":        `x.yaml:2: key "name" is set already in line 1`,
		"name: 5\n":                 `x.yaml:1: name: expected a text, got 5; in quotes it is one`,
		"\ncount: many\n":           `x.yaml:2: count: expected a whole number, got the text "many"`,
		"open: 1\n":                 `x.yaml:1: open: expected true or false, got 1`,
		"wait: 3\n":                 `x.yaml:1: wait: expected a duration such as 60s, got 3`,
		"words: a\n":                `x.yaml:1: words: expected a list such as [a, b], got the text "a"`,
		"rows:\n- [a]\n- b\n":       `x.yaml:3: rows: expected a list such as [a, b], got the text "b"`,
		"by: [a]\n":                 `x.yaml:1: by: expected keys and values, got a list`,
		"by: {a: [b]}\n":            `x.yaml:1: a: expected a text, got a list; in quotes it is one`,
		"sub: 5\n":                  `x.yaml:1: sub: expected keys and values, got 5`,
		"name: [a\n":                `x.yaml:2: not valid YAML: did not find expected ',' or ']'`,
		"-: a\n":                    `x.yaml:1: unknown key "-"; the keys are name, count, open, wait, words, rows, by, sub`,
	} {
		err := Strict("x.yaml", []byte(content), new(shelf))
		var fault *Error
		if !errors.As(err, &fault) || err.Error() != want {
			t.Errorf("%q:\n got  %v\n want %s", content, err, want)
		}
	}
}
