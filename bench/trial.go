package bench

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// begins is the beginning of every trial: its sinks have seen no generation yet, and somebody watches.
func (b *bencher) begins() *watcher {
	clear(b.Line.Words(0)[wordsOfOrder : wordsOfOrder+wordsOfSink])
	return watch()
}

// conclude is the end of every trial. It is judged if nothing came between; otherwise it is void. A duplicate that was
// seen was seen all the same, unless it may come from the clock.
func (b *bencher) conclude(r *row, o order, all []attempted, w *watcher, err error) (judged bool, end error) {
	disturbed := w.disturbed()
	void, end := b.harness(err)
	if end != nil {
		return false, end
	}
	if b.farApart() {
		fence(all)
	}
	v := judge(r.routes, keysOf(o), all)
	if void = cmp.Or(disturbed, void, unanswered(all)); void == "" && v.missed > 0 {
		void = answeredLate(all)
	}
	if void != "" && (disturbed != "" || v.duplicates == 0) {
		r.void(void)
		return false, nil
	}
	if r.perKey {
		r.addEach(keysOf(o), all)
	} else {
		r.add(keysOf(o), all)
	}
	if b.Times {
		r.when(keysOf(o), w.began, all)
	}
	return true, nil
}

// farApart says that contenders are on several hosts, which have no sink in common.
func (b *bencher) farApart() bool {
	first := b.Line.Contender(0).Host
	for i := range b.Line.Contenders() {
		if b.Line.Contender(i).Host != first {
			return true
		}
	}
	return false
}

// fence says what one sink of all hosts would have answered: it writes when the work ends, and refuses a generation lower
// than the highest before. TTLs lie between those writes, beside which what is not known of the hosts' clocks is nothing.
func fence(all []attempted) {
	for i := range all {
		a := &all[i]
		if a.sink == 0 {
			continue
		}
		a.sink = sinkAccepted
		for j := range all {
			if b := &all[j]; b.sink != 0 && b.Key == a.Key && b.Ended < a.Ended && b.Generation > a.Generation {
				a.sink = sinkRefused
			}
		}
	}
}

// A voidError is why a trial shows nothing.
type voidError string

func (e voidError) Error() string { return string(e) }

// harness tells errors that void a trial from those that end the workload. A filesystem that keeps a contender even from
// being killed would keep the next ones, too.
func (b *bencher) harness(err error) (void string, end error) {
	var died *race.DiedError
	var hung *race.HungError
	var shows voidError
	switch {
	case b.ctx.Err() != nil:
		return "", b.ctx.Err()
	case err == nil:
		return "", nil
	case b.hangs(err):
		return "", err
	case errors.As(err, &died), errors.As(err, &hung), errors.As(err, &shows), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return strings.ReplaceAll(err.Error(), "\n", "; "), nil
	default:
		return "", err
	}
}

// hangs says that a contender did not come back, and could not be killed either.
func (b *bencher) hangs(err error) bool {
	var hung *race.HungError
	return errors.As(err, &hung) && b.Line.Abandoned() > b.abandoned
}

// attempts are what the contenders recorded about the keys of a trial. One whose process is gone died after the last
// sign of it, if nobody knows better.
func (b *bencher) attempts(o order, who ...int) []attempted {
	var all []attempted
	for _, i := range who {
		pid := b.Line.Contender(i).PID
		clock, unsure := b.Line.Clock(i)
		for k, r := range recordsIn(b.Line.Words(i))[:o.Keys] {
			if r.Tries == 0 {
				continue
			}
			a := attempted{
				Attempt: result.Attempt{
					Contender: i, Route: b.Line.Route(i), PID: int(r.PID), Key: int(o.First) + k, Invoke: r.Invoke, Return: r.Return,
					Outcome: outcomes[r.Outcome], Generation: uint64(r.Generation), Expires: r.Expires,
					Began: r.Began, Ended: r.Ended, Done: r.Done, Died: r.Died,
				},
				tries: r.Tries, firstInvoke: r.FirstInvoke, firstReturn: r.FirstReturn, left: r.Left, sink: r.Sink, errno: unix.Errno(r.Errno),
				clock: clock, unsure: unsure,
			}
			if gone := int(r.PID) != pid || b.Line.Gone(i); gone && a.Died == 0 && a.Done == 0 {
				a.Died = max(a.Invoke, a.Return, a.Began, a.Ended, a.left)
			}
			all = append(all, a)
		}
	}
	return all
}

// unanswered is why a trial is void though its contenders came back: some got no answer to the last that they asked.
func unanswered(all []attempted) string {
	return noAnswer(all, func(a *attempted) bool {
		return a.Outcome == outcomes[outcomeUnknown] || a.errno != 0 && a.Began != 0 && a.Done == 0
	})
}

// answeredLate is for those who got an answer in the end. What they asked before may have claimed the key for nobody.
func answeredLate(all []attempted) string {
	return noAnswer(all, func(a *attempted) bool { return a.errno != 0 })
}

func noAnswer(all []attempted, is func(*attempted) bool) string {
	for i := range all {
		if a := &all[i]; is(a) {
			return fmt.Sprintf("contender %d got no answer: %v", a.Contender, a.errno)
		}
	}
	return ""
}

// tooSlow is for a contender whose attempt took longer than its deadline: it gave up, and shows nothing.
func tooSlow(o order, all []attempted) error {
	for i := range all {
		a := &all[i]
		if took := a.Return - a.Invoke; a.Began == 0 && took > o.TTL/2 {
			return voidError(fmt.Sprintf("contender %d was too slow: an attempt took %v, and its deadline is %v", a.Contender, time.Duration(took).Round(time.Millisecond), time.Duration(o.TTL/2)))
		}
	}
	return nil
}

// abandon has a contender claim keys and keep quiet; bury ends it, and the claims expire a TTL later.
func (b *bencher) abandon(who int, o order) error {
	o.Abandon = 1
	if err := b.alone(who, o); err != nil {
		return err
	}
	for k, r := range recordsIn(b.Line.Words(who))[:o.Keys] {
		if r.Outcome != outcomeWon {
			return voidError(fmt.Sprintf("key %d could not be claimed beforehand: %s %v", int(o.First)+k, outcomes[r.Outcome], unix.Errno(r.Errno)))
		}
	}
	return nil
}

func (b *bencher) bury(who int) error {
	b.Line.Kill(who)
	return b.Line.Restart(b.ctx, who)
}

// An inheritance is a trial of claims that have expired: their owner died before.
type inheritance struct {
	interleaving // in forced
	protocol     string
	order        order
	err          error // the claims could not be made
}

// bequeath has a contender make the claims of all the trials, so that one wait is enough for all of them to expire.
func (b *bencher) bequeath(who int, all []inheritance, wait time.Duration) error {
	for i := range all {
		if b.over() {
			return errLate
		}
		t := &all[i]
		t.err = b.abandon(who, t.order)
		if _, end := b.harness(t.err); end != nil {
			return end
		}
	}
	if err := b.bury(who); err != nil {
		return err
	}
	return b.rest(wait)
}
