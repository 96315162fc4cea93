package race

import (
	"sync/atomic"
	_ "unsafe" // for go:linkname
)

// nanotime is CLOCK_MONOTONIC through the vDSO: x/sys/unix.ClockGettime is a real system call, several times dearer
// than some of the operations to be timed. The Go release policy keeps this name linkable (runtime/time_nofake.go).
//
//go:linkname nanotime runtime.nanotime
//go:noescape
func nanotime() int64

// A Clock says how to correct CLOCK_MONOTONIC so that it tells the time of another kernel's. The zero Clock corrects
// nothing.
type Clock struct {
	At     int64 // the instant of this kernel's clock at which Offset is right, ns
	Offset int64 // to add, ns
	Drift  int64 // by how much Offset grows in 2^40 ns
}

// Correct is an instant of this kernel's clock on the other.
//
//go:nosplit
func (c *Clock) Correct(t int64) int64 { return t + c.Offset + (t-c.At)>>10*c.Drift>>30 }

// clock is a Clock in shared memory. It changes while contenders read it.
type clock struct {
	set atomic.Uint32 // how often it was set; the last bit says which is valid
	is  [2]Clock
}

// corrected is nil in any process but a contender.
var corrected *clock

// now is the clock of all events. In a contender of several hosts' race it is that of their coordinator.
//
//go:nosplit
func now() int64 {
	t := nanotime()
	if corrected != nil {
		t = corrected.is[corrected.set.Load()&1].Correct(t)
	}
	return t
}

// SetClock has the contenders tell another kernel's time from now on.
func (l *Line) SetClock(c Clock) {
	k := &l.sh.clock
	next := k.set.Load() + 1
	k.is[next&1] = c
	k.set.Store(next)
}

// Now is the clock of all events: CLOCK_MONOTONIC in nanoseconds.
func Now() int64 { return now() }
