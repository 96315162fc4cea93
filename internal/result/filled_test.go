package result

import (
	"fmt"
	"reflect"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// filled is a file in which every member of every type is present and no two strings are the same.
func filled() *File {
	f := new(File)
	n := 0
	fill(reflect.ValueOf(f).Elem(), &n)
	f.Schema = Schema
	return f
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		fillStruct(v, n)
	case reflect.Slice:
		if v.Type() == rawType {
			v.Set(reflect.ValueOf(jsontext.Value(fmt.Sprintf(`{"later":"secret%d"}`, *n))))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, n)
		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", *n)), value)
	case reflect.String:
		v.SetString(fmt.Sprint("secret", *n))
		switch v.Type() {
		case reflect.TypeFor[Verdict]():
			v.SetString(string(Broken))
		case reflect.TypeFor[Scope]():
			v.SetString(string(ScopeClient))
		case reflect.TypeFor[Safety]():
			v.SetString(string(ProtocolUnsafe))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1 / float64(*n))
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(1<<uint(v.Type().Bits()-1) + uint64(*n))
	default:
		panic("a kind that the result file did not have: " + v.Kind().String())
	}
}

func fillStruct(v reflect.Value, n *int) {
	if v.Type() == timeType {
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)))
		return
	}
	for i := range v.NumField() {
		fill(v.Field(i), n)
	}
}

// structs is every struct type of the package that a file can hold.
func structs() map[string]reflect.Type {
	found := map[string]reflect.Type{}
	collect(reflect.TypeFor[File](), found)
	return found
}

func collect(t reflect.Type, found map[string]reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(t.Elem(), found)
	case reflect.Struct:
		if t == timeType || found[t.Name()] != nil {
			return
		}
		found[t.Name()] = t
		for i := range t.NumField() {
			collect(t.Field(i).Type, found)
		}
	}
}
