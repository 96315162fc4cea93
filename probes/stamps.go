package probes

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// An act is something that stamps a file. Claims are created and written; the clock that their age is judged by is a
// file that is touched.
type act uint32

const (
	create act = iota
	write
	touch
	acts
)

func (a act) String() string { return [...]string{"create", "write", "touch"}[a] }

// A stamp is what one act did to the times of a file, raw, as a contender puts it into its words of shared memory.
// Times are in nanoseconds, those of the file by the filesystem's clock.
type stamp struct {
	Invoke, Return int64 // CLOCK_MONOTONIC around the act
	Before, After  int64 // CLOCK_REALTIME around the act, nearer
	Mtime, Ctime   int64
	Act            act
	Errno          uint32
}

const stampWords = unsafe.Sizeof(stamp{}) / 8

// time is the time that a claim is dated by. Who touches a file to learn what time it is reads the mtime. Of a claim
// the later time counts: an NFSv3 server keeps the verifier of an exclusive create in the mtime until the client has
// set it.
func (s *stamp) time() int64 {
	if s.Act == touch {
		return s.Mtime
	}
	return max(s.Mtime, s.Ctime)
}

// did describes the stamp in a counterexample.
func (s *stamp) did() string {
	return fmt.Sprintf("%s: mtime %s, ctime %s, by the contender's clock %s to %s", s.Act, epochSeconds(s.Mtime), epochSeconds(s.Ctime), epochSeconds(s.Before), epochSeconds(s.After))
}

func stampsIn(words []uint64) []stamp {
	return unsafe.Slice((*stamp)(unsafe.Pointer(unsafe.SliceData(words))), len(words)/int(stampWords))
}

// What a burst of stamps is asked for: how many in the lowest bits, and how they are made.
const (
	burstCount = 1<<12 - 1
	createOnly = 1 << 12 // with pauses, so that nothing but the passing of time moves the clock
	untouched  = 1 << 13 // control: no act, only looks with pauses
	setBack    = 1 << 14 // control: an earlier time is set each time
	clockAhead = 1 << 15 // control: the contender's clock is read an hour wrong
)

const (
	oneHour     = int64(time.Hour)
	createPause = 300 * time.Microsecond
	lookPause   = 2 * time.Millisecond
	controls    = 12 // stamps of one file in a burst
)

// stampBurst leaves the files that are written and touched: made again for each burst, they would move by that alone.
var stampBurst = race.Op{Name: "stamps", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
	var fds [2]int
	for i, suffix := range []byte{'w', 't'} {
		name := sideName(e, suffix)
		fd, errno := race.Open(e.Dir, name, unix.O_CREAT|unix.O_RDWR, 0o600)
		if errno != 0 {
			return errno
		}
		defer race.Close(fd)
		fds[i] = fd
	}
	out := stampsIn(e.Words(e.ID))
	for i := range int(e.Arg & burstCount) {
		out[i] = stampOne(e, i, fds)
		e.Progress()
	}
	return 0
}}

var stampClean = race.Op{Name: "stamps" + cleanSuffix, Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
	race.Unlink(e.Dir, sideName(e, 'w'), 0)
	return race.Unlink(e.Dir, sideName(e, 't'), 0)
}}

// sideName is a name that belongs to the round's, and to this contender alone.
func sideName(e *race.Env, suffix byte) *byte {
	b := e.Buf[int(suffix)*64 : int(suffix)*64 : int(suffix+1)*64]
	b = append(append(b, unix.BytePtrToString(e.Name())...), suffix, 0)
	return unsafe.SliceData(b)
}

func stampOne(e *race.Env, i int, fds [2]int) stamp {
	s := stamp{Act: act(i % int(acts))}
	if e.Arg&createOnly != 0 {
		s.Act = create
		race.Sleep(createPause)
	}
	fd := fds[s.Act&1]
	if e.Arg&(untouched|setBack) != 0 {
		s.Act, fd = touch, fds[1]
	}
	if e.Arg&untouched != 0 {
		race.Sleep(lookPause)
	}
	s.Invoke = race.Now()
	s.Before = race.Wall()
	errno := s.perform(e, i, &fd)
	s.After = race.Wall()
	s.Return = race.Now()
	if errno == 0 {
		errno = s.look(fd)
	}
	if s.Act == create && fd >= 0 {
		race.Close(fd)
		race.Unlink(e.Dir, sideName(e, 'c'), 0)
	}
	if e.Arg&clockAhead != 0 {
		s.Before, s.After = s.Before+oneHour, s.After+oneHour
	}
	s.Errno = uint32(errno)
	return s
}

// perform is the act. A create leaves the descriptor of what it made.
func (s *stamp) perform(e *race.Env, i int, fd *int) (errno unix.Errno) {
	switch {
	case e.Arg&untouched != 0:
	case e.Arg&setBack != 0:
		errno = race.SetTimes(*fd, s.Before-int64(i)*oneHour)
	case s.Act == create:
		*fd, errno = race.Open(e.Dir, sideName(e, 'c'), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
	case s.Act == write:
		_, errno = race.Pwrite(*fd, e.Buf[:16], 0)
	default:
		errno = race.Touch(*fd)
	}
	return errno
}

func (s *stamp) look(fd int) unix.Errno {
	var st unix.Statx_t
	errno := race.Fstatx(fd, &st)
	s.Mtime, s.Ctime = race.Nanos(st.Mtime), race.Nanos(st.Ctime)
	return errno
}

// A series is stamps that one contender made, in their order, with those that failed.
type series struct {
	who    int
	stamps []stamp
}

// of is the stamps of one act, and the errnos of those that failed.
func (s *series) of(a act) (good []stamp, failures map[uint32]int) {
	failures = map[uint32]int{}
	for _, x := range s.stamps {
		switch {
		case x.Act != a:
		case x.Errno != 0:
			failures[x.Errno]++
		default:
			good = append(good, x)
		}
	}
	return good, failures
}

const (
	burstTime = 8 * time.Millisecond
	patience  = 2500 * time.Millisecond // for times that move in steps of 2 s to move once
	mostBurst = 240
	mostFails = 20 // bursts in a row that could not begin
)

// collect has one contender make stamps: at least so many for at least so long, and then, up to patience, until the
// times of each act have moved. A filesystem that is slow gets more time, but not more than there is.
func (b *Bench) collect(ctx context.Context, who int, how uint64, least int, lasting time.Duration) (series, error) {
	s := series{who: who}
	defer b.spend(time.Now())
	name := b.Line.Name()
	err := b.bursts(ctx, &s, name, how, least, lasting)
	if err == nil {
		_, err = b.Line.Do(ctx, who, stampClean.Name, name, 0)
	}
	return s, err
}

// spend takes what was used since then off the time that there is to spare.
func (b *Bench) spend(since time.Time) { b.Spare = max(0, b.Spare-time.Since(since)) }

func (b *Bench) bursts(ctx context.Context, s *series, name int64, how uint64, least int, lasting time.Duration) error {
	n, fails, began := int(acts), 0, time.Now()
	if how&(untouched|setBack) != 0 {
		n = controls
	}
	for fails < mostFails {
		start := time.Now()
		ev, err := b.Line.Do(ctx, s.who, stampBurst.Name, name, how|uint64(n))
		if err != nil {
			return err
		}
		if ev.Errno != 0 {
			s.failed(&ev)
			fails++
			continue
		}
		fails = 0
		s.stamps = append(s.stamps, stampsIn(b.Line.Words(s.who))[:n]...)
		if b.enough(s, how, least, lasting, time.Since(began)) {
			return nil
		}
		n = int(acts) * max(1, min(mostBurst, n*int(burstTime)/int(max(1, time.Since(start))))/int(acts))
	}
	return nil
}

// failed notes that a burst could not begin: each act fails with it.
func (s *series) failed(ev *race.Event) {
	for a := range acts {
		s.stamps = append(s.stamps, stamp{Act: a, Errno: ev.Errno, Invoke: ev.Invoke, Return: ev.Return})
	}
}

func (b *Bench) enough(s *series, how uint64, least int, lasting, took time.Duration) bool {
	switch {
	case took < lasting || len(s.stamps) < least && took < b.Time+b.Spare:
		return false
	case how != 0 && how != clockAhead, took >= patience:
		return true
	}
	for a := range acts {
		if good, _ := s.of(a); leastStep(good) == 0 && len(good) > 0 {
			return false
		}
	}
	return true
}

// leastStep is the smallest step forward between two stamps, one after the other; 0 if there is none.
func leastStep(ss []stamp) int64 {
	least := int64(0)
	for i := 1; i < len(ss); i++ {
		if step := ss[i].time() - ss[i-1].time(); step > 0 && (least == 0 || step < least) {
			least = step
		}
	}
	return least
}

// clockSet says that this host's clock was set in the course of some stamps, whoever made them, so that its readings
// cannot be compared. Each stamp bounds by how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC: both of its readings lie
// within [Invoke, Return]. Where no difference satisfies all stamps, it changed. A clock that is only slewed moves by
// 0.05 % at most.
func clockSet(ss []stamp) bool {
	if len(ss) == 0 {
		return false
	}
	low, high := ss[0].After-ss[0].Return, ss[0].Before-ss[0].Invoke
	for i := range ss {
		low, high = max(low, ss[i].After-ss[i].Return), min(high, ss[i].Before-ss[i].Invoke)
	}
	return low-high > int64(time.Second)/10
}

// clockWasSet is the note of a series that is worth nothing for that.
const clockWasSet = "this host's clock was set"

// rawStamps is the record of a few stamps.
func (b *Bench) rawStamps(op string, who []int, ss ...stamp) result.Round {
	r := result.Round{Operation: op, Number: int(b.Line.Name()), Phase: race.Step.String()}
	for i := range ss {
		ev := b.event(who[i%len(who)], &race.Event{Invoke: ss[i].Invoke, Return: ss[i].Return, Saw: uint64(ss[i].time()), Errno: ss[i].Errno})
		ev.Did = ss[i].did()
		r.Events = append(r.Events, ev)
	}
	return r
}
