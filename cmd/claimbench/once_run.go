package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claimbench/claimbench/engine"
)

// answerTime bounds the wait for a filesystem to take what becomes of a claim once COMMAND has ended.
const answerTime = 30 * time.Second

// once is one attempt to get the work on a key done.
type once struct {
	*onceFlags
	guard   *engine.Guard
	key     string
	command *exec.Cmd
	relay   *relay
	stderr  io.Writer
}

// doneRecord is what is kept of a command that succeeded.
type doneRecord struct {
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Finished time.Time `json:"finished"`
	Status   int       `json:"status"`
}

func (o *once) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.relay.listen(cancel)
	out, err := o.claim(ctx)
	switch {
	case ctx.Err() != nil && out.State != engine.Won:
		return context.Cause(ctx)
	case err != nil:
		return o.explain(err)
	case out.State == engine.Done:
		return o.decline(o.doneStatus, doneBy(out))
	case out.State == engine.Held:
		return o.decline(o.heldStatus, heldUntil(out))
	}
	return o.work(ctx, out)
}

// claim waits while another holds the key, if it is meant to.
func (o *once) claim(ctx context.Context) (engine.Outcome, error) {
	clock := engine.OSClock{}
	poll := min(o.ttl/10, time.Second)
	said := uint64(0)
	for began := clock.Now(); ; {
		out, err := o.guard.Claim(ctx, engine.Key{o.key})
		switch {
		case err != nil || out.State == engine.Done:
			return out, err
		case out.State == engine.Won && clock.Now() < out.Lease.Expires():
			return out, nil
		case out.State == engine.Won: // this process was stopped for so long that others may take over
			if err := out.Lease.Drop(); err != nil {
				return engine.Outcome{}, err
			}
			continue
		}
		left := time.Duration(o.wait) - (clock.Now() - began)
		if left <= 0 {
			return out, nil
		}
		if said != out.Generation {
			o.tell("%s; waiting", heldUntil(out))
			said = out.Generation
		}
		if err := clock.Sleep(ctx, min(left, poll/2+rand.N(poll/2))); err != nil {
			return out, err
		}
	}
}

func (o *once) work(ctx context.Context, out engine.Outcome) error {
	o.tell("generation %d is claimed; %s starts", out.Generation, o.command.Args[0])
	o.command.Env = environment(o.key, out.Generation)
	child, err := o.relay.start(ctx, o.command)
	if err != nil {
		return errors.Join(err, o.giveBack(out.Lease))
	}
	working, stop := context.WithCancel(context.Background())
	defer stop()
	select {
	case <-child.ended:
	case err := <-o.keep(working, out.Lease):
		if !child.hasEnded() {
			left := child.stop(o.grace())
			return errors.Join(o.fail(statusLost, "%w; %s was stopped, and nothing is recorded", err, o.command.Args[0]), left)
		}
	}
	status, signalled := child.status()
	var left error
	if signalled {
		left = child.stop(o.grace())
	}
	stop()
	if status == 0 {
		return o.record(out)
	}
	o.tell("%s ended with %d; the claim is given back", o.command.Args[0], status)
	return &statusError{status, errors.Join(left, o.giveBack(out.Lease))}
}

// grace ends half-way between the loss of a lease that ran out and the moment at which others may take over. The
// rest is for the work to be gone by then.
func (o *once) grace() time.Duration { return o.slack() / 2 }

// slack is what the engine makes of Options.Slack if that is 0.
func (o *once) slack() time.Duration { return o.ttl / 10 }

// keep renews the lease, or lets it run out without a heartbeat, and tells once when it is lost. Two goroutines,
// because a renewal can hang, and the lease ends all the same.
func (o *once) keep(working context.Context, lease engine.Lease) <-chan error {
	lost := make(chan error, 2)
	var trouble atomic.Value
	if o.heartbeat {
		go o.renew(working, lease, lost, &trouble)
	}
	go func() {
		clock := engine.OSClock{}
		for left := lease.Expires() - clock.Now(); left > 0; left = lease.Expires() - clock.Now() {
			// A timer does not count the time that a host was suspended, and the lease does.
			if clock.Sleep(working, min(left, o.slack())) != nil {
				return
			}
		}
		err := fmt.Errorf("%w: it ran out after %v", engine.ErrLost, o.ttl-o.slack())
		if last, ok := trouble.Load().(string); ok {
			err = fmt.Errorf("%w: it ran out, as renewing it failed: %s", engine.ErrLost, last)
		}
		lost <- err
	}()
	return lost
}

// renew tries again after an error that says nothing, for as long as the lease lasts.
func (o *once) renew(working context.Context, lease engine.Lease, lost chan<- error, trouble *atomic.Value) {
	for (engine.OSClock{}).Sleep(working, (o.ttl-o.slack())/3) == nil {
		err := lease.Renew()
		if errors.Is(err, engine.ErrLost) {
			lost <- err
			return
		}
		if err != nil {
			trouble.Store(oneLine(err).Error())
		}
	}
}

// record makes the key done for ever. A record that cannot be written may still have made it so: asking tells.
func (o *once) record(out engine.Outcome) error {
	host, _ := os.Hostname() // without a name the rest is still of use
	rec, err := json.Marshal(doneRecord{Host: host, PID: os.Getpid(), Finished: time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		err = within(answerTime, func() error { return persist(out.Lease, rec, min(o.ttl/10, time.Second)) })
	}
	if err == nil {
		o.tell("done")
		return nil
	}
	if errors.Is(err, engine.ErrLost) {
		return o.fail(statusLost, "%s succeeded too late: %w", o.command.Args[0], err)
	}
	verdict := "so it may run again after the TTL"
	if o.isDone() {
		verdict = "but the key counts as done"
	}
	return o.fail(statusNotRecorded, "%s succeeded, and its record could not be written, %s: %w", o.command.Args[0], verdict, err)
}

// persist tries again where the answer was no answer.
func persist(lease engine.Lease, rec []byte, pause time.Duration) error {
	var err error
	for range 3 {
		if err = lease.Done(rec); !errors.Is(err, engine.ErrUnknown) {
			return err
		}
		time.Sleep(pause)
	}
	return err
}

func (o *once) isDone() bool {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	out, err := o.guard.Claim(ctx, engine.Key{o.key})
	return err == nil && out.State == engine.Done
}

func (o *once) giveBack(lease engine.Lease) error {
	if err := within(answerTime, lease.Drop); err != nil {
		return fmt.Errorf("key %s: the claim could not be given back, so others wait for the TTL: %w", shown(o.key), oneLine(err))
	}
	return nil
}

// within gives up waiting after d. The call goes on, for as long as this process does.
func within(d time.Duration, call func() error) error {
	answered := make(chan error, 1)
	go func() { answered <- call() }()
	select {
	case err := <-answered:
		return err
	case <-time.After(d):
		return fmt.Errorf("no answer within %v", d)
	}
}

// tell is for -v.
func (o *once) tell(format string, args ...any) {
	if o.verbose {
		fmt.Fprintf(o.stderr, "claimbench: key %s: %s\n", shown(o.key), fmt.Sprintf(format, args...))
	}
}

func (o *once) fail(status int, format string, args ...any) error {
	return &statusError{status, oneLine(fmt.Errorf("key %s: "+format, append([]any{shown(o.key)}, args...)...))}
}

// decline ends without COMMAND. Whoever set the status to 0 does not want to hear of it.
func (o *once) decline(status uint8, why string) error {
	if status == 0 {
		o.tell("%s", why)
		return nil
	}
	return o.fail(int(status), "%s", why)
}

func doneBy(out engine.Outcome) string {
	var r doneRecord
	if out.Torn || json.Unmarshal(out.Record, &r) != nil || r.PID == 0 {
		return "already done; no record says by whom"
	}
	return fmt.Sprintf("already done by %s, process %d, at %s", r.Host, r.PID, r.Finished.Format(time.RFC3339))
}

func heldUntil(out engine.Outcome) string {
	if out.Until.IsZero() {
		return "held by another"
	}
	return fmt.Sprintf("held by another, generation %d, until %s unless renewed", out.Generation, out.Until.UTC().Format(time.RFC3339))
}

// shown is a key as a message quotes it.
func shown(key string) string {
	const most = 60
	if len(key) <= most {
		return fmt.Sprintf("%q", key)
	}
	return fmt.Sprintf("%q... (%d bytes)", key[:most], len(key))
}

// oneLine keeps joined errors on the line of what they are about.
func oneLine(err error) error {
	if !strings.Contains(err.Error(), "\n") {
		return err
	}
	return &flatError{err}
}

type flatError struct{ error }

func (e *flatError) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e *flatError) Unwrap() error { return e.error }

// environment leaves out a key that execve(2) would refuse, and one that is left from another once around this one.
func environment(key string, generation uint64) []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "CLAIMBENCH_KEY=") && !strings.HasPrefix(e, "CLAIMBENCH_GENERATION=") {
			env = append(env, e)
		}
	}
	if k := "CLAIMBENCH_KEY=" + key; len(k) < maxEnv && !strings.Contains(key, "\x00") {
		env = append(env, k)
	}
	return append(env, fmt.Sprintf("CLAIMBENCH_GENERATION=%d", generation))
}
