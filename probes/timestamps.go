package probes

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var timestamps = Probe{
	Name:    "timestamps",
	Promise: "A file that is made, written or touched gets the filesystem's time, which moves on in steps of less than a second and never back.",
	Why: "The age of a claim is the difference between two times of files. With steps of two seconds, as FAT has them, a claim " +
		"that was just renewed looks like the one before; times that stand still make a dead owner's claim immortal, and times " +
		"that run back make a live one's expire.",
	How: "Over each route one contender creates, writes and touches files in turn, hundreds of times, and reads mtime and ctime back " +
		"after each: the smallest step, and whether any goes back. A step counts as coarse where it is longer than twice the time that it took. Of a touched file the mtime counts, of the others the later of the " +
		"two. If nothing moves it goes on for 2.5 s. The age of a fresh file by the contender's own clock is recorded: the kernel stamps by a clock that " +
		"it moves once per tick, so a file can be older than its own creation. " +
		"Which of mtime, ctime and the time of birth move when a directory is renamed, when an entry is made in it and when a file " +
		"is linked, and how exactly a time that is set is kept, are figures and no verdict: on ext4 and tmpfs a rename leaves the mtime as it was, " +
		"so an age that is taken from it is the owner's age.",
	Control: "a file that nobody touches between the looks, and one whose time is set back, where times can be set",
	Broken: "Where the steps are coarse, set a TTL of at least ten times the step, or keep claims on another filesystem. Where times stand still " +
		"or run back no claim may expire by them: use flock-held if flock holds, or another filesystem.",
	Refused: "Files cannot be touched here, so there is no clock to judge ages by: look at who owns the directory and how it is mounted, or keep claims on another filesystem.",
	Ops: []race.Op{
		stampBurst, stampClean,
		{Name: "set-time", Attempt: func(e *race.Env, ev *race.Event) unix.Errno {
			name := sideName(e, 's')
			fd, errno := race.Open(e.Dir, name, unix.O_CREAT|unix.O_RDWR, 0o600)
			if errno != 0 {
				return errno
			}
			defer race.Unlink(e.Dir, name, 0)
			defer race.Close(fd)
			if errno = race.SetTimes(fd, setTo); errno != 0 {
				return errno
			}
			var s stamp
			errno = s.look(fd)
			ev.Saw = uint64(s.Mtime)
			return errno
		}},
		{Name: "changes", Attempt: changeThings},
	},
	Alone: true,
	Run:   runTimestamps,
}

// The kinds of violation.
const (
	coarseTimes = "coarse"
	timesStill  = "stand-still"
	timesBack   = "backwards"
)

// tooCoarse is what the slack of a claim must stay well above: a tenth of the TTL is usual, three seconds of thirty.
const tooCoarse = int64(time.Second)

// setTo is a time with an odd number of seconds and nine digits behind the point: what is lost of it tells how times are kept.
const setTo = 1_234_567_891_987_654_321

// keptTo is the step to which a time that was set is kept; 0 if it was not kept at all.
func keptTo(got int64) int64 {
	for _, step := range []int64{1, 100, 1e3, 1e6, 1e7, 1e9, 2e9} {
		if got == setTo-setTo%step {
			return step
		}
	}
	return 0
}

// touchRefusals are what a touch is told that will never be carried out.
var touchRefusals = []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL}

// judgeTimes rules on the stamps of one act, in their order, and names the later of the two that show it. Times that
// did not move for less than wait say nothing.
func judgeTimes(a act, ss []stamp, failures map[uint32]int, wait time.Duration) (v ruling, at int) {
	if len(ss) < 2 {
		return ruling{refused: len(failures) > 0 && allIn(failures, touchRefusals), failed: !allIn(failures, touchRefusals) || len(failures) == 0}, 0
	}
	if clockSet(ss) {
		return ruling{failed: true, note: clockWasSet}, 0
	}
	if i, by := deepestFall(ss); by >= tooCoarse {
		return ruling{kind: timesBack, sentence: fmt.Sprintf("%s stamped a file %s earlier than the %s before it", a, span(by), a)}, i
	}
	last := len(ss) - 1
	took := ss[last].Return - ss[0].Invoke
	switch step := leastStep(ss); {
	case step >= tooCoarse && !outrun(ss):
		return ruling{failed: true, note: a.String() + " takes so long that its steps cannot be told from the passing of time"}, 0
	case step >= tooCoarse:
		return ruling{kind: coarseTimes, sentence: fmt.Sprintf("the times that %s gives move in steps of %s", a, span(step))}, firstStep(ss)
	case step == 0 && took < int64(wait):
		return ruling{failed: true, note: a.String() + " moved no time, and that was not watched for long enough"}, 0
	case step == 0:
		return ruling{kind: timesStill, sentence: fmt.Sprintf("%s moved no time of a file in %s", a, span(took))}, last
	}
	return ruling{}, 0
}

func allIn(errnos map[uint32]int, those []unix.Errno) bool {
	for errno := range errnos {
		if !contains(those, errno) {
			return false
		}
	}
	return true
}

// deepestFall is the largest step back from the latest time until then, and the stamp that takes it.
func deepestFall(ss []stamp) (at int, by int64) {
	latest := ss[0].time()
	for i := range ss {
		if fall := latest - ss[i].time(); fall > by {
			at, by = i, fall
		}
		latest = max(latest, ss[i].time())
	}
	return at, by
}

// outrun says that a step was longer than twice the time in which it was taken: it is the clock's, and not that of a
// filesystem on which each act takes as long.
func outrun(ss []stamp) bool {
	for i := 1; i < len(ss); i++ {
		if step := ss[i].time() - ss[i-1].time(); step > 2*(ss[i].Return-ss[i-1].Invoke) {
			return true
		}
	}
	return false
}

func firstStep(ss []stamp) int {
	for i := 1; i < len(ss); i++ {
		if ss[i].time() > ss[i-1].time() {
			return i
		}
	}
	return 0
}

func runTimestamps(ctx context.Context, b *Bench, f *result.Finding) {
	total, control := newEvidence("stamps"), newEvidence("control")
	err := b.timeControls(ctx, f, control)
	for route := 0; route < max(1, b.Routes) && err == nil; route++ {
		err = b.timesOver(ctx, route, f, total)
	}
	decideAlone(f, total, control, b.MinProof, err)
	if err == nil {
		partial(f, total)
		tellTimes(f)
	}
}

const (
	leastStamps = 210
	loneCreates = 36
	stampSpan   = 60 * time.Millisecond
	controlWait = controls * lookPause / 2
)

func (b *Bench) timesOver(ctx context.Context, route int, f *result.Finding, total *evidence) error {
	s, err := b.collect(ctx, route, 0, max(leastStamps, b.MinProof), stampSpan)
	if err != nil {
		return err
	}
	for a := range acts {
		good, failures := s.of(a)
		v, at := judgeTimes(a, good, failures, patience)
		total.observe(max(1, len(good)), failures, v, func() result.Round {
			return b.rawStamps(a.String(), []int{s.who}, good[max(0, at-1)], good[at])
		})
	}
	noteTimes(f, &s)
	lone, err := b.collect(ctx, route, createOnly, loneCreates, 0)
	if err != nil {
		return err
	}
	noteAges(f, &lone)
	return b.changes(ctx, route, f)
}

// timeControls runs the two parts of the control. Where a time that is set is not kept there is only one.
func (b *Bench) timeControls(ctx context.Context, f *result.Finding, control *evidence) error {
	parts := []uint64{untouched}
	set, err := b.Line.Do(ctx, 0, "set-time", b.Line.Name(), 0)
	if err != nil {
		return err
	}
	switch step := keptTo(int64(set.Saw)); {
	case set.Errno != 0:
		f.Warnings = append(f.Warnings, "setting a file's time failed with "+errnoName(set.Errno))
	case step == 0:
		f.Warnings = append(f.Warnings, "a file's time that is set is not kept")
	default:
		f.Figures["set_time_kept_to_ns"] = float64(step)
		parts = append(parts, setBack)
	}
	control.parts = len(parts)
	began := time.Now()
	for _, how := range parts {
		s, err := b.collect(ctx, 0, how, controls, 0)
		if err != nil {
			return err
		}
		good, failures := s.of(touch)
		v, at := judgeTimes(touch, good, failures, controlWait)
		control.observe(max(1, len(good)), failures, v, func() result.Round {
			return b.rawStamps("control", []int{s.who}, good[max(0, at-1)], good[at])
		})
		if v.kind != "" && control.violations == 1 {
			control.first = time.Since(began)
		}
	}
	return nil
}
