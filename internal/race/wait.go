package race

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWaitOp = 0 // FUTEX_WAIT, shared between processes: not FUTEX_PRIVATE_FLAG
	futexWakeOp = 1
	nap         = 50 * time.Millisecond // longest sleep before a waiter looks at the stop word again
)

// futexWait sleeps while *w is old, for at most d. It may return early.
func futexWait(w *atomic.Uint32, old uint32, d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWaitOp, uintptr(old), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// futexSleep is futexWait for a program that has more to do: its other goroutines go on.
func futexSleep(w *atomic.Uint32, old uint32, d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWaitOp, uintptr(old), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func futexWake(w *atomic.Uint32) {
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWakeOp, 1<<31-1, 0, 0, 0)
}

// open moves the gate to seq and wakes those that sleep on it.
//
// A sleeper announces itself before the kernel compares the word, and open moves the word before it looks for
// sleepers: one of the two sees the other.
func (g *gate) open(seq uint32) {
	g.at.Store(seq)
	if g.sleepers.Load() > 0 {
		futexWake(&g.at)
	}
}

// reset closes the gate again, when nobody can be waiting at it. A contender killed while it slept is forgotten.
func (g *gate) reset() {
	g.at.Store(0)
	g.sleepers.Store(0)
}

// patience is how long a waiter spins, then yields, before it sleeps.
type patience struct{ spins, yields int }

// yieldTime bounds the yields where a system call is dear: User-mode Linux needs a hundred times as long for one, and
// what a contender waits for may need the only CPU.
const yieldTime = int64(time.Millisecond)

var (
	alone    = patience{20000, 5000} // on a CPU of its own: 20 µs of spinning, then a millisecond or more; waking up would make it late
	shareCPU = patience{40, 2000}    // the keeper of a CPU on which others have still to run
	atOnce   = patience{0, 0}        // its CPU is needed by others, and it will be woken
)

// wait returns true when the gate has reached seq, false when the batch is given up.
func (g *gate) wait(sh *shared, seq uint32, p patience) bool {
	for range p.spins {
		if g.at.Load() >= seq {
			return true
		}
	}
	until := now() + yieldTime
	for range p.yields {
		if g.at.Load() >= seq {
			return true
		}
		unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		if now() > until {
			break
		}
	}
	for {
		if at := g.at.Load(); at >= seq {
			return true
		} else if sh.stop.Load() != 0 {
			return false
		} else {
			g.sleepers.Add(1)
			futexWait(&g.at, at, nap)
			g.sleepers.Add(^uint32(0))
		}
	}
}

// A runner is a contender's place in a batch: its lane is the CPU it is pinned to, which it may share.
type runner struct {
	sh      *shared
	id      int
	n       int
	lanes   int
	lane    int
	members int // contenders in this lane
}

func newRunner(sh *shared, id int, j *job) runner {
	n, lanes := int(j.n), int(j.lanes)
	lane := id % lanes
	return runner{sh, id, n, lanes, lane, (n - lane + lanes - 1) / lanes}
}

// leads reports whether this contender is the one of its lane that stays awake for the round and starts first. The
// lead rotates, so that wins spread over a lane without help, and each lane at its own pace, so that in the long run
// every leader meets every leader of the other lanes. It stays for as many rounds as there are lanes: see first.
func (r *runner) leads(number int64) bool {
	k := int(number) / r.lanes
	return (k+r.lane*(k/r.members))%r.members == r.id/r.lanes
}

// first picks one contender of a round: the leader of one lane, the lanes taking turns.
func (r *runner) first(number int64) bool {
	return r.leads(number) && int(number)%r.lanes == r.lane
}

// line takes the contender to the start of a round, the seq-th of the batch, and returns at its start instant. It
// returns false when the batch is given up.
//
// With more contenders than CPUs only one per CPU can be inside the operation at the same instant, unless it
// blocks. So one contender of each lane, the leader, keeps its CPU busy until all have arrived; it wakes the
// others of its lane, which get the CPU as soon as the leader blocks or is done; and the leaders agree on an
// instant only when each of them is running.
func (r *runner) line(seq uint32, number, offset int64) bool {
	sh := r.sh
	if r.n <= r.lanes && !r.together(seq) || r.n > r.lanes && !r.inTurns(seq, r.leads(number)) {
		return false
	}
	at := sh.start.Load() + offset
	for now() < at {
	}
	return true
}

// together is for contenders that have a CPU each: whoever arrives last sets the instant.
func (r *runner) together(seq uint32) bool {
	sh := r.sh
	if sh.arrived.Add(1) == seq*uint32(r.n) {
		r.agree(seq)
		return true
	}
	return sh.agreed.wait(sh, seq, alone)
}

// inTurns is for contenders that share CPUs.
func (r *runner) inTurns(seq uint32, leads bool) bool {
	sh := r.sh
	if sh.arrived.Add(1) == seq*uint32(r.n) {
		sh.gen.open(seq)
	}
	if !leads {
		return sh.lanes[r.lane].wait(sh, seq, atOnce) && sh.agreed.wait(sh, seq, shareCPU)
	}
	if !sh.gen.wait(sh, seq, shareCPU) {
		return false
	}
	sh.lanes[r.lane].open(seq)
	if sh.met.Add(1) == seq*uint32(r.lanes) {
		r.agree(seq)
	}
	return sh.agreed.wait(sh, seq, alone)
}

func (r *runner) agree(seq uint32) {
	r.sh.start.Store(now() + lead)
	r.sh.agreed.open(seq)
}

// lead is how far ahead the agreed instant lies: enough for the word to reach the other CPUs.
const lead = 150 // ns

// arrive is a plain barrier, at the end of a batch.
func (r *runner) arrive(seq uint32) bool {
	if r.sh.arrived.Add(1) == seq*uint32(r.n) {
		r.sh.gen.open(seq)
	}
	return r.sh.gen.wait(r.sh, seq, shareCPU)
}
