package explore

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimbench/claimbench/engine"
)

// TestModelDoesWhatARealDirectoryDoes runs random operations on both.
func TestModelDoesWhatARealDirectoryDoes(t *testing.T) {
	dirs := map[string]string{"tempdir": t.TempDir()}
	if shm, err := os.MkdirTemp("/dev/shm", "claimbench-model-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(shm) })
		dirs["shm"] = shm
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			for i := range uint64(300) {
				compare(t, dir+fmt.Sprintf("/%d", i), seed+i, 120)
			}
		})
	}
}

func compare(t *testing.T, dir string, seed uint64, steps int) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	real, err := engine.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	w := newWorld(false)
	p := &pair{w: w, model: newModel(w, Perfect, epoch), real: newPerformer(w, real), rng: rand.New(rand.NewPCG(seed, 1))}
	defer p.real.closeAll()
	for i := range steps {
		op := p.draw()
		got, _ := p.model.apply(0, op, 0)
		want := p.real.do(op)
		p.opened(op, got)
		if a, b := p.comparable(got), p.comparable(want); a != b {
			t.Fatalf("seed %d step %d, after %s\n%v %s %s: the model says %+v, the directory %+v",
				seed, i, strings.Join(p.log, ", "), op.Verb, w.paths[op.Path].text, w.paths[op.To].text, a, b)
		}
		p.log = append(p.log, fmt.Sprintf("%v %s %s", op.Verb, w.paths[op.Path].text, w.paths[op.To].text))
	}
}

type pair struct {
	w     *world
	model *model
	real  *performer
	rng   *rand.Rand
	open  []uint8
	verbs map[uint8]Verb
	inos  map[uint64]uint64
	log   []string
}

var someNames = []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "e", "e/a", "e/b", "a/x", "."}

func (p *pair) draw() Op {
	name := func() uint16 { return p.w.path(someNames[p.rng.IntN(len(someNames))]) }
	onName := []Verb{Create, Open, Lstat, Mkdir, Mkdir, Link, Unlink, Overwrite, Rename, Rename, Rmdir, List, OpenLock}
	op := Op{Verb: onName[p.rng.IntN(len(onName))], Path: name(), To: name()}
	if len(p.open) > 0 && p.rng.IntN(3) == 0 {
		op = Op{Handle: p.open[p.rng.IntN(len(p.open))]}
		op.Verb = p.onHandle(op.Handle)
		op.Off, op.Len = int32(p.rng.IntN(6)), int32(1+p.rng.IntN(8))
		if op.Verb == WriteAt {
			op.Data = p.w.data([]byte("claimed"[:p.rng.IntN(8)]))
		}
	}
	return op
}

func (p *pair) onHandle(slot uint8) Verb {
	var verbs []Verb
	switch p.verbs[slot] {
	case Open:
		verbs = []Verb{ReadAt, Fstat, Close}
	case OpenLock:
		verbs = []Verb{TryLock, TryLock, Fstat, Close}
	default:
		verbs = []Verb{WriteAt, WriteAt, Fstat, Touch, Sync, Close}
	}
	return verbs[p.rng.IntN(len(verbs))]
}

func (p *pair) opened(op Op, r Result) {
	if p.verbs == nil {
		p.verbs, p.inos = map[uint8]Verb{}, map[uint64]uint64{}
	}
	switch {
	case op.Verb == Close:
		p.open = slices.DeleteFunc(p.open, func(s uint8) bool { return s == op.Handle })
	case r.Handle != 0:
		p.open = append(p.open, r.Handle)
		p.verbs[r.Handle] = op.Verb
	}
}

// comparable leaves out what a filesystem may choose: times, inode numbers,
// and of a directory the size and the number of links.
func (p *pair) comparable(r Result) Result {
	r.Mtime, r.Ctime, r.Ino = 0, 0, 0
	if r.Kind == uint8(engine.Directory) {
		r.Size, r.Nlink = 0, 0
	}
	return r
}

// TestModelStampsWhatARealDirectoryStamps compares which operations change
// which times of which file.
func TestModelStampsWhatARealDirectoryStamps(t *testing.T) {
	dir := t.TempDir()
	real, err := engine.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	w := newWorld(false)
	m, r := newModel(w, Perfect, epoch), newPerformer(w, real)
	defer r.closeAll()
	ops := []Op{
		{Verb: Mkdir, Path: w.path("d")}, {Verb: Mkdir, Path: w.path("e")},
		{Verb: Create, Path: w.path("d/a")}, {Verb: WriteAt, Handle: 1, Data: w.data([]byte("x"))},
		{Verb: WriteAt, Handle: 1}, {Verb: Touch, Handle: 1}, {Verb: Link, Path: w.path("d/a"), To: w.path("e/b")},
		{Verb: Overwrite, Path: w.path("d/a")}, {Verb: OpenLock, Path: w.path("d/a")}, {Verb: TryLock, Handle: 3},
		{Verb: Rename, Path: w.path("d/a"), To: w.path("d/c")}, {Verb: Unlink, Path: w.path("e/b")},
		{Verb: Open, Path: w.path("d/c")}, {Verb: ReadAt, Handle: 4, Len: 4}, {Verb: Rename, Path: w.path("d"), To: w.path("f")},
		{Verb: Mkdir, Path: w.path("f/g")}, {Verb: Rmdir, Path: w.path("f/g")}, {Verb: Close, Handle: 1},
		{Verb: Rename, Path: w.path("e"), To: w.path("f/e")}, {Verb: Unlink, Path: w.path("f/c")},
	}
	for _, op := range ops {
		time.Sleep(12 * time.Millisecond)
		m.now += int64(time.Second)
		before, beforeReal := times(m, r), realTimes(m, r)
		a, _ := m.apply(0, op, 0)
		b := r.do(op)
		if a.Errno != 0 || b.Errno != 0 {
			t.Fatalf("%v: %v %v", op.Verb, a.Errno, b.Errno)
		}
		for name, now := range times(m, r) {
			then, ok := before[name]
			if !ok {
				continue
			}
			real, realThen := realTimes(m, r)[name], beforeReal[name]
			for i := range now {
				if (now[i] != then[i]) != (real[i] != realThen[i]) {
					t.Errorf("%v %s: time %d of %s: the model changes it %v, the directory %v", op.Verb, w.paths[op.Path].text, i, name, now[i] != then[i], real[i] != realThen[i])
				}
			}
		}
	}
}

func times(m *model, _ *performer) map[string][2]int64 {
	all := map[string][2]int64{}
	for _, name := range m.names() {
		s, _ := m.find(m.w.path(name))
		n := m.node(s.id)
		all[name] = [2]int64{n.mtime, n.ctime}
	}
	return all
}

func realTimes(m *model, r *performer) map[string][2]int64 {
	all := map[string][2]int64{}
	for _, name := range m.names() {
		info := r.do(Op{Verb: Lstat, Path: m.w.path(name)})
		all[name] = [2]int64{info.Mtime, info.Ctime}
	}
	return all
}

func TestErrnoOfReadsErrorsThroughPathErrors(t *testing.T) {
	if got := errnoOf(&os.PathError{Op: "open", Path: "a", Err: syscall.EEXIST}); got != syscall.EEXIST {
		t.Errorf("got %v", got)
	}
	if got := errnoOf(errors.Join(nil, io.EOF)); got != 0 {
		t.Errorf("end of file: got %v", got)
	}
}
