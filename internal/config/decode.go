package config

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// An Error says what is wrong in a configuration file, in one line. Line is 0 when it is no line in particular.
type Error struct {
	File string
	Line int
	Msg  string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// A source is a file being decoded.
type source struct {
	name string
	line map[string]int // of each key that the file sets
}

func (s source) errorf(line int, format string, args ...any) error {
	return &Error{File: s.name, Line: line, Msg: fmt.Sprintf(format, args...)}
}

// decode reads data over base. The tree is checked first, because the decoder's own errors span lines and speak
// of Go types, and because it takes 010 for 8 and 2.5 for 2.
func decode(name string, data []byte, base Config) (Config, error) {
	src := source{name: name, line: map[string]int{}}
	root, err := src.parse(data)
	if err != nil {
		return Config{}, err
	}
	if root == nil {
		return base, nil
	}
	if err := src.check(root, base.settings()); err != nil {
		return Config{}, err
	}
	strict := yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(true)
	if err := strict.Decode(&base); err != nil {
		return Config{}, src.errorf(0, "%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	for _, s := range base.settings() {
		if s.wrong != "" {
			return Config{}, src.errorf(src.line[s.key], "%s: %s", s.key, s.wrong)
		}
	}
	return base, nil
}

// parse is the root of the only document in data; nil when there is nothing in it.
func (s source) parse(data []byte) (*yaml.Node, error) {
	var first, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&first)
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, s.syntax(err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, s.errorf(second.Line, "a second document begins; expected one only")
	case err != io.EOF:
		return nil, s.syntax(err)
	}
	if root := first.Content[0]; root.ShortTag() != "!!null" {
		return root, nil
	}
	return nil, nil
}

// syntax is an error of the YAML parser, with its line taken from the text. The parser counts lines from 0 where
// it says that it "did not find" something, and from 1 elsewhere (fail in decode.go of yaml.v3).
func (s source) syntax(err error) error {
	line, msg := 0, strings.TrimPrefix(err.Error(), "yaml: ")
	if at, rest, ok := strings.Cut(strings.TrimPrefix(msg, "line "), ": "); ok {
		if n, err := strconv.Atoi(at); err == nil {
			line, msg = n, rest
		}
	}
	if strings.HasPrefix(msg, "did not find") {
		line++
	}
	return s.errorf(line, "not valid YAML: %s", msg)
}

// check finds the first key in root that is not one of known, or is set twice, or whose value is of another type
// than it should be.
func (s source) check(root *yaml.Node, known []setting) error {
	if root.Kind != yaml.MappingNode {
		return s.errorf(root.Line, "expected keys and values such as budget: 60s, got %s", got(root))
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		setting, err := s.find(key, known)
		if err != nil {
			return err
		}
		if line, ok := s.line[setting.key]; ok {
			return s.errorf(key.Line, "key %q is set already in line %d", setting.key, line)
		}
		s.line[setting.key] = key.Line
		if err := s.checkType(setting.key, setting.value, value); err != nil {
			return err
		}
	}
	return nil
}

func (s source) find(key *yaml.Node, known []setting) (setting, error) {
	if key.Kind != yaml.ScalarNode {
		return setting{}, s.errorf(key.Line, "expected a key, got %s", got(key))
	}
	var names []string
	for _, k := range known {
		if k.key == key.Value {
			return k, nil
		}
		names = append(names, k.key)
	}
	return setting{}, s.errorf(key.Line, "unknown key %.40q%s", key.Value, hint(key.Value, "key", names))
}

// checkType compares how a value is written with the Go value that it is meant for.
func (s source) checkType(key string, want any, n *yaml.Node) error {
	switch want.(type) {
	case *[]int:
		return s.checkList(key, want, new(int), n)
	case *[]string:
		return s.checkList(key, want, new(string), n)
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!str" && leadingZero.MatchString(n.Value) {
		return s.errorf(n.Line, "%s: %s has a leading zero, which some readers of YAML take for octal; write %s",
			key, bare(n.Value), decimal(n.Value))
	}
	if n.Kind != yaml.ScalarNode || !fits(want, n) {
		return s.errorf(n.Line, "%s: expected %s, got %s", key, expected(want), got(n))
	}
	return nil
}

func (s source) checkList(key string, want, element any, n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return s.errorf(n.Line, "%s: expected %s, got %s", key, expected(want), got(n))
	}
	for _, child := range n.Content {
		if err := s.checkType(key, element, child); err != nil {
			return err
		}
	}
	return nil
}
