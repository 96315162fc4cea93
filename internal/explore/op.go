package explore

import (
	"encoding/hex"
	"strconv"
	"strings"
	"syscall"
)

// A Verb is what a step does.
type Verb uint8

// The verbs: those of the filesystem seam, the clock's, and those of the
// explorer itself.
const (
	Create Verb = iota + 1
	Open
	Lstat
	Mkdir
	Now
	WriteAt
	Touch
	Fstat
	Sync
	Close
	ReadAt
	Link
	Unlink
	Overwrite
	Rename
	Rmdir
	List
	OpenLock
	TryLock
	ReadClock
	Begin // the work begins
	Finish
	Poll // a fresh contender waits one TTL
	End
)

var verbs = [...]string{"", "creates", "opens", "looks up", "makes directory", "reads the filesystem's clock",
	"writes", "touches", "stats", "syncs", "closes", "reads", "links", "unlinks", "overwrites", "renames",
	"removes directory", "lists", "opens lock file", "locks", "reads its clock", "begins the work on",
	"finishes the work on", "waits", "ends"}

func (v Verb) String() string { return verbs[v] }

// An Op is one step that a contender is about to do. Names and contents are
// numbers of the world's; 0 is none.
type Op struct {
	Verb   Verb
	Key    uint8
	Handle uint8
	Path   uint16
	To     uint16
	Data   uint32
	Off    int32
	Len    int32
}

// A Result is what a step came back with. It can be compared.
type Result struct {
	Errno        syscall.Errno
	Handle       uint8
	Kind         uint8
	Nlink        uint16
	Data         uint32
	Size         int32
	Ino          uint64
	Mtime, Ctime int64
	Time         int64
}

// A world numbers names and contents, so that states are small and can be
// compared. It belongs to one exploration.
type world struct {
	fold     bool
	paths    []path
	pathIDs  map[string]uint16
	parts    []string
	partIDs  map[string]uint16
	contents []string
	dataIDs  map[string]uint32
	folded   map[string]string
	known    map[string]bool // names that are documented
	touched  uint32          // bit n: weakness n would have made a difference
	dated    bool            // somebody asked for the times of a directory that is unasked
}

// touch notes that a filesystem with one of the weaknesses would have done
// something else. One that never would is explored with the perfect one.
func (w *world) touch(all ...Weakness) {
	for _, weak := range all {
		w.touched |= 1 << weak
	}
}

type path struct {
	text  string
	parts []uint16
	owner int8 // the contender whose nonce is in a private name, or -1
}

func newWorld(fold bool) *world {
	return &world{fold: fold, paths: []path{{owner: -1}}, pathIDs: map[string]uint16{"": 0}, partIDs: map[string]uint16{},
		contents: []string{""}, dataIDs: map[string]uint32{"": 0}, folded: map[string]string{},
		known: map[string]bool{}}
}

func (w *world) path(text string) uint16 {
	if id, ok := w.pathIDs[text]; ok {
		return id
	}
	p := path{text: text, owner: ownerOf(text)}
	for part := range strings.SplitSeq(text, "/") {
		if part != "" && part != "." {
			p.parts = append(p.parts, w.part(part))
		}
	}
	w.paths = append(w.paths, p)
	id := uint16(len(w.paths) - 1)
	w.pathIDs[text] = id
	return id
}

// privateMark comes before the nonce in names that nobody but the contender
// with that nonce ever uses.
const privateMark = ".new-"

func ownerOf(text string) int8 {
	_, nonce, ok := strings.Cut(text, privateMark)
	if !ok {
		return -1
	}
	for who := range places {
		if strings.HasPrefix(nonce, hex.EncodeToString([]byte(nonceStart(who)))) {
			return int8(who)
		}
	}
	return -1
}

func (w *world) part(text string) uint16 {
	name, lower := text, strings.ToLower(text)
	if w.fold {
		name = lower
	}
	if id, ok := w.partIDs[name]; ok {
		return id
	}
	if _, ok := w.folded[lower]; ok {
		w.touch(CaseFolding)
	}
	w.folded[lower] = text
	w.parts = append(w.parts, text)
	id := uint16(len(w.parts) - 1)
	w.partIDs[name] = id
	return id
}

func (w *world) data(b []byte) uint32 {
	if id, ok := w.dataIDs[string(b)]; ok {
		return id
	}
	w.contents = append(w.contents, string(b))
	id := uint32(len(w.contents) - 1)
	w.dataIDs[string(b)] = id
	return id
}

// spliced is the content with p written into it at off.
func (w *world) spliced(content uint32, p uint32, off int) uint32 {
	old, add := w.contents[content], w.contents[p]
	if len(add) == 0 {
		return content
	}
	b := make([]byte, max(len(old), off+len(add)))
	copy(b, old)
	copy(b[off:], add)
	return w.data(b)
}

// letter names a contender: A, B, C; Z died before the others started, and F
// comes when all have ended.
func letter(who int) string {
	switch who {
	case before:
		return "Z"
	case after:
		return "F"
	default:
		return string(rune('A' + who))
	}
}

const (
	before = 3
	after  = 4
	places = 5
)

func errnoName(e syscall.Errno) string {
	for name, v := range errnos {
		if v == e {
			return name
		}
	}
	return "errno " + strconv.Itoa(int(e))
}

var errnos = map[string]syscall.Errno{"ENOENT": syscall.ENOENT, "EEXIST": syscall.EEXIST, "ENOTDIR": syscall.ENOTDIR,
	"EISDIR": syscall.EISDIR, "ENOTEMPTY": syscall.ENOTEMPTY, "EPERM": syscall.EPERM, "EINVAL": syscall.EINVAL,
	"EWOULDBLOCK": syscall.EWOULDBLOCK, "EBADF": syscall.EBADF, "EBUSY": syscall.EBUSY, "EIO": syscall.EIO}
