package race

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Config says what a line is made of.
type Config struct {
	Ops        []Op          // the same table that the contenders were given in Contend
	Contenders int           // processes to keep ready, 1 to MaxContenders
	First      int           // the number of the first of them; with another than 0 the line can do steps and heats, and no Race
	Place      int           // which of the CPUs the first is pinned to; the others follow in turn
	HangAfter  time.Duration // a contender that shows no progress for so long hangs
	Seed       uint64        // of the jitter
}

// A Line is a set of contender processes ready to race. It is not safe for concurrent use.
type Line struct {
	cfg       Config
	sh        *shared
	mem       *os.File
	cpus      []int
	procs     [MaxContenders]*proc
	dirs      []string
	number    int64              // of the next round; names are never used twice
	inBatch   int                // rounds of the batch under way, or of the last one
	abandoned int                // contenders in state D that were left behind
	heat      Heat               // the last one
	look      func() (idle bool) // called while contenders are waited for: whether they in turn wait for somebody else
	thread    chan func()
}

// A proc is one contender process. Its exit is seen by a goroutine that closes gone.
type proc struct {
	cmd    *exec.Cmd
	cpu    int
	at     string // the directory it was taken to
	stderr bytes.Buffer
	gone   chan struct{}
	err    error // valid when gone is closed
}

// A HungError says which contender showed no progress for too long.
type HungError struct {
	Contender int
	Op        string
	After     time.Duration
	State     string // of the process: D is a system call that cannot be interrupted
}

func (e *HungError) Error() string {
	return fmt.Sprintf("%s: contender %d did not come back within %v (process state %s)", e.Op, e.Contender, e.After, e.State)
}

// A DiedError says that a contender ended on its own: the harness failed, which says nothing about the filesystem.
type DiedError struct {
	Contender int
	Op        string
	Cause     string
}

func (e *DiedError) Error() string {
	return fmt.Sprintf("%s: contender %d ended unexpectedly: %s", e.Op, e.Contender, e.Cause)
}

// Start makes a line and starts its contenders.
func Start(cfg Config) (*Line, error) {
	if cfg.Contenders < 1 || cfg.Contenders > MaxContenders {
		return nil, fmt.Errorf("%d contenders: must be 1 to %d", cfg.Contenders, MaxContenders)
	}
	if cfg.First < 0 || cfg.First+cfg.Contenders > MaxContenders {
		return nil, fmt.Errorf("contender %d: there are at most %d", cfg.First+cfg.Contenders-1, MaxContenders)
	}
	cpus, err := allowedCPUs()
	if err != nil {
		return nil, err
	}
	sh, mem, err := newShared()
	if err != nil {
		return nil, err
	}
	l := &Line{cfg: cfg, sh: sh, mem: mem, cpus: cpus, number: 1, thread: make(chan func())}
	// Whatever else this process has open is not the contenders' business: a /dev/fuse that they inherit keeps a dead
	// filesystem's callers waiting. Kernels before 5.11 do not know the flag.
	_ = unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
	go spawner(l.thread)
	for i := cfg.First; i < cfg.First+cfg.Contenders; i++ {
		if err := l.spawn(i); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// spawner runs what starts processes on one thread that stays: Pdeathsig fires when the thread that created the
// child ends, not the process (go.dev/issue/27505).
func spawner(do <-chan func()) {
	runtime.LockOSThread()
	for f := range do {
		f()
	}
}

func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	var cpus []int
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
}

func (l *Line) spawn(i int) error {
	cpu := l.cpus[(l.cfg.Place+i-l.cfg.First)%len(l.cpus)]
	p := &proc{cpu: cpu, gone: make(chan struct{})}
	p.cmd = &exec.Cmd{
		// The link names the running image even when the file it came from was replaced.
		Path:       "/proc/self/exe",
		Args:       []string{os.Args[0], contendArg, strconv.Itoa(i), strconv.Itoa(cpu)},
		Env:        []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1", "GORACE=" + os.Getenv("GORACE")},
		Stderr:     &p.stderr,
		WaitDelay:  time.Second,
		ExtraFiles: []*os.File{l.mem},
		// A group of its own, so that Ctrl-C reaches the parent alone and the parent decides.
		SysProcAttr: &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL},
	}
	if old := l.procs[i]; old != nil && !old.isGone() {
		l.abandoned++
	}
	s := &l.sh.slots[i]
	s.done.Store(s.gen.Load())
	started := make(chan error)
	l.thread <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		exe, _ := os.Executable()
		return fmt.Errorf("start a contender from %s: %w", exe, errnoOf(err))
	}
	go func() {
		p.err = p.cmd.Wait()
		l.sh.bell.Add(1)
		futexWake(&l.sh.bell)
		close(p.gone) // last: Close takes the shared memory away when all are gone
	}()
	l.procs[i] = p
	return nil
}

func errnoOf(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// Enter takes all contenders to a directory: contender i to dirs[i % len(dirs)], one per route. What Beneath returns is
// entered without following a symlink.
func (l *Line) Enter(ctx context.Context, dirs ...string) error {
	l.dirs = dirs
	for i := l.cfg.First; i < l.cfg.First+l.cfg.Contenders; i++ {
		if err := l.ready(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// ready takes a contender to its directory, unless it is there: one that was replaced is not.
func (l *Line) ready(ctx context.Context, i int) error {
	if len(l.dirs) == 0 || l.procs[i].at == l.dirs[l.Route(i)] {
		return nil
	}
	return l.enter(ctx, i)
}

func (l *Line) enter(ctx context.Context, i int) error {
	dir := l.dirs[l.Route(i)]
	s := &l.sh.slots[i]
	path := shown(dir)
	if len(dir)+2 > maxPath {
		return fmt.Errorf("enter %.40s...: %w", path, unix.ENAMETOOLONG)
	}
	clear(s.path[copy(s.path[:], dir):])
	l.post(i, job{kind: jobDir})
	if err := l.await(ctx, "enter "+path, i); err != nil {
		return err
	}
	if errno := unix.Errno(l.sh.events[i].Errno); errno != 0 {
		return &os.PathError{Op: "open", Path: path, Err: errno}
	}
	l.procs[i].at = dir
	return nil
}

// Route is the index of the directory that contender i was taken to.
func (l *Line) Route(i int) int { return i % max(1, len(l.dirs)) }

// Contender names the process of contender i.
func (l *Line) Contender(i int) Identity {
	p := l.procs[i]
	return Identity{PID: p.cmd.Process.Pid, TID: int(l.sh.slots[i].tid), CPU: p.cpu}
}

// Words are contender i's words of the shared memory: see Env.
func (l *Line) Words(i int) []uint64 { return l.sh.words[i][:] }

// Contenders is the number of processes on the line.
func (l *Line) Contenders() int { return l.cfg.Contenders }

// Stopped reports whether contender i is stopped by a signal.
func (l *Line) Stopped(i int) bool { return l.procs[i].state() == "T" }

// Gone reports whether contender i's process has ended.
func (l *Line) Gone(i int) bool { return l.procs[i].isGone() }

// Continue ends the stop of contender i.
func (l *Line) Continue(i int) {
	// One that has ended needs no signal.
	_ = l.procs[i].cmd.Process.Signal(unix.SIGCONT)
}

// Became reports whether contender i executes another program than it was started as.
func (l *Line) Became(i int) bool {
	p := l.procs[i]
	now, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.cmd.Process.Pid))
	return err == nil && len(now) > 0 && string(now) != strings.Join(p.cmd.Args, "\x00")+"\x00"
}

// Clock says which clock contender i's times are of, and by how much they may be wrong, ns. Times of one clock are
// compared as they are.
func (l *Line) Clock(int) (which int, unsure int64) { return 0, 0 }

// Abandoned is the number of processes that did not end when they were killed, and were left behind.
func (l *Line) Abandoned() int { return l.abandoned }

// Routes is the number of directories that the contenders were taken to.
func (l *Line) Routes() int { return len(l.dirs) }

// CPUs is the number of CPUs the contenders are spread over.
func (l *Line) CPUs() int { return len(l.cpus) }

// Meets is the operation's Meets, for those who judge its rounds.
func (l *Line) Meets(op string) func(*Event) bool { return l.cfg.Ops[l.op(op)].Meets }

func (l *Line) op(name string) uint32 {
	for i := range l.cfg.Ops {
		if l.cfg.Ops[i].Name == name {
			return uint32(i)
		}
	}
	panic("race: no operation " + name)
}

// post hands contender i a job.
func (l *Line) post(i int, j job) {
	s := &l.sh.slots[i]
	s.progress.Store(0)
	s.job = j
	s.gen.Add(1)
	futexWake(&s.gen)
}

// await returns when the contenders have done their jobs. After an error the line is usable again: contenders
// that did not come back were killed and replaced.
func (l *Line) await(ctx context.Context, what string, ids ...int) error {
	err := l.watch(ctx, what, ids)
	if err != nil {
		return errors.Join(err, l.recover(ids))
	}
	return nil
}

// watch waits for the contenders, for the end of the context, or for a reason to give up.
func (l *Line) watch(ctx context.Context, what string, ids []int) error {
	seen, since := uint32(0), time.Now()
	for {
		bell := l.sh.bell.Load()
		late, progress := -1, uint32(0)
		for _, i := range ids {
			s := &l.sh.slots[i]
			progress += s.progress.Load() + s.done.Load()
			if s.done.Load() == s.gen.Load() {
				continue
			}
			late = i
			if l.procs[i].isGone() {
				return &DiedError{i, what, l.procs[i].cause()}
			}
		}
		switch {
		case late < 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case l.look != nil && l.look(), progress != seen:
			seen, since = progress, time.Now()
		case time.Since(since) > l.cfg.HangAfter:
			late = l.stuck(ids, late)
			state, after := l.procs[late].state(), l.cfg.HangAfter
			if state == "R" {
				after *= starved
			}
			if time.Since(since) > after {
				return &HungError{late, what, after, state}
			}
		}
		futexSleep(&l.sh.bell, bell, nap)
	}
}

// starved is how many times as long a contender is waited for that could run, and is given no CPU: it does not hang.
const starved = 10

// stuck picks, of the contenders that are late, one that is inside its attempt, or else the one that came least far;
// the others only wait for it.
func (l *Line) stuck(ids []int, late int) int {
	n := len(ids)
	for _, i := range ids {
		for k := range l.inBatch {
			if ev := &l.sh.roundEvents(k, n)[min(i, n-1)]; ev.Invoke != 0 && ev.Return == 0 {
				return i
			}
		}
	}
	for _, i := range ids {
		if s := &l.sh.slots[i]; s.done.Load() != s.gen.Load() && s.progress.Load() < l.sh.slots[late].progress.Load() {
			late = i
		}
	}
	return late
}

// recover ends the running jobs, and replaces the contenders that do not come back.
func (l *Line) recover(ids []int) error {
	l.sh.stop.Store(1)
	l.wakeAll()
	until := time.Now().Add(300 * time.Millisecond)
	var err error
	var late []*proc
	for _, i := range ids {
		s := &l.sh.slots[i]
		for s.done.Load() != s.gen.Load() && !l.procs[i].isGone() && time.Now().Before(until) {
			time.Sleep(time.Millisecond)
		}
		if s.done.Load() != s.gen.Load() {
			late = append(late, l.procs[i])
		}
	}
	kill(late)
	l.sh.stop.Store(0)
	for _, i := range ids {
		if l.sh.slots[i].done.Load() != l.sh.slots[i].gen.Load() {
			err = errors.Join(err, l.spawn(i))
		}
	}
	return err
}

func (l *Line) wakeAll() {
	futexWake(&l.sh.gen.at)
	futexWake(&l.sh.agreed.at)
	for i := range l.sh.lanes {
		futexWake(&l.sh.lanes[i].at)
	}
}

func (p *proc) isGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// kill ends the processes and waits a moment for them. One in state D is left behind: it can no longer return to
// its program, so it cannot touch the shared memory either.
func kill(procs []*proc) {
	for _, p := range procs {
		_ = p.cmd.Process.Kill()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, p := range procs {
		select {
		case <-p.gone:
		case <-ctx.Done():
		}
	}
}

func (p *proc) cause() string {
	cause := "exit status 0"
	if p.err != nil {
		cause = p.err.Error()
	}
	if first, _, _ := strings.Cut(p.stderr.String(), "\n"); first != "" {
		cause += ": " + first
	}
	return cause
}

// state is the letter of proc_pid_stat(5).
func (p *proc) state() string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if _, after, ok := bytes.Cut(b, []byte(") ")); err == nil && ok {
		return string(after[:1])
	}
	return "unknown"
}

// Close ends all contenders.
func (l *Line) Close() error {
	procs := slices.DeleteFunc(slices.Clone(l.procs[:]), func(p *proc) bool { return p == nil })
	kill(procs)
	close(l.thread)
	err := l.mem.Close()
	if !slices.ContainsFunc(procs, func(p *proc) bool { return !p.isGone() }) && l.abandoned == 0 {
		err = errors.Join(err, l.sh.unmap())
	}
	return err
}

// Kill ends contender i with SIGKILL, whatever it is doing, and returns when it is gone. Restart brings it back.
func (l *Line) Kill(i int) { kill(l.procs[i : i+1]) }

// Restart replaces contender i, which was killed or has executed something else, and takes it to its directory.
func (l *Line) Restart(ctx context.Context, i int) error {
	kill(l.procs[i : i+1])
	if err := l.spawn(i); err != nil {
		return err
	}
	return l.ready(ctx, i)
}

// Name takes a round number that was not used before, for Do.
func (l *Line) Name() int64 {
	l.number++
	return l.number - 1
}

// Do makes one contender attempt an operation once, alone, and returns what it saw.
func (l *Line) Do(ctx context.Context, who int, op string, number int64, arg uint64) (Event, error) {
	if err := l.ready(ctx, who); err != nil {
		return Event{}, err
	}
	l.Begin(who, op, number, arg)
	return l.Await(ctx, who, op)
}

// Begin is Do without waiting for the end; Await waits for it.
func (l *Line) Begin(who int, op string, number int64, arg uint64) {
	l.sh.events[who] = Event{}
	l.post(who, job{kind: jobStep, op: l.op(op), n: 1, lanes: 1, first: number, arg: arg})
}

// Await waits for what Begin began.
func (l *Line) Await(ctx context.Context, who int, op string) (Event, error) {
	err := l.await(ctx, op, who)
	return l.sh.events[who], err
}

// Pending reports whether what Begin began is still under way, and when it entered the attempt (0: not yet).
func (l *Line) Pending(who int) (pending bool, invoke int64) {
	s := &l.sh.slots[who]
	return s.done.Load() != s.gen.Load(), l.sh.events[who].Invoke
}
