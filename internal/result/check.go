package result

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Verdicts is every verdict that a file of version 1 may have.
func Verdicts() []Verdict { return []Verdict{Holds, Broken, Unsupported, Hung, Unproven} }

// Scopes is every scope that a file of version 1 may have, from narrow to wide.
func Scopes() []Scope { return []Scope{ScopeProcess, ScopeMount, ScopeClient, ScopeHost} }

// check returns the first rule of a result file that f breaks, after the JSON Pointer of the place.
func (f *File) check() error {
	if err := checkSchema(f.Schema); err != nil {
		return err
	}
	var first error
	walk(reflect.ValueOf(f), nil, func(v reflect.Value, at []string) {
		if err := checkLeaf(v); err != nil {
			first = cmp.Or(first, fmt.Errorf("/%s %w", strings.Join(at, "/"), err))
		}
	})
	for i, target := range f.Targets {
		for j := range target.Findings {
			if err := target.Findings[j].check(); err != nil {
				first = cmp.Or(first, fmt.Errorf("/targets/%d/findings/%d: %w", i, j, err))
			}
		}
		for j := range target.Bench {
			if err := target.Bench[j].check(); err != nil {
				first = cmp.Or(first, fmt.Errorf("/targets/%d/bench/%d: %w", i, j, err))
			}
		}
	}
	return first
}

func checkLeaf(v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Float64:
		if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("is %v", x)
		}
	case v.Type() == reflect.TypeFor[Verdict]():
		return oneOf(Verdict(v.String()), Verdicts())
	case v.Type() == reflect.TypeFor[Scope]():
		return oneOf(Scope(v.String()), Scopes())
	case v.Type() == reflect.TypeFor[Safety]():
		return oneOf(Safety(v.String()), []Safety{ProtocolSafe, ProtocolUnsafe, ProtocolUnproven})
	}
	return nil
}

func oneOf[T ~string](x T, allowed []T) error {
	if slices.Contains(allowed, x) {
		return nil
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	return fmt.Errorf("is %q, want one of %s", x, strings.Join(words, ", "))
}

func (f *Finding) check() error {
	switch {
	case f.Promise == "":
		return errors.New("promise is empty")
	case f.Rounds < 0, f.Contested < 0, f.Violations < 0:
		return errors.New("rounds, contested or violations is negative")
	case f.Contested > f.Rounds:
		return fmt.Errorf("%d contested of %d rounds", f.Contested, f.Rounds)
	case f.Upper95 != nil && (*f.Upper95 < 0 || *f.Upper95 > 1):
		return fmt.Errorf("upper95 is %v, want a rate", *f.Upper95)
	}
	return nil
}

func (b *Bench) check() error {
	switch {
	case b.Workload == "", b.Protocol == "":
		return errors.New("workload or protocol is empty")
	case b.Contested > b.Trials:
		return fmt.Errorf("%d contested of %d trials", b.Contested, b.Trials)
	case b.UnderFault > b.Trials:
		return fmt.Errorf("%d under a fault of %d trials", b.UnderFault, b.Trials)
	case b.Duplicates > b.Executed:
		return fmt.Errorf("%d duplicates of %d executions", b.Duplicates, b.Executed)
	}
	for _, n := range []int{b.Contenders, b.Keys, b.Trials, b.Void, b.Attempts, b.Expected, b.Executed, b.Duplicates, b.Missed, b.Blocked, b.Overlaps, b.Refused, b.Accepted, b.Illegal, b.Contested, b.UnderFault} {
		if n < 0 {
			return errors.New("a count is negative")
		}
	}
	return nil
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[jsontext.Value]()
)

// walk calls visit with every leaf below v, and the names that lead to it, in the order of the file. What a
// field embeds as raw JSON is one leaf.
func walk(v reflect.Value, at []string, visit func(v reflect.Value, at []string)) {
	switch {
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), at, visit)
		}
	case v.Kind() == reflect.Struct && v.Type() != timeType:
		for i := range v.NumField() {
			walk(v.Field(i), append(at, jsonName(v.Type().Field(i))), visit)
		}
	case v.Kind() == reflect.Slice && v.Type() != rawType:
		for i := range v.Len() {
			walk(v.Index(i), append(at, strconv.Itoa(i)), visit)
		}
	case v.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, key := range keys {
			walk(v.MapIndex(key), append(at, key.String()), visit)
		}
	default:
		visit(v, at)
	}
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
