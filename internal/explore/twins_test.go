package explore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/claimbench/claimbench/engine"
)

// Twins are a model and a real directory that were empty at the same time and went through the same.
type twins struct {
	about theme
	w     *world
	model *model
	dirs  [2]string // the directory over each contender's route: the same path, or over two mounts
	turn  int       // the route over which the next look is
	real  [2]*performer
	open  [2][]opened
	alive []int

	// The moments at which time went by: what was stamped before one is older than it on the clock of that side, and
	// what was stamped after it is not.
	moments, realMoments []int64
	ruler                string // a file that is touched to read the clock of the real filesystem

	fuse    bool
	counted bool // a real directory's number of links counts the directories in it; not so on Btrfs and overlayfs
}

type opened struct {
	slot uint8
	by   Verb
	dir  uint16 // the directory of the name it was opened by
	was  uint32 // that directory's node
}

// newTwins makes the real directory in what the routes lead to, one for each contender.
func newTwins(t *rapid.T, routes [2]string, about theme) *twins {
	dir, err := os.MkdirTemp(routes[0], "claimbench-model-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	p := &twins{fuse: fs.Type == unix.FUSE_SUPER_MAGIC, about: about, w: newWorld(false), ruler: filepath.Join(dir, "ruler"), alive: []int{0, 1}}
	for who, route := range routes {
		p.dirs[who] = filepath.Join(route, filepath.Base(dir), "claims")
	}
	if err := errors.Join(os.Mkdir(p.dirs[0], 0o777), os.WriteFile(p.ruler, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	p.model = newModel(p.w, Perfect, epoch)
	p.model.apply(0, Op{Verb: Mkdir, Path: p.w.path(clockDir)}, 0)
	for who := range p.real {
		d, err := engine.OpenDir(p.dirs[who])
		if err != nil {
			t.Fatal(err)
		}
		p.real[who] = newPerformer(p.w, d)
		t.Cleanup(func() { p.real[who].closeAll(); d.Close() })
		if r := p.real[who].do(Op{Verb: Now}); r.Errno != 0 {
			t.Fatalf("read the clock: %v", r.Errno)
		}
	}
	p.counted = p.real[0].do(Op{Verb: Lstat, Path: p.w.path(".")}).Nlink == 3
	for _, name := range about.there {
		p.do(t, 0, Op{Verb: Mkdir, Path: p.w.path(name)})
	}
	return p
}

// do does an operation on both sides, now or after a while, and compares what they answer.
func (p *twins) do(t *rapid.T, who int, op Op) {
	if rapid.SampledFrom([]bool{false, false, true}).Draw(t, "time goes by") {
		p.wait(t)
	}
	got, _ := p.model.apply(who, op, 0)
	want := p.real[who].do(op)
	// FUSE tells its server of a close afterwards, so that for a moment the lock of a closed file is still held.
	for began := time.Now(); p.fuse && op.Verb == TryLock && got.Errno == 0 && want.Errno == syscall.EWOULDBLOCK && time.Since(began) < 5*time.Second; {
		time.Sleep(time.Millisecond)
		want = p.real[who].do(op)
	}
	t.Logf("%s: %s", p.words(who, op), outcome(want.Errno))
	if got.Errno != want.Errno {
		t.Fatalf("%s: the model answers %s, the directory %s", p.words(who, op), outcome(got.Errno), outcome(want.Errno))
	}
	if diff := cmp.Diff(p.answer(want, p.realMoments), p.answer(got, p.moments)); diff != "" {
		t.Fatalf("%s: the directory (-) and the model (+) answer\n%s", p.words(who, op), diff)
	}
	switch {
	case op.Verb == Close:
		p.open[who] = slices.DeleteFunc(p.open[who], func(h opened) bool { return h.slot == op.Handle })
	case got.Handle != 0:
		dir := p.w.path(filepath.Dir(p.w.paths[op.Path].text))
		s, _ := p.model.find(dir)
		p.open[who] = append(p.open[who], opened{got.Handle, op.Verb, dir, s.id})
	}
}

// syncs says whether a sync of what is open goes alike. The real one syncs the directory of the name as well, by name,
// and says ENOENT where that has moved; the model keeps no names of what is open.
func (p *twins) syncs(h opened) bool {
	s, errno := p.model.find(h.dir)
	return errno == 0 && s.there() && s.id == h.was
}

func (p *twins) words(who int, op Op) string {
	text := letter(who) + " " + op.Verb.String()
	switch {
	case op.Handle != 0:
		return fmt.Sprintf("%s its handle %d", text, op.Handle)
	case op.Verb == Link || op.Verb == Rename:
		return text + " " + p.w.paths[op.Path].text + " to " + p.w.paths[op.To].text
	case op.Verb == Now:
		return text
	default:
		return text + " " + p.w.paths[op.Path].text
	}
}

func outcome(e syscall.Errno) string {
	if e == 0 {
		return "done"
	}
	return errnoName(e)
}

// answer turns times into the number of moments before them, and leaves out what a filesystem may choose: inode
// numbers, and what a directory's size and number of links are.
func (p *twins) answer(r Result, moments []int64) Result {
	r.Time, r.Mtime, r.Ctime, r.Ino = age(r.Time, moments), age(r.Mtime, moments), age(r.Ctime, moments), 0
	if r.Kind == uint8(engine.Directory) {
		r.Size = 0
		if !p.counted {
			r.Nlink = 0
		}
	}
	return r
}

func age(at int64, moments []int64) int64 {
	n, exact := slices.BinarySearch(moments, at)
	if exact {
		n++
	}
	return int64(n)
}

// wait lets a granule of the real clock go by, so that the times on either side of it differ. What the first reading
// gives is not older than any time stamped so far.
func (p *twins) wait(t *rapid.T) {
	p.model.now += int64(time.Second)
	p.moments = append(p.moments, p.model.now)
	first := p.measure(t)
	now := first
	for began := time.Now(); now == first; now = p.measure(t) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%s: the time of a touched file stands still", p.ruler)
		}
		time.Sleep(100 * time.Microsecond)
	}
	p.realMoments = append(p.realMoments, now)
	t.Log("time goes by")
}

func (p *twins) measure(t *rapid.T) int64 {
	f, err := os.OpenFile(p.ruler, os.O_WRONLY|os.O_TRUNC, 0) // truncation stamps a file, even an empty one
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime().UnixNano()
}

// A view is a file as it can be seen from outside.
type view struct {
	Result
	Content string
	Same    string // the first of the names and handles that stand for this file
}

// look compares all that there is on both sides: every name, and what is open whether it has a name or not.
func (p *twins) look(t *rapid.T) {
	p.turn = 1 - p.turn
	names, err := namesIn(p.dirs[p.turn])
	if err != nil {
		t.Fatal(err)
	}
	if model := p.model.names(); !slices.Equal(model, names) {
		t.Fatalf("the model has the names %q, the directory %q", model, names)
	}
	model, real := map[string]view{}, map[string]view{}
	inos, realInos := map[uint64]string{}, map[uint64]string{}
	see := func(name string, who int, op Op, content, realContent string) {
		r, _ := p.model.apply(who, op, 0)
		model[name] = p.view(name, r, content, p.moments, inos)
		real[name] = p.view(name, p.real[who].do(op), realContent, p.realMoments, realInos)
	}
	for _, name := range append(names, ".") {
		content, realContent := p.contents(t, name)
		see(name, p.turn, Op{Verb: Lstat, Path: p.w.path(name)}, content, realContent)
	}
	for who, open := range p.open {
		for _, h := range open {
			see(fmt.Sprintf("handle %s%d", letter(who), h.slot), who, Op{Verb: Fstat, Handle: h.slot}, "", "")
		}
	}
	if diff := cmp.Diff(real, model); diff != "" {
		t.Fatalf("the directory (-) and the model (+) differ in what is there:\n%s", diff)
	}
}

func (p *twins) view(name string, r Result, content string, moments []int64, seen map[uint64]string) view {
	if _, ok := seen[r.Ino]; !ok {
		seen[r.Ino] = name
	}
	return view{p.answer(r, moments), content, seen[r.Ino]}
}

// namesIn are the names in a real directory, without the files that its clock is read by.
func namesIn(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if name != "." && !strings.HasPrefix(name, clockDir+"/") {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

func (p *twins) contents(t *rapid.T, name string) (model, real string) {
	s, _ := p.model.find(p.w.path(name))
	n := p.model.node(s.id)
	if n.kind == engine.Directory {
		return "", ""
	}
	b, err := os.ReadFile(filepath.Join(p.dirs[p.turn], name))
	if err != nil {
		t.Fatal(err)
	}
	return p.w.contents[n.data], string(b)
}
