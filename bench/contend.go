package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/race"
)

// work is the operation that all workloads are made of.
const work = "claim and work"

// Ops is the table of operations that contenders must be given beside those of the probes.
func Ops() []race.Op {
	return []race.Op{{Name: work, Prepare: prepare, Attempt: attempt}}
}

// me is this process, when it is a contender.
var me = &worker{trial: -1}

// A worker carries out orders, one trial after the other.
type worker struct {
	env      *race.Env
	o        *order
	trial    int64
	dir      *engine.DirFS
	hooked   bool
	protocol engine.Protocol
	steps    int64
	seen     map[verb]int64
	current  *record
	lease    engine.Lease // of a claim that was abandoned: it stays open until the death
}

// prepare opens the claim directory of the trial, which whoever comes first makes.
func prepare(e *race.Env) unix.Errno {
	me.env, me.o = e, orderIn(e.Words(e.ID))
	goes := me.o.Leave == 1 || me.o.Remove == 1
	if goes || me.o.Trial != me.trial || me.hooked || me.o.hooks() {
		me.leave()
	}
	if goes {
		return 0
	}
	me.steps, me.seen = 0, map[verb]int64{}
	if me.dir != nil {
		return 0
	}
	err := me.enter()
	if err != nil {
		me.leave()
	}
	return errnoOf(err)
}

// A contender is started without garbage collection, for the sake of the probes; here it would need the memory.
func (w *worker) enter() error {
	debug.SetGCPercent(200)
	path := w.path()
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	dir, err := openDir(path)
	if err != nil {
		return err
	}
	w.dir = dir
	w.trial = w.o.Trial
	w.protocol, err = entrants[w.o.Entrant].open(path, engine.Env{FS: w.fs(), Clock: clockOfRace{}, Nonce: engine.RandomNonce, Params: params(w.o.TTL)})
	return err
}

// path is the claim directory of the trial over this contender's route. It leads through the descriptor, not through the
// name again: others may have put a symlink in its place.
func (w *worker) path() string { return fmt.Sprintf("%s/t%d", w.route(), w.o.Trial) }

func (w *worker) route() string { return fmt.Sprintf("/proc/self/fd/%d", w.env.Dir) }

// openDir waits for a directory that was made over another route, and that this one is late to show.
func openDir(path string) (*engine.DirFS, error) {
	for until := race.Now() + int64(lateness); ; race.Sleep(time.Millisecond) {
		d, err := engine.OpenDir(path)
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, unix.ENOENT) || race.Now() > until {
			return nil, err
		}
	}
}

// lateness is how long a name may take to be seen over another route.
const lateness = 2 * time.Second

// fs has the hook only where an order needs it: latencies are those of the plain directory.
func (w *worker) fs() engine.FullFS {
	w.hooked = w.o.hooks()
	if w.hooked {
		return seam{w.dir, w.step}
	}
	return w.dir
}

func params(ttl int64) engine.Params {
	t := time.Duration(ttl)
	return engine.Params{TTL: t, Deadline: t / 2, Margin: t, Slack: t / 10}
}

func (w *worker) leave() {
	if c, ok := w.protocol.(io.Closer); ok {
		// Nothing of what it has written is needed any more.
		_ = c.Close()
	}
	if w.dir != nil {
		_ = w.dir.Close()
	}
	w.dir, w.protocol, w.trial, w.lease = nil, nil, -1, nil
	debug.SetGCPercent(-1)
}

// step is called before each operation and in the middle of an execution.
func (w *worker) step(v verb) {
	w.steps++
	w.seen[v]++
	if w.steps == w.o.KillStep {
		w.die()
	}
	if int64(v) == w.o.PauseAt && w.seen[v] == w.o.PauseNth {
		stopSelf()
	}
}

func (w *worker) die() {
	w.current.Died = race.Now()
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {} // the signal may be a moment late
}

// stopSelf returns when somebody continues this process.
func stopSelf() { _ = unix.Kill(os.Getpid(), unix.SIGSTOP) }

func attempt(_ *race.Env, ev *race.Event) unix.Errno {
	switch {
	case me.o.Leave == 1:
	case me.o.Remove == 1:
		return errnoOf(me.remove())
	case me.o.Clock == 1:
		needed, err := reserve(me.dir)
		ev.Saw = uint64(needed)
		return errnoOf(err)
	case me.o.Reclaim == 1:
		return errnoOf(me.reclaim())
	default:
		me.all()
	}
	return 0
}

func (w *worker) reclaim() error {
	if r, ok := w.protocol.(engine.Reclaimer); ok {
		_, err := r.Reclaim(1000)
		return err
	}
	return nil
}

// all tries the keys, and those that others hold again and again.
func (w *worker) all() {
	records := recordsIn(w.env.Words(w.env.ID))
	if w.o.Until == 0 {
		w.o.Until = race.Now() + w.o.Patience
	}
	for {
		left := false
		keys := atomic.LoadInt64(&w.o.Keys)
		for i := range keys {
			k := (w.o.Start + i) % keys
			if !settled(&records[k]) {
				left = true
				w.env.Progress()
				w.one(w.o.First+k, k, &records[k])
			}
		}
		if !left || race.Now() >= atomic.LoadInt64(&w.o.Until) {
			return
		}
		race.Sleep(time.Duration(w.o.Poll))
	}
}

func settled(r *record) bool { return r.Outcome == outcomeDone || r.Began != 0 }

func (w *worker) one(key, k int64, r *record) {
	if w.o.Follow == 1 && uint64(k) >= atomic.LoadUint64(horizonIn(w.env.Words(0))) {
		return
	}
	w.current = r
	out, err := w.try(sign(key), r)
	if err != nil {
		r.Outcome, r.Errno = outcomeUnknown, int64(errnoOf(err))
		return
	}
	r.Generation, r.Outcome = int64(out.Generation), int64(out.State)
	if out.State != engine.Won {
		return
	}
	r.Expires = int64(out.Lease.Expires())
	if w.o.Abandon == 1 {
		w.lease = out.Lease
		return
	}
	w.execute(key, r, out.Lease)
}

func sign(key int64) engine.Signature { return engine.Key{"key", strconv.FormatInt(key, 10)}.Sign() }

func (w *worker) try(sig engine.Signature, r *record) (engine.Outcome, error) {
	r.Tries++
	r.PID = int64(os.Getpid())
	r.Return, r.Outcome = 0, 0
	r.Invoke = race.Now()
	out, err := w.protocol.Try(sig)
	r.Return = race.Now()
	if r.Tries == 1 {
		r.FirstInvoke, r.FirstReturn = r.Invoke, r.Return
	}
	return out, err
}

// execute keeps to the contract of a lease: it looks at the clock before it begins. What it does then, a fencing sink
// has to refuse if a successor was there before.
func (w *worker) execute(key int64, r *record, lease engine.Lease) {
	began := race.Now() // not read again: whoever is stopped after the look is late, and no duplicate
	if began >= r.Expires {
		// Somebody else's soon, whether it could be given back or not.
		_ = lease.Drop()
		return
	}
	r.Began = began
	if err := w.carryOut(key, r, lease); err != nil {
		giveUp(r, lease, err)
		return
	}
	r.Done = race.Now()
}

func (w *worker) carryOut(key int64, r *record, lease engine.Lease) error {
	if w.o.Hold == 1 {
		stopSelf()
	}
	race.Sleep(time.Duration(w.o.Linger))
	w.step(executing)
	if w.o.Renew == 1 {
		if err := lease.Renew(); errors.Is(err, engine.ErrLost) {
			return err
		}
		r.Expires = int64(lease.Expires())
	}
	r.Sink = writeToSink(sinkIn(w.env.Words(0), key), uint64(r.Generation))
	r.Ended = race.Now()
	return lease.Done(nil)
}

// giveUp is for an owner that lost its lease, or got no answer whether its work counts as done. The latter is to be
// expected of one that is late.
func giveUp(r *record, lease engine.Lease, err error) {
	r.Left = race.Now()
	if !errors.Is(err, engine.ErrLost) && r.Left < r.Expires {
		r.Errno = int64(errnoOf(err))
	}
	// The next owner has to come to terms with it, given back or not.
	_ = lease.Drop()
}

// errnoOf is EPROTO for an error that carries no errno: the engine's own.
func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return errno
	default:
		return unix.EPROTO
	}
}
