package explore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimbench/claimbench/internal/testenv"
)

// TestModelDoesWhatARealDirectoryDoes draws sequences of operations of two contenders, does them on the model and on
// a real directory, and looks at all there is after each. A sequence that ends differently is shrunk and printed.
func TestModelDoesWhatARealDirectoryDoes(t *testing.T) {
	for where, base := range map[string]string{"tempdir": os.TempDir(), "shm": "/dev/shm"} {
		for _, about := range themes {
			t.Run(where+" "+about.name, func(t *testing.T) {
				t.Parallel()
				if err := syscall.Access(base, 2); err != nil {
					testenv.Lacks(t, fmt.Sprintf("write in %s: %v", base, err))
				}
				about.check(t, [2]string{base, base})
			})
		}
	}
}

// check draws the sequences of a theme.
func (about theme) check(t *testing.T, routes [2]string) {
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(newTwins(t, routes, about).actions())
	})
}

// A theme is a choice of few verbs and names, so that they meet often.
type theme struct {
	name  string
	verbs []Verb
	names []string
	there []string // directories to begin with
}

var themes = []theme{
	{"tree", []Verb{Create, Mkdir, Mkdir, Rename, Rename, Rename, Rename, Rmdir, Link, Unlink, List}, []string{"a", "d", "d/a", "e", "e/a"}, []string{"d", "e", "e/a"}},
	{"files", []Verb{Create, Open, Overwrite, WriteAt, WriteAt, Touch, Sync, ReadAt, ReadAt, Fstat, Close, Link, Rename, Unlink}, []string{"a", "b", "c"}, nil},
	{"locks", []Verb{Create, OpenLock, TryLock, Fstat, Close, Unlink, End}, []string{"a", "b"}, nil},
	{"everything", []Verb{Create, Open, Lstat, Mkdir, Now, WriteAt, Touch, Fstat, Sync, Close, ReadAt, Link, Unlink, Overwrite, Rename, Rmdir, List, OpenLock, TryLock, End},
		[]string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "e", "e/a", "e/b", "a/x", "d/x/y", "."}, nil},
}

func (p *twins) actions() map[string]func(*rapid.T) {
	act := map[string]func(*rapid.T){"": p.look}
	for i, verb := range p.about.verbs {
		// A verb that is there several times is drawn so much more often.
		act[fmt.Sprintf("%v %d", verb, i)] = func(t *rapid.T) { p.draw(t, verb) }
	}
	return act
}

func (p *twins) draw(t *rapid.T, verb Verb) {
	switch {
	case verb == End:
		p.die(t)
	case slices.Contains(onHandle, verb):
		p.onHandle(t, verb)
	default:
		p.onName(t, verb)
	}
}

func (p *twins) contender(t *rapid.T) int {
	return rapid.SampledFrom(p.alive).Draw(t, "contender")
}

func (p *twins) die(t *rapid.T) {
	if len(p.alive) == 1 {
		t.Skip("the last")
	}
	who := p.contender(t)
	p.model.die(who)
	p.real[who].closeAll()
	p.alive, p.open[who] = slices.DeleteFunc(p.alive, func(n int) bool { return n == who }), nil
	t.Logf("%s dies", letter(who))
}

func (p *twins) onName(t *rapid.T, verb Verb) {
	who, op := p.contender(t), Op{Verb: verb}
	if verb != Now {
		op.Path = p.name(t, "name")
	}
	if verb == Link || verb == Rename {
		op.To = p.name(t, "to")
	}
	p.do(t, who, op)
}

// name prefers names that are there.
func (p *twins) name(t *rapid.T, label string) uint16 {
	there := slices.DeleteFunc(p.model.names(), func(name string) bool { return name == clockDir })
	return p.w.path(rapid.SampledFrom(slices.Concat(there, there, p.about.names)).Draw(t, label))
}

var onHandle = []Verb{WriteAt, Touch, Fstat, Sync, Close, ReadAt, TryLock}

// handleVerbs are those that what was opened so has.
var handleVerbs = map[Verb][]Verb{
	Open:      {ReadAt, Fstat, Close},
	OpenLock:  {TryLock, Fstat, Close},
	Create:    {WriteAt, Fstat, Touch, Sync, Close},
	Overwrite: {WriteAt, Fstat, Touch, Sync, Close},
}

func (p *twins) onHandle(t *rapid.T, verb Verb) {
	var fit []string
	ops := map[string]Op{}
	for who, open := range p.open {
		for _, h := range open {
			if slices.Contains(handleVerbs[h.by], verb) && (verb != Sync || p.syncs(h)) {
				name := fmt.Sprintf("%s%d", letter(who), h.slot)
				fit, ops[name] = append(fit, name), Op{Verb: verb, Handle: h.slot}
			}
		}
	}
	if len(fit) == 0 {
		t.Skip("nothing is open")
	}
	name := rapid.SampledFrom(fit).Draw(t, "handle")
	op := ops[name]
	if verb == WriteAt || verb == ReadAt {
		op.Off = rapid.Int32Range(0, 5).Draw(t, "offset")
		op.Len = rapid.Int32Range(1, 8).Draw(t, "length")
	}
	if verb == WriteAt {
		op.Data = p.w.data([]byte(rapid.SampledFrom([]string{"", "c", "claimed"}).Draw(t, "content")))
	}
	p.do(t, int(name[0]-'A'), op)
}

func TestErrnoOfReadsErrorsThroughPathErrors(t *testing.T) {
	if got := errnoOf(&os.PathError{Op: "open", Path: "a", Err: syscall.EEXIST}); got != syscall.EEXIST {
		t.Errorf("got %v", got)
	}
	if got := errnoOf(errors.Join(nil, io.EOF)); got != 0 {
		t.Errorf("end of file: got %v", got)
	}
}
