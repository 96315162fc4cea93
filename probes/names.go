package probes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var names = Probe{
	Name:    "names",
	Promise: "Each name that a claim has can be made as it is, and no two of them are one.",
	Why: "A claim is a name. Where two keys have one name, the work of one is refused for the other's sake, or never done; " +
		"where one key has two names it is done twice. A filesystem that folds case, normalises Unicode or drops what ends a " +
		"name does that to whoever puts keys into names as they are.",
	How: "Every form of name that the engine makes, for two keys and several generations, is made in one directory by an " +
		"exclusive create, and then read back: each must be its maker's. That decides the verdict. Beside it, and without " +
		"effect on the verdict: the longest name by bisection, in bytes and in letters of two, three and four bytes; pairs of " +
		"names that differ in case, in Unicode's composed and decomposed forms or in a dot at the end; names that Windows " +
		"reserves or forbids; and whether a listing has a name as it was made.",
	Control: "one name spelt in two ways, x and ./x, and a name longer than a path may be",
	Broken: "No claim is safe here: two of the engine's names are one name, or one cannot be made. Keep claims on another " +
		"filesystem, or mount this one so that it takes names of 130 bytes in ASCII letters and digits as they are.",
	Refused: "No file can be made here at all: look at the mount's options and at who may write.",
	Ops:     nameOps,
	Run:     runNames,
	Alone:   true,
}

// The kinds of violation, and the class of a filesystem that folds case. Folding breaks no promise: no name of the
// engine differs from another by its case alone.
const (
	namesMerged = "names-merged"
	nameRefused = "name-refused"
	foldsCase   = "case-folding"
)

// A naming is what became of one name in a directory that others had before it.
type naming struct {
	number int // in the corpus
	made   race.Event
	whose  race.Event // the name read, where it was taken or when all were made
}

// judgeNaming rules on one name. Names are files of their own if each has its own number as content.
func judgeNaming(n *naming) ruling {
	name := corpus[n.number]
	switch errno := unix.Errno(n.made.Errno); {
	case errno == unix.EEXIST && n.whose.Errno == 0 && n.whose.Saw < uint64(len(corpus)):
		return ruling{kind: namesMerged, sentence: fmt.Sprintf("%s and %s are one name", quoted(corpus[n.whose.Saw]), quoted(name))}
	case errno == unix.EEXIST, trouble(n.made.Errno):
		return ruling{failed: true}
	case errno != 0:
		return ruling{kind: nameRefused, sentence: fmt.Sprintf("%s cannot be made: %s", quoted(name), errnoName(n.made.Errno))}
	case n.whose.Errno == uint32(unix.ENOENT):
		return ruling{kind: nameRefused, sentence: fmt.Sprintf("%s was made, and is not there", quoted(name))}
	case n.whose.Errno != 0:
		return ruling{failed: true}
	case n.whose.Saw != uint64(n.number) && n.whose.Saw < uint64(len(corpus)):
		return ruling{kind: namesMerged, sentence: fmt.Sprintf("%s and %s are one file, although both were made", quoted(name), quoted(corpus[n.whose.Saw]))}
	case n.whose.Saw != uint64(n.number):
		return ruling{failed: true} // content is another promise's matter
	}
	return ruling{}
}

// quoted is a name as a reader can take it in.
func quoted(name string) string {
	if len(name) > 200 {
		return fmt.Sprintf("a name of %d bytes", len(name))
	}
	return fmt.Sprintf("%+q", name)
}

func runNames(ctx context.Context, b *Bench, f *result.Finding) {
	e, control := newEvidence("names"), newEvidence("names-control")
	err := b.nameAll(ctx, control, 0, []int{0, 1}, 1)
	if err == nil {
		err = b.nameAll(ctx, control, 0, []int{0, 2}, 1)
	}
	for _, who := range b.firsts() {
		if err == nil {
			err = b.nameAll(ctx, e, who, claimNumbers(), 0)
		}
	}
	for _, who := range b.firsts() {
		if err == nil && e.violations == 0 && e.failed == 0 {
			err = b.describeNames(ctx, f, who)
		}
	}
	answer(f, e, control, err)
}

func claimNumbers() []int {
	numbers := make([]int, len(claimNames))
	for i := range numbers {
		numbers[i] = slices.Index(corpus, claimNames[i])
	}
	return numbers
}

// nameAll makes names in one directory, and judges each of them but the first skip.
func (b *Bench) nameAll(ctx context.Context, e *evidence, who int, numbers []int, skip int) error {
	s := b.script(ctx)
	if dir := s.do(who, "name-dir", 0); dir.Errno != 0 {
		e.check(s, ruling{failed: true}, e.op)
		return s.err
	}
	all := make([]naming, len(numbers))
	for i, n := range numbers {
		all[i] = naming{number: n, made: s.do(who, "name-make", uint64(n))}
		if unix.Errno(all[i].made.Errno) == unix.EEXIST {
			all[i].whose = s.do(who, "name-read", uint64(n))
		}
	}
	for i, n := range numbers {
		if all[i].made.Errno == 0 {
			all[i].whose = s.do(who, "name-read", uint64(n))
		}
	}
	s.do(who, "name-clean", 0)
	if s.err != nil {
		return s.err
	}
	for i := range all[skip:] {
		e.check(s.about(&all[skip+i]), judgeNaming(&all[skip+i]), e.op)
	}
	return nil
}

// about is a script with what concerns one name only.
func (s *script) about(n *naming) *script {
	one := &script{ctx: s.ctx, b: s.b, name: s.name}
	one.round.Phase = race.Step
	for i := range s.steps {
		if at := s.steps[i].Invoke; at == n.made.Invoke || at == n.whose.Invoke || s.steps[i].Did == "name-dir" {
			one.steps = append(one.steps, s.steps[i])
		}
	}
	one.round.Events = []race.Event{n.made, n.whose}
	return one
}

// describeNames adds what does not decide: figures and notes, over one route.
func (b *Bench) describeNames(ctx context.Context, f *result.Finding, who int) error {
	for _, part := range []func(context.Context, *result.Finding, int) error{b.measureNames, b.pairNames, b.oddlyNamed} {
		if err := part(ctx, f, who); err != nil {
			return err
		}
	}
	return nil
}

// measureNames finds the longest names.
func (b *Bench) measureNames(ctx context.Context, f *result.Finding, who int) error {
	s := b.script(ctx)
	if s.do(who, "name-dir", 0); s.err != nil {
		return s.err
	}
	for i, l := range letters {
		ev := s.do(who, "name-longest", uint64(i))
		if n := float64(ev.Saw); s.err == nil && ev.Errno == 0 && (f.Figures[l.figure] == 0 || n < f.Figures[l.figure]) {
			f.Figures[l.figure] = n
		}
	}
	s.do(who, "name-clean", 0)
	f.Figures["longest_claim_name_bytes"] = float64(longestClaimName())
	if n := f.Figures["name_max_bytes"]; n > 0 && n < 255 {
		footnote(f, fmt.Sprintf("names of more than %.0f bytes are refused, where most filesystems take 255 (an encrypted one takes less): count the suffixes of lock and temporary files in", n))
	}
	return s.err
}

// pairNames notes which rules make two names one.
func (b *Bench) pairNames(ctx context.Context, f *result.Finding, who int) error {
	merged := map[string][]string{}
	var rules []string
	for _, p := range spellings {
		s := b.script(ctx)
		s.do(who, "name-dir", 0)
		first := s.do(who, "name-make", uint64(slices.Index(corpus, p.a)))
		second := s.do(who, "name-make", uint64(slices.Index(corpus, p.b)))
		s.do(who, "name-clean", 0)
		if s.err != nil {
			return s.err
		}
		if first.Errno == 0 && unix.Errno(second.Errno) == unix.EEXIST {
			if merged[p.rule] == nil {
				rules = append(rules, p.rule)
			}
			merged[p.rule] = append(merged[p.rule], fmt.Sprintf("%+q and %+q", p.a, p.b))
		}
	}
	pairs := 0
	for _, rule := range rules {
		pairs += len(merged[rule])
		footnote(f, fmt.Sprintf("%s here: %s are one name; put no key into a name as it is, but a hash in lower-case hexadecimal", rule, strings.Join(merged[rule], ", ")))
		if rule == foldsASCII || rule == foldsUnicode {
			f.Class = foldsCase
		}
	}
	if pairs > 0 {
		most(f, "pairs_merged_count", float64(pairs))
	}
	return nil
}

// oddlyNamed notes which names are refused, and which are listed as something else.
func (b *Bench) oddlyNamed(ctx context.Context, f *result.Finding, who int) error {
	refused, other := notesBy{}, notesBy{}
	for _, o := range oddNames {
		s, number := b.script(ctx), uint64(slices.Index(corpus, o.name))
		s.do(who, "name-dir", 0)
		made := s.do(who, "name-make", number)
		listed := s.do(who, "name-list", number)
		is := said(b.Line.Words(who))
		s.do(who, "name-clean", 0)
		switch {
		case s.err != nil:
			return s.err
		case trouble(made.Errno):
		case made.Errno != 0:
			refused.add(o.what, fmt.Sprintf("%+q (%s)", o.name, errnoName(made.Errno)))
		case listed.Errno == 0 && listed.Saw == 0:
			other.add(o.what, fmt.Sprintf("%+q as %+q", o.name, is))
		}
	}
	refused.tell(f, "are refused in names")
	other.tell(f, "are listed otherwise than they were made")
	return nil
}

// notesBy are examples by what they are examples of, in the order in which they came.
type notesBy struct {
	order    []string
	examples map[string][]string
}

func (n *notesBy) add(what, example string) {
	if n.examples == nil {
		n.examples = map[string][]string{}
	}
	if n.examples[what] == nil {
		n.order = append(n.order, what)
	}
	n.examples[what] = append(n.examples[what], example)
}

func (n *notesBy) tell(f *result.Finding, verb string) {
	for _, what := range n.order {
		footnote(f, fmt.Sprintf("%s %s: %s", what, verb, strings.Join(n.examples[what], ", ")))
	}
}
