package probes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/facts"
	"github.com/claimbench/claimbench/internal/race"
)

// A ticker is what a contender says of what its kernel makes verifiers of, in its words.
type ticker struct {
	Boot      uint64 // of the boot id: another number, another kernel
	Initial   uint64 // 1 if its thread ids are those of the initial pid namespace, by which the kernel goes
	Estimated uint64 // 1 if the count is the time since boot
	Tick      int64  // ns
	Count     int64  // of ticks
	At        int64  // when that began, on the clock of events
	Unsure    int64  // how wrong At may be, ns
	ID        int64  // of its last thread
	MostID    int64  // beyond which ids begin again
}

func tickerOf(words []uint64) *ticker { return (*ticker)(unsafe.Pointer(&words[0])) }

// until is how much later another kernel has a count than this one, ns. The verifier has the last 32 bits of it.
func (c *ticker) until(o *ticker) int64 {
	return o.At - c.At + int64(int32(c.Count-o.Count))*c.Tick
}

// at is the count at an instant.
func (c *ticker) at(instant int64) int64 {
	ticks := (instant - c.At) / c.Tick
	if instant < c.At+ticks*c.Tick {
		ticks--
	}
	return c.Count + ticks
}

// begins is when it has a count.
func (c *ticker) begins(count int64) int64 { return c.At + (count-c.Count)*c.Tick }

// straysPPM is by how much a kernel's clock may be faster or slower than the clock of events: it is slewed by 500 ppm at
// most (adjtimex(2)), and crystals differ by less than the rest.
const straysPPM = 600

// strays is how far the count may have strayed since it was read, or will have by then, ns.
func (c *ticker) strays(instant int64) int64 {
	return max(instant-c.At, c.At-instant) * straysPPM / 1e6
}

// stale says that the count has to be read again, as it is unsure by much of a tick, or will be soon.
func (c *ticker) stale(now int64) bool { return c.strays(now) > c.Tick/10 || c.Unsure > c.Tick/4 }

// tooFar says why two kernels cannot be made to look like one, or "".
func (c *ticker) tooFar(o *ticker) string {
	apart := time.Duration(c.until(o)).Abs()
	wanted := c.nextID(o)
	switch {
	case c.Initial == 0 || o.Initial == 0:
		return "thread ids are those of a container's pid namespace, and the kernel goes by others"
	case c.Tick != o.Tick:
		return fmt.Sprintf("one kernel's tick lasts %v, the other's %v, so that their counts do not stay alike", time.Duration(c.Tick), time.Duration(o.Tick))
	case apart > mostApart:
		return fmt.Sprintf("their counts of ticks since boot are %v apart, so that creates with equal ones are no race", apart.Round(10*time.Millisecond))
	case max(c.threadsTo(wanted), o.threadsTo(wanted)) > mostThreads:
		return fmt.Sprintf("their thread ids, %d and %d, are too far apart to have one in common", c.ID, o.ID)
	}
	return ""
}

const (
	idMargin = 24  // ids that other programs may take meanwhile
	leastID  = 300 // where ids begin again (kernel/pid.c)
)

// nextID is a thread id that lies before both.
func (c *ticker) nextID(o *ticker) int64 {
	if next := max(c.ID, o.ID) + idMargin; next < min(c.MostID, o.MostID) {
		return next
	}
	return leastID + idMargin
}

// threadsTo is how many threads have to begin until one has the id.
func (c *ticker) threadsTo(id int64) int64 {
	if id > c.ID {
		return id - c.ID
	}
	return c.MostID - c.ID + id - leastID
}

var cloneOps = []race.Op{
	{Name: "clones:look", Attempt: func(e *race.Env, _ *race.Event) unix.Errno { return tickerOf(e.Words(e.ID)).read() }},
	{Name: "clones:hold", Attempt: func(e *race.Env, _ *race.Event) unix.Errno { return hold(e) }},
	{Name: "clones:approach", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		return errnoIn(unix.Faccessat(e.Dir, ".", unix.W_OK|unix.X_OK, 0))
	}},
	{Name: exclAlike, Attempt: createOnHeld(unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY), Observe: observeOnHeld},
	{Name: createAlike, Attempt: createOnHeld(unix.O_CREAT | unix.O_WRONLY), Observe: observeOnHeld},
}

// read looks at everything.
func (c *ticker) read() unix.Errno {
	*c = ticker{}
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns == facts.InitialPIDNamespace {
		c.Initial = 1
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return errnoIn(err)
	}
	h := fnv.New64a()
	_, _ = h.Write(boot) // never fails
	c.Boot = h.Sum64()
	most, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return errnoIn(err)
	}
	if c.MostID, err = strconv.ParseInt(strings.TrimSpace(string(most)), 10, 64); err != nil {
		return unix.EINVAL
	}
	t := newThread()
	c.ID = int64(t.id)
	t.end()
	return c.readTicks()
}

// errnoIn is EIO for an error that carries no errno.
func errnoIn(err error) unix.Errno {
	var errno unix.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return errno
	}
	return unix.EIO
}

// readTicks reads the count over and over, for some ticks. The length of a tick is the resolution of the clocks that tick.
func (c *ticker) readTicks() unix.Errno {
	var tick unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return errnoIn(err)
	}
	c.Tick = tick.Nano()
	var all []reading
	for began, now := race.Now(), int64(0); len(all) < leastReadings || now < began+4*c.Tick; {
		before := race.Now()
		n, err := jiffies()
		if now = race.Now(); err != nil {
			return c.estimate()
		}
		all = append(all, reading{before, now, n})
	}
	c.fit(all)
	return 0
}

const leastReadings = 24

// A reading is a count, and when it was read: between two instants.
type reading struct{ before, after, count int64 }

// fit is what all readings allow: a count had begun when its reading was over, and the next one had not when it began. The
// middle of what is left is nearest. Where nothing is left, a tick came late by what is missing.
func (c *ticker) fit(all []reading) {
	c.Count = all[0].count
	earliest, latest := int64(math.MinInt64), int64(math.MaxInt64)
	for _, r := range all {
		passed := (r.count - c.Count) * c.Tick
		earliest, latest = max(earliest, r.before-passed-c.Tick), min(latest, r.after-passed)
	}
	c.At = earliest + (latest-earliest)/2
	c.Unsure = max(latest-earliest, earliest-latest)/2 + 1
}

// jiffies reads the kernel's count of ticks, which only root may.
func jiffies() (int64, error) {
	f, err := os.Open("/proc/timer_list")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if n, ok := bytes.CutPrefix(lines.Bytes(), []byte("jiffies: ")); ok {
			return strconv.ParseInt(string(n), 10, 64)
		}
	}
	return 0, unix.ENODATA
}

// estimate takes the count for the time since boot. It begins five minutes before an overflow (INITIAL_JIFFIES), and lags
// by how long the kernel took until its first tick, of which clones have the same.
func (c *ticker) estimate() unix.Errno {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return errnoIn(err)
	}
	c.Estimated = 1
	perSecond := (int64(time.Second) + c.Tick/2) / c.Tick
	c.Count = ts.Nano()/c.Tick + 1<<32 - 300*perSecond
	c.At = race.Now() - ts.Nano()%c.Tick
	return 0
}

// A thread is a thread of the operating system, which does what it is given until it ends.
type thread struct {
	id   int
	work chan func()
	done chan struct{}

	returned int64 // when its create did
}

// newThread takes one that nobody uses, or else makes one: then it has the next id.
func newThread() *thread {
	t := &thread{work: make(chan func()), done: make(chan struct{})}
	go func() {
		runtime.LockOSThread() // never undone: the thread ends with the goroutine
		t.id = unix.Gettid()
		t.done <- struct{}{}
		for do := range t.work {
			do()
			t.done <- struct{}{}
		}
		t.done <- struct{}{}
	}()
	<-t.done
	return t
}

func (t *thread) do(f func()) {
	t.work <- f
	<-t.done
}

// end waits, or else the threads that are to end would pile up.
func (t *thread) end() {
	close(t.work)
	<-t.done
}

// heldThread is the contender's thread that creates, from one order to the next.
var heldThread *thread

// holding is the order to hold a thread of an id, and how long that may take.
func holding(id int64, d time.Duration) uint64 {
	return uint64(id) | uint64(max(0, d.Milliseconds()))<<32
}

// hold ends thread after thread until one has the id wanted, and keeps that one. ESRCH says that the id was passed, and is
// another's.
func hold(e *race.Env) unix.Errno {
	if heldThread != nil {
		heldThread.end()
		heldThread = nil
	}
	wanted, until := int(uint32(e.Arg)), time.Now().Add(time.Duration(e.Arg>>32)*time.Millisecond)
	last := int(tickerOf(e.Words(e.ID)).ID) // of the look
	for range mostThreads {
		t := newThread()
		if t.id == wanted {
			heldThread = t
			return 0
		}
		t.end()
		if last < wanted && wanted < t.id {
			return unix.ESRCH
		}
		if time.Now().After(until) {
			return unix.ETIMEDOUT
		}
		last = t.id
		e.Progress()
	}
	return unix.EAGAIN
}

// createOnHeld creates the round's name on that thread, at the instant in Arg.
func createOnHeld(flags int) func(*race.Env, *race.Event) unix.Errno {
	return func(e *race.Env, ev *race.Event) (errno unix.Errno) {
		if heldThread == nil {
			return unix.ESRCH
		}
		ev.Saw = uint64(heldThread.id)
		heldThread.do(func() {
			sleepUntil(int64(e.Arg), e.Progress)
			ev.Invoke = race.Now()
			e.Fd, errno = race.Open(e.Dir, e.Name(), flags, e.Mark())
			heldThread.returned = race.Now()
		})
		return errno
	}
}

// observeOnHeld leaves out how long the thread took to hand over what it did.
func observeOnHeld(e *race.Env, ev *race.Event) {
	if heldThread != nil {
		ev.Return = heldThread.returned
	}
	observeCreated(e, ev)
}

// sleepUntil spins in the end, as a sleep may end late. Nobody hangs who waits for that instant.
func sleepUntil(at int64, progress func()) {
	const spin, slice = 300 * time.Microsecond, 200 * time.Millisecond
	for left := time.Duration(at-race.Now()) - spin; left > 0; left = time.Duration(at-race.Now()) - spin {
		progress()
		race.Sleep(min(left, slice))
	}
	for race.Now() < at {
	}
	progress()
}
