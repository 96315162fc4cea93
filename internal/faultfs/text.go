package faultfs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Fault is a kind of fault with its occasions and its measures. Kind.New gives the usual ones.
//
// Its text form is that of mount options: the kind, then what differs from the usual, as in
// excl=lookup-create,delay=10us,p=0.001 or winner=eexist,on=mkdir+link,every=7. Faults that combine follow one another.
type Fault struct {
	Kind  Kind
	On    []Call        // what it befalls of the calls that it can; none is all
	Every int           // it fires on each n-th occasion; 0 is 1
	P     float64       // or with this probability on each; 0 is not by chance
	Delay time.Duration // between the steps of what ought to be one, or until what is done late
	For   time.Duration // how long something is cached; 0 is for ever
	Skew  time.Duration // of a clock
	Drift time.Duration // of a clock, in each second
}

// measures are the durations of a fault, by their keys.
var measures = []struct {
	key string
	of  func(*Fault) *time.Duration
}{
	{"delay", func(f *Fault) *time.Duration { return &f.Delay }},
	{"for", func(f *Fault) *time.Duration { return &f.For }},
	{"skew", func(f *Fault) *time.Duration { return &f.Skew }},
	{"drift", func(f *Fault) *time.Duration { return &f.Drift }},
}

func (f Fault) String() string {
	parts, normal := []string{f.Kind.String()}, usual[f.Kind]
	if len(f.On) > 0 {
		var on []string
		for _, c := range f.On {
			on = append(on, c.String())
		}
		parts = append(parts, "on="+strings.Join(on, "+"))
	}
	if f.Every != 0 {
		parts = append(parts, "every="+strconv.Itoa(f.Every))
	}
	if f.P != 0 {
		parts = append(parts, "p="+strconv.FormatFloat(f.P, 'g', -1, 64))
	}
	for _, m := range measures {
		if d := *m.of(&f); d != *m.of(&normal) {
			parts = append(parts, m.key+"="+d.String())
		}
	}
	return strings.Join(parts, ",")
}

// Text is the text form of faults that combine.
func Text(faults []Fault) string {
	var parts []string
	for _, f := range faults {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, ",")
}

// Parse reads that form. The empty text is no fault.
func Parse(text string) (faults []Fault, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		if k := slices.Index(kinds[:], part); k >= 0 {
			faults = append(faults, Kind(k).New())
			continue
		}
		if len(faults) == 0 {
			return nil, fmt.Errorf("fault %q: the first part must be a kind, such as %s; the kinds are %s", part, kinds[0], strings.Join(kinds[:], ", "))
		}
		if err := faults[len(faults)-1].set(part); err != nil {
			return nil, fmt.Errorf("fault %q: %w", part, err)
		}
	}
	return faults, nil
}

// set takes a part that is not a kind.
func (f *Fault) set(part string) (err error) {
	key, value, _ := strings.Cut(part, "=")
	switch key {
	case "on":
		for name := range strings.SplitSeq(value, "+") {
			c := slices.Index(calls[:], name)
			if c < 0 {
				return fmt.Errorf("no call is named %q; the calls are %s", name, strings.Join(calls[:], ", "))
			}
			f.On = append(f.On, Call(c))
		}
		return nil
	case "every":
		f.Every, err = strconv.Atoi(value)
		if err == nil && f.Every < 1 {
			err = errors.New("must be at least 1")
		}
		return err
	case "p":
		f.P, err = strconv.ParseFloat(value, 64)
		if err == nil && !(f.P > 0 && f.P <= 1) {
			err = errors.New("must be above 0, and 1 at most")
		}
		return err
	}
	for _, m := range measures {
		if key == m.key {
			*m.of(f), err = time.ParseDuration(value)
			return err
		}
	}
	return errors.New("is neither a kind nor one of on, every, p, delay, for, skew, drift")
}
