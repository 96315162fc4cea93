package probes

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// A change is what a writer does to a name.
type change uint8

// The changes. All but the first two find the name there.
const (
	created   change = iota // a file is made under a name that was free
	made                    // a directory is
	rewritten               // a file is opened, written and closed
	touched                 // the times of a file are set, as a renewed claim's are
	removed                 // a file is unlinked
	replaced                // another file is renamed over it
)

var changes = [...]string{"created", "directory made", "rewritten", "touched", "removed", "replaced"}

func (c change) String() string { return changes[c] }

// A sight is how a watcher looks.
type sight uint8

// The sights.
const (
	byOpen  sight = iota // open and read; of a file that is touched, open and statx
	byStat               // lstat of the name
	byList               // a listing of the directory, opened afresh
	relists              // a listing, and then an lstat
)

func (s sight) String() string {
	return [...]string{"by open", "by stat", "in the listing", "by stat after a listing"}[s]
}

// A spot is one thing to watch, in a directory of its own: what is done to one name must not refresh what a cache
// holds of another.
type spot struct {
	what  change
	by    sight
	after bool // the watcher has looked before the change, in the same way
}

// spots is everything that is watched at once.
var spots = func() (all []spot) {
	for what, by := range [...][]sight{
		created:   {byOpen, byStat, byList, relists},
		made:      {byStat, byList},
		rewritten: {byOpen, byStat},
		touched:   {byOpen},
		removed:   {byOpen, byStat, byList},
		replaced:  {byOpen, byStat},
	} {
		for _, s := range by {
			all = append(all, spot{change(what), s, false}, spot{change(what), s, true})
		}
	}
	return all
}()

func (s spot) String() string {
	if s.after {
		return s.what.String() + ", seen " + s.by.String() + " after an earlier look"
	}
	return s.what.String() + ", seen " + s.by.String()
}

// A state is what a look found under the name.
type state uint32

// The states. Gone is both ENOENT and ESTALE: each means that nothing is there any more.
const (
	unlooked state = iota
	absent
	old
	fresh   // what the writer put there
	neither // a file with other content than either, or another size
	failing // an errno that is no answer
)

var states = [...]string{"unlooked", "absent", "old", "new", "neither old nor new", "failed"}

func (s state) String() string { return states[s] }

// before and wanted are the states that must be seen before the change and after it.
func (s spot) before() state {
	if s.what == created || s.what == made {
		return absent
	}
	return old
}

func (s spot) wanted() state {
	if s.what == removed {
		return absent
	}
	return fresh
}

// The two contents have different sizes, so that a stat tells them apart, and the two times are set by hand: no
// granularity can merge them.
const (
	oldContent = "old content\n"
	newContent = "this is the new content\n"
	oldTime    = 1_000_000_000
	newTime    = 1_100_000_000
)

// A place is the names of a spot, relative to the probe's directory.
type place struct {
	spot
	dir, file, temp *byte
}

const fileInPlace = "f"

func placesOf(number int64) []place {
	all := make([]place, len(spots))
	for i, s := range spots {
		dir := "v" + strconv.FormatInt(number, 16) + "." + strconv.Itoa(i)
		all[i] = place{s, nul(dir), nul(dir + "/" + fileInPlace), nul(dir + "/g")}
	}
	return all
}

func nul(s string) *byte { return &append([]byte(s), 0)[0] }

// prepare makes what is there before the change.
func (p *place) prepare(e *race.Env) unix.Errno {
	errno := race.Mkdir(e.Dir, p.dir, 0o700)
	if errno == 0 && p.before() == old {
		errno = writeWhole(e.Dir, p.file, unix.O_CREAT|unix.O_EXCL, oldContent)
	}
	switch {
	case errno != 0:
	case p.what == touched:
		errno = setTimes(e.Dir, p.file, oldTime)
	case p.what == replaced:
		errno = writeWhole(e.Dir, p.temp, unix.O_CREAT|unix.O_EXCL, newContent)
	}
	return errno
}

func (p *place) change(e *race.Env) unix.Errno {
	switch p.what {
	case created:
		return writeWhole(e.Dir, p.file, unix.O_CREAT|unix.O_EXCL, newContent)
	case made:
		return race.Mkdir(e.Dir, p.file, 0o700)
	case rewritten:
		return writeWhole(e.Dir, p.file, 0, newContent)
	case touched:
		return setTimes(e.Dir, p.file, newTime)
	case removed:
		return race.Unlink(e.Dir, p.file, 0)
	}
	return race.Rename(e.Dir, p.temp, p.file, 0)
}

// clean removes what may be there, whatever became of the change.
func (p *place) clean(e *race.Env) {
	race.Unlink(e.Dir, p.temp, 0)
	if p.what == made {
		race.Unlink(e.Dir, p.file, unix.AT_REMOVEDIR)
	} else {
		race.Unlink(e.Dir, p.file, 0)
	}
	race.Unlink(e.Dir, p.dir, unix.AT_REMOVEDIR)
}

func writeWhole(dir int, name *byte, flags int, content string) unix.Errno {
	fd, errno := race.Open(dir, name, unix.O_WRONLY|flags, 0o600)
	if errno != 0 {
		return errno
	}
	errno = writeAll(fd, []byte(content), 0)
	if failed := race.Close(fd); errno == 0 {
		errno = failed
	}
	return errno
}

func setTimes(dir int, name *byte, seconds int64) unix.Errno {
	fd, errno := race.Open(dir, name, unix.O_WRONLY, 0)
	if errno != 0 {
		return errno
	}
	errno = race.Futimens(fd, &[2]unix.Timespec{{Sec: seconds}, {Sec: seconds}})
	if failed := race.Close(fd); errno == 0 {
		errno = failed
	}
	return errno
}

// look finds out what is there.
func (p *place) look(e *race.Env) (state, unix.Errno) {
	switch p.by {
	case byOpen:
		return p.open(e)
	case byList:
		return p.list(e)
	case relists:
		if _, errno := race.Lists(e.Dir, p.dir, fileInPlace, e.Buf[:]); errno != 0 {
			return absentOr(failing, errno), errno
		}
	}
	return p.stat(e)
}

func (p *place) open(e *race.Env) (state, unix.Errno) {
	fd, errno := race.Open(e.Dir, p.file, unix.O_RDONLY, 0)
	if errno != 0 {
		return absentOr(failing, errno), errno
	}
	defer race.Close(fd)
	if p.what == touched {
		var st unix.Statx_t
		errno = race.StatxSync(fd, &st)
		return either(st.Mtime.Sec == oldTime, st.Mtime.Sec == newTime, errno), errno
	}
	n, errno := race.Pread(fd, e.Buf[:payload], 0)
	got := string(e.Buf[:n])
	return either(got == oldContent, got == newContent, errno), errno
}

func (p *place) stat(e *race.Env) (state, unix.Errno) {
	errno := race.Lstat(e.Dir, p.file, &e.Stat)
	if p.what == made && errno == 0 {
		return fresh, 0
	}
	return either(e.Stat.Size == int64(len(oldContent)), e.Stat.Size == int64(len(newContent)), errno), errno
}

func (p *place) list(e *race.Env) (state, unix.Errno) {
	found, errno := race.Lists(e.Dir, p.dir, fileInPlace, e.Buf[:])
	switch {
	case errno != 0:
		return absentOr(failing, errno), errno
	case !found:
		return absent, 0
	case p.before() == absent:
		return fresh, 0
	}
	return old, 0
}

func either(isOld, isNew bool, errno unix.Errno) state {
	switch {
	case errno != 0:
		return absentOr(failing, errno)
	case isOld:
		return old
	case isNew:
		return fresh
	}
	return neither
}

func absentOr(other state, errno unix.Errno) state {
	if errno == unix.ENOENT || errno == unix.ESTALE {
		return absent
	}
	return other
}
