package config

import (
	"encoding"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// Strict decodes the YAML in data into the struct that into points to. A key that the struct does not have, one that
// is set twice and a value of another type are an *Error that names file and line. Beside what a survey's settings
// have it knows structs, pointers to them, lists, maps from strings, booleans, and what reads its own text.
func Strict(file string, data []byte, into any) error {
	src := source{name: file}
	root, err := src.parse(data)
	if err != nil {
		return err
	}
	if root == nil {
		return src.errorf(0, "is empty; expected keys and values")
	}
	if err := src.shape("", root, reflect.TypeOf(into).Elem()); err != nil {
		return err
	}
	if err := root.Decode(into); err != nil {
		return src.errorf(0, "%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return nil
}

// shape compares how a value is written with the type that it is meant for; key is where it stands.
func (s source) shape(key string, n *yaml.Node, t reflect.Type) error {
	if v, ok := reflect.New(t).Interface().(encoding.TextUnmarshaler); ok {
		if err := s.shape(key, n, reflect.TypeFor[string]()); err != nil {
			return err
		}
		if err := v.UnmarshalText([]byte(n.Value)); err != nil {
			return s.errorf(n.Line, "%s: %v", key, err)
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.shape(key, n, t.Elem())
	case reflect.Struct:
		return s.shapeStruct(key, n, t)
	case reflect.Map:
		return s.shapeMap(key, n, t)
	case reflect.Slice:
		return s.shapeList(key, n, t)
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			return s.errorf(n.Line, "%s: expected a text, got %s; in quotes it is one", key, got(n))
		}
		return nil
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
			return s.errorf(n.Line, "%s: expected true or false, got %s", key, got(n))
		}
		return nil
	}
	return s.checkType(key, reflect.New(t).Interface(), n)
}

func (s source) shapeStruct(key string, n *yaml.Node, t reflect.Type) error {
	fields := map[string]reflect.Type{}
	var names []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" && name != "-" {
			fields[name] = t.Field(i).Type
			names = append(names, name)
		}
	}
	return s.pairs(key, n, func(k, v *yaml.Node) error {
		ft, ok := fields[k.Value]
		if !ok {
			return s.errorf(k.Line, "unknown key %.40q%s", k.Value, hint(k.Value, "key", names))
		}
		return s.shape(k.Value, v, ft)
	})
}

func (s source) shapeMap(key string, n *yaml.Node, t reflect.Type) error {
	return s.pairs(key, n, func(k, v *yaml.Node) error { return s.shape(k.Value, v, t.Elem()) })
}

func (s source) shapeList(key string, n *yaml.Node, t reflect.Type) error {
	if n.Kind != yaml.SequenceNode {
		return s.errorf(n.Line, "%s: expected a list such as [a, b], got %s", key, got(n))
	}
	for _, child := range n.Content {
		if err := s.shape(key, child, t.Elem()); err != nil {
			return err
		}
	}
	return nil
}

// pairs hands each key with its value on, the first time that it is set.
func (s source) pairs(key string, n *yaml.Node, each func(k, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return s.errorf(n.Line, "%s: expected keys and values, got %s", key, got(n))
	}
	set := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			return s.errorf(k.Line, "expected a key, got %s", got(k))
		}
		if line, ok := set[k.Value]; ok {
			return s.errorf(k.Line, "key %q is set already in line %d", k.Value, line)
		}
		set[k.Value] = k.Line
		if err := each(k, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}
