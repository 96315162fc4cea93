package probes

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var inodeReuse = Probe{
	Name:    "inode-reuse",
	Promise: "A file can be told from the one that had its name before and was removed, without reading it.",
	Why: "Whoever judges a claim looks at it again before acting, and takes it for the same if the inode number is the same. Many " +
		"filesystems give the number of a removed file to the next one at once, and then that is false: a fresh claim is taken " +
		"for the stale one. Two claims have the same size, and within one tick of the kernel's clock the same times as well.",
	How: "Over each route one contender makes a file, looks at it twice, removes it and makes the next one under the same name, at once " +
		"and again with pauses that are longer than a tick. Compared are the inode number; the number with the size; with the ctime; with ctime and " +
		"time of birth; and the file handle of name_to_handle_at(2), which has the generation of the inode in it. What never comes back, and " +
		"does not change by itself, identifies a file; the finding names the least that does. The class is reused where the number alone comes back: " +
		"that is usual, and breaks nothing that identifies a claim by the nonce in it. Whether a file has one number over all routes is not asked here.",
	Control: "a file that is not removed, and looked at as if it were the next one",
	Broken: "Identify a claim by a nonce in its content, never by what stat says. Do not use flock-held where inode " +
		"numbers change by themselves: it compares the number of the file that it has locked with the one under the name.",
	Refused: "Files cannot be made and removed here: look at the errno, and at how the filesystem is mounted.",
	Ops: []race.Op{
		{Name: "succession", Attempt: func(e *race.Env, ev *race.Event) unix.Errno {
			out := identitiesIn(e.Words(e.ID))
			for ; ev.Saw < e.Arg&burstCount; ev.Saw++ {
				e.Progress()
				race.Sleep(time.Duration(e.Arg>>32) * time.Microsecond)
				if errno := nextFile(e, &out[ev.Saw], e.Arg&keepFile != 0); errno != 0 {
					return errno
				}
			}
			return 0
		}},
		{Name: "succession" + cleanSuffix, Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
			return race.Unlink(e.Dir, e.Name(), 0)
		}},
	},
	Alone: true,
	Run:   runReuse,
}

// keepFile asks a succession to look at one file again and again.
const keepFile = 1 << 12

// reused is the class of a filesystem whose inode numbers come back.
const reused = "reused"

// The kinds of violation.
const (
	twins          = "twins"           // nothing tells a file from its predecessor
	unstableNumber = "unstable-number" // an unchanged file has another inode number at the second look
)

// A likeness is what stat says of a file, and its handle.
type likeness struct {
	Ino, Size, Ctime, Btime uint64
	Handle                  uint64 // a hash; 0 is none
}

// An identity is a file that was looked at twice, with the time from its making to the second look.
type identity struct {
	First, Again   likeness
	Invoke, Return int64
}

func identitiesIn(words []uint64) []identity {
	return unsafe.Slice((*identity)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8/int(unsafe.Sizeof(identity{})))
}

// nextFile makes a file of the size that all have, looks at it twice, and removes it.
func nextFile(e *race.Env, id *identity, keep bool) unix.Errno {
	id.Invoke = race.Now()
	flags := unix.O_CREAT | unix.O_WRONLY
	if !keep {
		flags |= unix.O_EXCL
	}
	fd, errno := race.Open(e.Dir, e.Name(), flags, 0o600)
	if errno != 0 {
		return errno
	}
	if !keep {
		_, errno = race.Pwrite(fd, e.Buf[:16], 0)
	}
	if failed := race.Close(fd); errno == 0 {
		errno = failed
	}
	for _, l := range []*likeness{&id.First, &id.Again} {
		if errno == 0 {
			errno = l.at(e)
		}
	}
	if !keep {
		if failed := race.Unlink(e.Dir, e.Name(), 0); errno == 0 {
			errno = failed
		}
	}
	id.Return = race.Now()
	return errno
}

func (l *likeness) at(e *race.Env) unix.Errno {
	var st unix.Statx_t
	errno := race.Statx(e.Dir, e.Name(), &st)
	*l = likeness{Ino: st.Ino, Size: st.Size, Ctime: uint64(race.Nanos(st.Ctime))}
	if st.Mask&unix.STATX_BTIME != 0 {
		l.Btime = uint64(race.Nanos(st.Btime))
	}
	if isFUSE(e) {
		return errno
	}
	if h, _, err := unix.NameToHandleAt(e.Dir, unix.BytePtrToString(e.Name()), 0); err == nil {
		sum := fnv.New64a()
		fmt.Fprint(sum, h.Type(), h.Bytes())
		l.Handle = max(1, sum.Sum64())
	}
	return errno
}

// isFUSE: there a handle is made of the number by which the kernel calls the object, which the server may change when
// the kernel has forgotten it (fs/fuse/inode.c, fuse_encode_fh), so that it identifies nothing.
func isFUSE(e *race.Env) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(e.Dir, &st) == nil && st.Type == unix.FUSE_SUPER_MAGIC
}

// A tuple is something by which a file might be known. It is "" where the filesystem does not tell it.
type tuple struct {
	name string
	of   func(*likeness) string
}

// tuples are in the order in which a program would try them.
var tuples = []tuple{
	{"inode", func(l *likeness) string { return fmt.Sprint(l.Ino) }},
	{"inode_size", func(l *likeness) string { return fmt.Sprint(l.Ino, l.Size) }},
	{"inode_ctime", func(l *likeness) string { return fmt.Sprint(l.Ino, l.Ctime) }},
	{"inode_ctime_btime", func(l *likeness) string {
		if l.Btime == 0 {
			return ""
		}
		return fmt.Sprint(l.Ino, l.Ctime, l.Btime)
	}},
	{"handle", func(l *likeness) string {
		if l.Handle == 0 {
			return ""
		}
		return fmt.Sprint(l.Handle)
	}},
}

// words is the tuple's name in a sentence.
func (t *tuple) words() string {
	if t.name == "handle" {
		return "file handle"
	}
	return strings.ReplaceAll(strings.ReplaceAll(t.name, "inode", "inode number"), "_", " and ")
}

// A recurrence is what became of one tuple in a succession of files.
type recurrence struct {
	told    bool // the filesystem tells it
	changed int  // files that looked different at the second look
	unlike  int  // the first of them
	again   int  // files that looked like an earlier one
	soonest int  // how many files later, at the least
	at      int  // the first file that looked like an earlier one
}

// identifies says that the tuple told all files apart, and none from itself.
func (r *recurrence) identifies() bool { return r.told && r.changed == 0 && r.again == 0 }

// recur looks for a tuple's recurrence. It is pure.
func recur(t tuple, ids []identity) recurrence {
	r := recurrence{told: len(ids) > 0}
	last := map[string]int{}
	for i := range ids {
		v := t.of(&ids[i].First)
		r.told = r.told && v != ""
		if v != t.of(&ids[i].Again) {
			if r.changed++; r.changed == 1 {
				r.unlike = i
			}
		}
		if j, seen := last[v]; seen {
			if r.again++; r.again == 1 {
				r.at = i
			}
			if r.soonest == 0 || i-j < r.soonest {
				r.soonest = i - j
			}
		}
		last[v] = i
	}
	return r
}

// judgeSuccession rules on files that were made one after the other with pauses between: something must tell them apart.
func judgeSuccession(ids []identity) (v ruling, at int) {
	inode := recur(tuples[0], ids)
	if inode.changed > 0 {
		return ruling{kind: unstableNumber, sentence: "a file that nobody changed had another inode number at the second look"}, max(1, inode.unlike)
	}
	at = 1
	var same []string
	for _, t := range tuples {
		switch r := recur(t, ids); {
		case r.identifies():
			return ruling{}, 0
		case r.told:
			same, at = append(same, t.words()), r.at
		}
	}
	return ruling{kind: twins, sentence: "a file looked like one that was removed before it was made: the same " + strings.Join(same, "; the same ")}, max(1, at)
}

const (
	apartPause = 12 * time.Millisecond // longer than a tick
	apartFiles = 8
	manyFiles  = 128
)

func runReuse(ctx context.Context, b *Bench, f *result.Finding) {
	total, control := newEvidence("succession"), newEvidence("control")
	began := time.Now()
	kept, failures, err := b.succession(ctx, 0, keepFile, controls, 0)
	if err == nil && len(kept) > 1 {
		b.observeFiles(control, 0, kept, failures)
	}
	if control.violations > 0 {
		control.first = time.Since(began)
	}
	control.parts = 1
	for route := 0; route < max(1, b.Routes) && err == nil; route++ {
		err = b.reuseOver(ctx, route, f, total)
	}
	decideAlone(f, total, control, min(b.MinProof, manyFiles), err)
	if err == nil {
		tellReuse(f, total)
	}
}

func (b *Bench) observeFiles(e *evidence, who int, ids []identity, failures map[uint32]int) {
	if len(ids) < 2 {
		e.observe(1, failures, ruling{failed: true}, nil)
		return
	}
	v, at := judgeSuccession(ids)
	e.observe(len(ids), failures, v, func() result.Round { return b.rawFiles(who, ids[at-1], ids[at]) })
}

func (b *Bench) reuseOver(ctx context.Context, route int, f *result.Finding, total *evidence) error {
	many, failures, err := b.succession(ctx, route, 0, max(manyFiles, b.MinProof), 0)
	if err != nil {
		return err
	}
	total.observe(max(1, len(many)), failures, ruling{failed: len(many) < 2}, nil)
	apart, failures, err := b.succession(ctx, route, 0, apartFiles, apartPause)
	if err != nil {
		return err
	}
	b.observeFiles(total, route, apart, failures)
	noteReuse(f, many, apart)
	return nil
}

// succession has one contender make so many files, one after the other under one name. It ends sooner where that
// takes too long, or fails again and again.
func (b *Bench) succession(ctx context.Context, who int, how uint64, count int, pause time.Duration) (ids []identity, failures map[uint32]int, err error) {
	defer b.spend(time.Now())
	failures = map[uint32]int{}
	name, n, began := b.Line.Name(), min(4, count), time.Now()
	for fails := 0; len(ids) < count && fails < mostFails && time.Since(began) < b.Time+b.Spare; {
		start := time.Now()
		n = min(n, count-len(ids))
		ev, err := b.Line.Do(ctx, who, "succession", name, how|uint64(n)|uint64(pause.Microseconds())<<32)
		if err != nil {
			return ids, failures, err
		}
		ids = append(ids, identitiesIn(b.Line.Words(who))[:ev.Saw]...)
		if ev.Errno != 0 {
			failures[ev.Errno]++
			fails++
			continue
		}
		n = max(1, min(mostBurst, n*int(burstTime)/int(max(1, time.Since(start)))))
	}
	_, err = b.Line.Do(ctx, who, "succession"+cleanSuffix, name, 0)
	return ids, failures, err
}
