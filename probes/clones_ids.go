package probes

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

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
	{Name: "open-excl-alike", Attempt: createOnHeld(unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY), Observe: observeCreated},
	{Name: "create-alike", Attempt: createOnHeld(unix.O_CREAT | unix.O_WRONLY), Observe: observeCreated},
}

// read looks at everything.
func (c *ticker) read() unix.Errno {
	*c = ticker{}
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns == initialPIDs {
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

// initialPIDs is the initial pid namespace: PROC_PID_INIT_INO in include/linux/proc_ns.h.
const initialPIDs = "pid:[4026531836]"

func errnoIn(err error) unix.Errno {
	for {
		switch e := err.(type) {
		case nil:
			return 0
		case unix.Errno:
			return e
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return unix.EIO
		}
	}
}

// readTicks reads the count over and over, at changing distances from the tick. A count that is read began before that: the
// earliest beginning that a reading allows is nearest. The length of a tick is the resolution of the clocks that tick.
func (c *ticker) readTicks() unix.Errno {
	var tick unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return errnoIn(err)
	}
	c.Tick = tick.Nano()
	for i := range 24 {
		n, err := jiffies()
		now := race.Now()
		if err != nil {
			return c.estimate()
		}
		if i == 0 {
			c.Count, c.At = n, now
		}
		c.At = min(c.At, now-(n-c.Count)*c.Tick)
		race.Sleep(time.Duration(c.Tick) * 3 / 10)
	}
	return 0
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

// hold ends thread after thread until one has the id wanted, and keeps that one. ESRCH says that the id was passed, and is
// another's.
func hold(e *race.Env) unix.Errno {
	if heldThread != nil {
		heldThread.end()
		heldThread = nil
	}
	wanted := int(e.Arg)
	for last, n := wanted, 0; n < mostThreads; n++ {
		t := newThread()
		if t.id == wanted {
			heldThread = t
			return 0
		}
		t.end()
		if last < wanted && wanted < t.id {
			return unix.ESRCH
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
			sleepUntil(int64(e.Arg))
			ev.Invoke = race.Now()
			e.Fd, errno = race.Open(e.Dir, e.Name(), flags, e.Mark())
		})
		return errno
	}
}

// sleepUntil spins in the end, as a sleep may end late.
func sleepUntil(at int64) {
	const spin = 300 * time.Microsecond
	if left := time.Duration(at-race.Now()) - spin; left > 0 {
		race.Sleep(left)
	}
	for race.Now() < at {
	}
}
