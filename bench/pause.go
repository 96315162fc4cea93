package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claimbench/claimbench/internal/race"
)

// A pause is where a contender stops itself: before the nth operation of a kind.
type pause struct {
	at  verb
	nth int64
}

func (p pause) String() string {
	if p.nth == 1 {
		return fmt.Sprintf("its first %v", p.at)
	}
	return fmt.Sprintf("its %v number %d", p.at, p.nth)
}

// begin has a contender start on an order; stopped waits until it has stopped itself.
func (b *bencher) begin(who int, o order) {
	b.give(who, o)
	b.Line.Begin(who, work, b.Line.Name(), 0)
}

// stopAt begins an order, and waits for the contender to stop itself there.
func (b *bencher) stopAt(who int, o order, p pause) error {
	b.begin(who, o)
	there, err := b.stopped(who)
	if err == nil && !there {
		err = voidError(fmt.Sprintf("contender %d never came to %v", who, p))
	}
	return err
}

// stopped reports false when the contender came to the end of its order instead.
func (b *bencher) stopped(who int) (bool, error) {
	for until := time.Now().Add(patience); time.Now().Before(until); race.Sleep(100 * time.Microsecond) {
		if b.ctx.Err() != nil {
			return false, b.ctx.Err()
		}
		if b.Line.Stopped(who) {
			return true, nil
		}
		if pending, _ := b.Line.Pending(who); !pending || b.Line.Gone(who) {
			return false, nil
		}
	}
	return false, voidError(fmt.Sprintf("contender %d neither stops nor ends", who))
}

// patience is for what takes milliseconds on an idle machine.
const patience = 5 * time.Second

// resumed waits for the end of the order of a contender that had stopped.
func (b *bencher) resumed(who int) error {
	b.Line.Continue(who)
	_, err := b.Line.Await(context.WithoutCancel(b.ctx), who, work)
	return err
}

// unstop is for the way out of a trial: a contender that stays stopped would hang.
func (b *bencher) unstop(who ...int) error {
	var err error
	for _, i := range who {
		if pending, _ := b.Line.Pending(i); pending {
			err = errors.Join(err, b.resumed(i))
		}
	}
	return err
}
