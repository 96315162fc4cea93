package probes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
)

func contains(errnos []unix.Errno, errno uint32) bool {
	return slices.Contains(errnos, unix.Errno(errno))
}

// least and most keep the smallest and the largest value of a figure over the routes.
func least(f *result.Finding, name string, v float64) {
	if old, ok := f.Figures[name]; !ok || v < old {
		f.Figures[name] = v
	}
}

func most(f *result.Finding, name string, v float64) {
	if old, ok := f.Figures[name]; !ok || v > old {
		f.Figures[name] = v
	}
}

// noteTimes records the smallest steps, and how far a time went back at most, however little.
func noteTimes(f *result.Finding, s *series) {
	f.Figures["stamps_count"] += float64(len(s.stamps))
	for a := range acts {
		good, _ := s.of(a)
		if len(good) < 2 {
			continue
		}
		if step := leastStep(good); step > 0 {
			least(f, a.String()+"_step_least_us", float64(step)/1e3)
			least(f, "step_least_us", float64(step)/1e3)
		}
		_, by := deepestFall(good)
		most(f, "back_most_us", float64(by)/1e3)
	}
}

// noteAges records the age of a fresh file by the contender's own clock, as soon as it is made. Where another clock
// stamps files the difference of the two clocks is in it.
func noteAges(f *result.Finding, s *series) {
	good, _ := s.of(create)
	var ages []float64
	for i := range good {
		ages = append(ages, float64(good[i].After-good[i].time())/1e3)
		least(f, "fresh_age_least_us", float64(good[i].After-good[i].time())/1e3)
		most(f, "fresh_age_most_us", float64(good[i].After-good[i].time())/1e3)
	}
	if v, _, _, ok := stat.Median(ages); ok {
		most(f, "fresh_age_p50_us", v)
	}
}

// A moment is the times of a thing, in the words of the shared memory.
type moment struct{ mtime, ctime, btime uint64 }

// The changes, each between two moments: the first and the next.
var changeNames = []string{"dir_rename", "dir_entry", "", "link"}

// changePause is longer than the tick by which a kernel stamps files, of 10 ms at most (CONFIG_HZ=100).
const changePause = 12 * time.Millisecond

// changeThings renames a directory and makes an entry in it, and links a file, and looks at its times before and
// after. Saw is the number of moments: 3 of the directory, and 2 of the file where links are not refused.
func changeThings(e *race.Env, ev *race.Event) unix.Errno {
	c := changer{e: e, ev: ev, dir: sideName(e, 'd'), renamed: sideName(e, 'r'), file: sideName(e, 'x'), linked: sideName(e, 'l')}
	defer c.clean()
	for _, step := range []func() unix.Errno{
		func() unix.Errno { return race.Mkdir(e.Dir, c.dir, 0o700) },
		func() unix.Errno { return c.look(c.dir) },
		func() unix.Errno { return race.Rename(e.Dir, c.dir, c.renamed, 0) },
		func() unix.Errno { return c.look(c.renamed) },
		func() unix.Errno { return c.inRenamed(c.make) },
		func() unix.Errno { return c.look(c.renamed) },
		func() unix.Errno { return c.make(e.Dir) },
		func() unix.Errno { return c.look(c.file) },
		func() unix.Errno { return race.Link(e.Dir, c.file, c.linked) },
		func() unix.Errno { return c.look(c.file) },
	} {
		e.Progress()
		if errno := step(); errno != 0 {
			return errno
		}
	}
	return 0
}

// A changer has the names of what is changed. The directory and the contender's own have a file of the same name.
type changer struct {
	e                          *race.Env
	ev                         *race.Event
	dir, renamed, file, linked *byte
}

// look records a moment, and waits until a change after it would show.
func (c *changer) look(name *byte) unix.Errno {
	var st unix.Statx_t
	errno := race.Statx(c.e.Dir, name, &st)
	w := c.e.Words(c.e.ID)[3*c.ev.Saw:]
	w[0], w[1], w[2] = uint64(race.Nanos(st.Mtime)), uint64(race.Nanos(st.Ctime)), 0
	if st.Mask&unix.STATX_BTIME != 0 {
		w[2] = uint64(race.Nanos(st.Btime))
	}
	c.ev.Saw++
	race.Sleep(changePause)
	return errno
}

func (c *changer) make(dir int) unix.Errno {
	fd, errno := race.Open(dir, c.file, unix.O_CREAT|unix.O_RDWR, 0o600)
	if errno == 0 {
		errno = race.Close(fd)
	}
	return errno
}

func (c *changer) inRenamed(do func(dir int) unix.Errno) unix.Errno {
	fd, errno := race.Open(c.e.Dir, c.renamed, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errno != 0 {
		return errno
	}
	defer race.Close(fd)
	return do(fd)
}

func (c *changer) clean() {
	c.inRenamed(func(dir int) unix.Errno { return race.Unlink(dir, c.file, 0) })
	race.Unlink(c.e.Dir, c.dir, unix.AT_REMOVEDIR)
	race.Unlink(c.e.Dir, c.renamed, unix.AT_REMOVEDIR)
	race.Unlink(c.e.Dir, c.file, 0)
	race.Unlink(c.e.Dir, c.linked, 0)
}

// changes has a contender change things, and records what moved. What a filesystem with coarse times does not show is
// not recorded.
func (b *Bench) changes(ctx context.Context, route int, f *result.Finding) error {
	if f.Figures["step_least_us"] >= float64(changePause.Microseconds()) || f.Figures["step_least_us"] == 0 {
		return nil
	}
	ev, err := b.Line.Do(ctx, route, "changes", b.Line.Name(), 0)
	if err != nil {
		return err
	}
	if ev.Errno != 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf("what moves the times of directories and links was not seen to its end: %s", errnoName(ev.Errno)))
	}
	words := b.Line.Words(route)
	var seen []moment
	for i := range int(ev.Saw) {
		seen = append(seen, moment{words[3*i], words[3*i+1], words[3*i+2]})
	}
	noteChanges(f, seen)
	return nil
}

// noteChanges records which times each change moved: 1 if it did.
func noteChanges(f *result.Finding, seen []moment) {
	for i, change := range changeNames {
		if i+1 >= len(seen) || change == "" {
			continue
		}
		was, is := seen[i], seen[i+1]
		for _, t := range []struct {
			name    string
			was, is uint64
		}{{"mtime", was.mtime, is.mtime}, {"ctime", was.ctime, is.ctime}, {"btime", was.btime, is.btime}} {
			moved := 0.0
			if t.was != t.is {
				moved = 1
			}
			if t.name != "btime" || was.btime != 0 {
				most(f, fmt.Sprintf("%s_moved_by_%s_share", t.name, change), moved)
			}
		}
	}
}

// tellTimes puts what was seen into words.
func tellTimes(f *result.Finding) {
	if by := f.Figures["back_most_us"]; by > 0 && by < float64(tooCoarse)/1e3 {
		f.Warnings = append(f.Warnings, "times went back by up to "+micros(f, "back_most_us"))
	}
	if f.Figures["ctime_moved_by_dir_rename_share"] == 0 && f.Figures["mtime_moved_by_dir_rename_share"] == 0 && renames(f) != "" {
		f.Warnings = append(f.Warnings, "the rename of a directory moves neither its mtime nor its ctime: nothing dates it")
	}
	if f.Verdict == result.Holds {
		f.Reason = fmt.Sprintf("%.0f stamps, none out of order by a second; the smallest step seen is %s; a fresh file's age by this host's clock is %s to %s%s",
			f.Figures["stamps_count"], micros(f, "step_least_us"), micros(f, "fresh_age_least_us"), micros(f, "fresh_age_most_us"), renames(f))
	}
}

func micros(f *result.Finding, name string) string { return span(int64(f.Figures[name] * 1e3)) }

func renames(f *result.Finding) string {
	var moved, stayed []string
	for _, t := range []string{"mtime", "ctime", "btime"} {
		switch v, ok := f.Figures[t+"_moved_by_dir_rename_share"]; {
		case ok && v > 0:
			moved = append(moved, t)
		case ok:
			stayed = append(stayed, t)
		}
	}
	if len(moved)+len(stayed) == 0 {
		return ""
	}
	return fmt.Sprintf("; the rename of a directory moves its %s and not its %s", wordsOf(moved), wordsOf(stayed))
}

func wordsOf(names []string) string {
	if len(names) == 0 {
		return "other times"
	}
	return strings.Join(names, ", ")
}
