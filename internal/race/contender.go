package race

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// contendArg is the hidden first argument by which this binary knows that it is a contender.
const contendArg = "contend"

// Contend does not return when the process was started as a contender: it then serves the line with the given
// operations, which must be the same table as the parent's, and exits. Call it first thing in main, and in the
// TestMain of a test that starts a line.
func Contend(ops []Op) {
	if len(os.Args) == 2 && os.Args[1] == pauseArg {
		for {
			_ = unix.Pause() // ended by the signal of the parent's death, or sooner
		}
	}
	if len(os.Args) == 2 && os.Args[1] == lingerArg {
		time.Sleep(lingers)
		os.Exit(0)
	}
	if len(os.Args) != 4 || os.Args[1] != contendArg {
		return
	}
	if err := contend(ops, os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func contend(ops []Op, id, cpu string) error {
	runtime.LockOSThread()
	i, err := strconv.Atoi(id)
	if err != nil || i < 0 || i >= MaxContenders {
		return fmt.Errorf("contender number %q", id)
	}
	if err := settleOn(cpu); err != nil {
		return err
	}
	sh, err := mapShared(shmFD)
	if err != nil {
		return err
	}
	unix.CloseOnExec(shmFD)
	unix.Umask(0) // the mode of what a contender makes carries its number
	corrected = &sh.clock
	c := &contender{sh: sh, s: &sh.slots[i], ops: ops, parent: os.Getppid(), env: newEnv(i)}
	c.s.tid = int32(unix.Gettid())
	c.env.Words = func(i int) []uint64 { return sh.words[i][:] }
	c.env.child = &c.s.child
	c.env.Progress = func() { c.s.progress.Add(1) }
	c.serve()
	return nil
}

// settleOn pins the process to one CPU, where it was allowed to run before, and takes it out of wake-up
// preemption: a woken contender must not push the leader of its lane off the CPU (sched(7), SCHED_BATCH).
// A kernel or seccomp filter that refuses either costs contention, not correctness.
func settleOn(cpu string) error {
	k, err := strconv.Atoi(cpu)
	if err != nil {
		return fmt.Errorf("CPU number %q", cpu)
	}
	var set unix.CPUSet
	set.Set(k)
	_ = unix.SchedSetaffinity(0, &set)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}, 0)
	return nil
}

// idleNap is how long a contender without a job sleeps before it looks for its parent. The kernel ends it with its
// parent anyway; this is for a parent that was gone before the kernel was asked to.
const idleNap = time.Second

type contender struct {
	sh     *shared
	s      *slot
	ops    []Op
	parent int
	env    *Env
}

// serve does job after job until the parent is gone.
func (c *contender) serve() {
	for done := c.s.done.Load(); ; {
		gen := c.s.gen.Load()
		if gen == done {
			futexSleep(&c.s.gen, gen, idleNap)
			if os.Getppid() != c.parent {
				return
			}
			continue
		}
		c.do(&c.s.job)
		done = gen
		c.s.done.Store(done)
		c.sh.bell.Add(1)
		futexWake(&c.sh.bell)
	}
}

func (c *contender) do(j *job) {
	switch j.kind {
	case jobDir:
		ev := c.stepEvent()
		ev.Errno = uint32(c.env.enter(&c.s.path))
	case jobRace:
		c.race(&c.ops[j.op], j)
	case jobStep:
		c.step(&c.ops[j.op], j)
	case jobHeat:
		c.heat(&c.ops[j.op], j)
	case jobLook:
		c.sweep(j, func(i int) { c.lookAfter(&c.ops[j.op], &c.sh.after[i]) })
	case jobClean:
		c.endHeat(&c.ops[j.op], j)
	}
}

// stepEvent is where a scripted attempt is recorded: a row of the batch of its own, so that several contenders
// can be at different steps.
func (c *contender) stepEvent() *Event {
	ev := &c.sh.events[c.env.ID]
	*ev = Event{}
	return ev
}

func (c *contender) step(op *Op, j *job) {
	e, ev := c.env, c.stepEvent()
	e.N, e.Arg, e.First, e.Made = int(j.n), j.arg, true, false
	e.at(j.first, false)
	if op.Prepare != nil {
		if errno := op.Prepare(e); errno != 0 {
			ev.Unready, ev.Errno = true, uint32(errno)
			return
		}
	}
	attempt(op, e, ev)
	if op.Observe != nil {
		op.Observe(e, ev)
	}
}

func (c *contender) race(op *Op, j *job) {
	opened := c.open(op, j)
	run := newRunner(c.sh, c.env.ID, j)
	if c.rounds(op, j, &run, opened) {
		c.sweep(j, func(i int) { c.lookAfter(op, &c.sh.after[i]) })
		if run.arrive(uint32(j.rounds + 2)) { // nobody removes anything while another still looks
			c.sweep(j, func(int) { c.clean(op) })
		}
	}
	if op.Close != nil {
		op.Close(c.env)
	}
}

// open is the beginning of a batch.
func (c *contender) open(op *Op, j *job) unix.Errno {
	e := c.env
	e.N, e.Arg, e.Made = int(j.n), j.arg, false
	if op.Open == nil {
		return 0
	}
	e.at(j.first, j.phase == Cold)
	return op.Open(e)
}

// rounds runs the batch, and reports whether it came to its end.
func (c *contender) rounds(op *Op, j *job, run *runner, opened unix.Errno) bool {
	e, n := c.env, int(j.n)
	var last *Event
	for i := range int(j.rounds) {
		ev := &c.sh.roundEvents(i, n)[e.ID]
		*ev = Event{}
		number := j.first + int64(i)
		if j.phase == Cold {
			Sleep(time.Duration(j.pause))
		}
		e.at(number, j.phase == Cold)
		e.First = run.first(number)
		ready := opened
		if ready == 0 && op.Prepare != nil {
			ready = op.Prepare(e)
		}
		c.s.progress.Add(1)
		if !run.line(uint32(i+1), number, j.startOffset(run, number)) {
			return false
		}
		if ready == 0 {
			attempt(op, e, ev)
			if op.Observe != nil {
				op.Observe(e, ev)
			}
		} else {
			ev.Unready, ev.Errno = true, uint32(ready)
		}
		if op.Settle != nil && last != nil {
			e.at(number-1, j.phase == Cold)
			op.Settle(e, last)
		}
		last = ev
	}
	if !run.arrive(uint32(j.rounds + 1)) {
		return false
	}
	if op.Settle != nil {
		e.at(j.first+int64(j.rounds)-1, j.phase == Cold)
		op.Settle(e, last)
	}
	return true
}

// attempt brackets the operation with its two times and nothing else.
//
//go:nosplit
func attempt(op *Op, e *Env, ev *Event) {
	ev.Invoke = now()
	errno := op.Attempt(e, ev)
	ev.Return = now()
	ev.Errno = uint32(errno)
}

// sweep goes through the rounds of the batch; each is one contender's.
func (c *contender) sweep(j *job, do func(i int)) {
	for i := range int(j.rounds) {
		number := j.first + int64(i)
		if int(number%int64(j.n)) == c.env.ID {
			c.env.at(number, j.phase == Cold)
			do(i)
			c.s.progress.Add(1)
		}
	}
}

func (c *contender) lookAfter(op *Op, a *After) {
	*a = After{By: Nobody, Owner: NoOwner}
	if op.After != nil {
		a.By = int16(c.env.ID)
		op.After(c.env, a)
	}
}

func (c *contender) clean(op *Op) {
	if op.Clean != nil {
		op.Clean(c.env)
	}
	if c.env.Cold {
		c.env.removeParent()
	}
}

// pauseArg is the hidden argument of a program that does nothing: what a contender executes to show what becomes
// of its locks.
const pauseArg = "pause"

// ExecPause replaces the calling contender by a program that does nothing. It returns only if that failed.
func ExecPause() unix.Errno {
	err := unix.Exec("/proc/self/exe", []string{os.Args[0], pauseArg}, []string{"GOMAXPROCS=1"})
	errno, _ := err.(unix.Errno)
	return errno
}
