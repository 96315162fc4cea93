package probes

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// A name that is replaced again and again by rename never looks absent. The control unlinks first, with a gap that
// every watcher meets.
const (
	replacePause = 2 * time.Millisecond
	replaceGap   = 2 * time.Millisecond
	controlTries = 10

	longestReplacing = 500 * time.Millisecond
)

// A replacing is what the writer has done so far, in its words.
type replacing struct {
	Over    atomic.Uint64 // 1 when the last one is made
	Count   uint64
	Refused uint64 // errno of the first that failed
	Last    glance
}

// A gazing is what a watcher saw, in its words. Looks count from the first that saw the name.
type gazing struct {
	Looks  uint64
	Failed uint64
	First  glance
	Absent glance
	Torn   glance
}

func overlaid[T replacing | gazing](words []uint64) *T { return (*T)(unsafe.Pointer(&words[0])) }

// replaceOps are the operations. Arg of the first is how long to go on, and whether to leave gaps; that of the second,
// who replaces.
var replaceOps = []race.Op{
	{Name: "visibility:keep-replacing", Announces: true, Attempt: keepReplacing},
	{Name: "visibility:keep-looking", Attempt: keepLooking},
	{Name: "visibility:replaced-clean", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		name, temp := replacedNames(e.Num)
		race.Unlink(e.Dir, temp, 0)
		race.Unlink(e.Dir, name, 0)
		return 0
	}},
}

func replacedNames(number int64) (name, temp *byte) {
	base := "k" + strconv.FormatInt(number, 16)
	return nul(base), nul(base + ".new")
}

func keepReplacing(e *race.Env, ev *race.Event) unix.Errno {
	do, r := errandOf(e.Arg), overlaid[replacing](e.Words(e.ID))
	name, temp := replacedNames(e.Num)
	defer r.Over.Store(1)
	for began := race.Now(); race.Now()-began < int64(do.slice); {
		errno := writeWhole(e.Dir, temp, unix.O_CREAT|unix.O_TRUNC, newContent)
		r.Last.Invoke = race.Now()
		if do.idle && errno == 0 {
			race.Unlink(e.Dir, name, 0)
			race.Sleep(replaceGap)
		}
		if errno == 0 {
			errno = race.Rename(e.Dir, temp, name, 0)
		}
		r.Last.Return = race.Now()
		if errno != 0 {
			r.Refused = uint64(errno)
			return errno
		}
		r.Count++
		race.Sleep(replacePause)
	}
	return 0
}

// keepLooking looks, by open and by stat in turn, until the writer is done. EAGAIN says that the time was up before.
func keepLooking(e *race.Env, _ *race.Event) unix.Errno {
	do, mine := errandOf(e.Arg), overlaid[gazing](e.Words(e.ID))
	his := overlaid[replacing](e.Words(do.writer))
	file, _ := replacedNames(e.Num)
	by := []place{{spot{replaced, byOpen, true}, nil, file, nil}, {spot{replaced, byStat, true}, nil, file, nil}}
	for began, i := race.Now(), 0; his.Over.Load() == 0; i++ {
		mine.note(by[i%2].glance(e))
		if race.Now()-began > int64(do.slice) {
			return unix.EAGAIN
		}
		race.Sleep(20 * time.Microsecond)
	}
	return 0
}

func (r *gazing) note(g glance) {
	if r.First.Invoke == 0 && g.State != fresh {
		return // not yet seen
	}
	r.Looks++
	switch {
	case r.First.Invoke == 0:
		r.First = g
	case g.State == failing:
		r.Failed++
	case g.State == absent && r.Absent.Invoke == 0:
		r.Absent = g
	case g.State == neither && r.Torn.Invoke == 0:
		r.Torn = g
	}
}

// judge rules on what one watcher saw of a name that was there all the time.
func (r *gazing) judge(watcher, writer int) ruling {
	switch {
	case r.Absent.Invoke != 0 && unix.Errno(r.Absent.Errno) == unix.ESTALE:
		return ruling{kind: staleHandle, sentence: fmt.Sprintf("contender %d got ESTALE for a name that contender %d kept replacing by rename", watcher, writer)}
	case r.Absent.Invoke != 0:
		return ruling{kind: nameAbsent, sentence: fmt.Sprintf("contender %d found nothing under a name that contender %d kept replacing by rename", watcher, writer)}
	case r.Torn.Invoke != 0:
		return ruling{kind: contentStale, sentence: fmt.Sprintf("contender %d read a file that was not whole, which contender %d had written, closed, and then renamed into place", watcher, writer)}
	}
	return ruling{failed: r.Looks == 0 || r.Failed == r.Looks}
}

// replacements lets the contender of each route in turn keep replacing a name, the first of them also with gaps.
func (b *Bench) replacements(ctx context.Context, f *result.Finding, e, control *evidence, lags *lateness) error {
	routes := max(1, b.Routes)
	lags.gapMissed = true
	for flagged, tries := control.violations, 0; lags.gapMissed && tries < controlTries; tries++ { // a watcher may get no CPU for so long
		if err := b.replaceOften(ctx, f, control, errand{writer: 0, slice: 3 * (replaceGap + replacePause), idle: true}); err != nil {
			return err
		}
		lags.gapMissed = control.violations == flagged
	}
	each := min(max(b.Time/20/time.Duration(routes), 10*replacePause), longestReplacing)
	for writer := range routes {
		if err := b.replaceOften(ctx, f, e, errand{writer: writer, slice: each}); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) replaceOften(ctx context.Context, f *result.Finding, e *evidence, do errand) (err error) {
	name, watchers := b.Line.Name(), b.watchers(do.writer)
	defer func() {
		err = b.settle(ctx, err, append(watchers, do.writer), "visibility:replaced-clean", name)
	}()
	his := overlaid[replacing](b.Line.Words(do.writer))
	*his = replacing{}
	for _, who := range watchers {
		*overlaid[gazing](b.Line.Words(who)) = gazing{}
		b.Line.Begin(who, "visibility:keep-looking", name, errand{writer: do.writer, slice: 2*do.slice + time.Second}.arg())
	}
	if _, err := b.Line.Do(ctx, do.writer, "visibility:keep-replacing", name, do.arg()); err != nil {
		return err
	}
	for _, who := range watchers {
		if _, err := b.Line.Await(ctx, who, "visibility:keep-looking"); err != nil {
			return err
		}
		e.gaze(b, int(name), who, do.writer, overlaid[gazing](b.Line.Words(who)), his)
	}
	if !do.idle && his.Count > 0 {
		f.Figures["replacements_per_s"] = float64(his.Count) / do.slice.Seconds()
	}
	return nil
}

// gaze counts what one watcher saw.
func (e *evidence) gaze(b *Bench, round, watcher, writer int, r *gazing, his *replacing) {
	v := r.judge(watcher, writer)
	switch {
	case his.Refused != 0:
		e.errnos[errnoName(uint32(his.Refused))]++
		e.rounds, e.failed = e.rounds+1, e.failed+1
		return
	case v.failed:
		e.rounds, e.failed = e.rounds+1, e.failed+1
	default:
		e.rounds, e.contested = e.rounds+int(r.Looks), e.contested+int(r.Looks)
	}
	e.accuse(v, func() result.Round {
		w := watched{spot{replaced, byOpen, true}, round, writer, watcher, his.Last, watchRecord{First: r.First, Absent: r.Absent, Torn: r.Torn}, 0}
		return w.raw(b)
	})
}
