package bench

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/race"
)

// clockOfRace makes leases comparable with the times of the records.
type clockOfRace struct{}

func (clockOfRace) Now() time.Duration { return time.Duration(race.Now()) }

func (clockOfRace) Sleep(ctx context.Context, d time.Duration) error {
	race.Sleep(d)
	return context.Cause(ctx)
}

// reserve is what a tenth of a TTL has to cover: the granularity of the timestamps, and two readings of the filesystem's
// clock, which are some operations each. An attempt at a key that has many generations takes ten times that where a server
// is far, and is given half of the TTL.
func reserve(fs engine.FS) (time.Duration, error) {
	tick, err := granularity(fs)
	reading := time.Duration(math.MaxInt64)
	for range 3 { // the quickest: this machine may have other work
		began := race.Now()
		_, failed := fs.Now()
		reading, err = min(reading, time.Duration(race.Now()-began)), errors.Join(err, failed)
	}
	return max(tick, 2*reading), err
}

// granularity is coarse if a clock that is read again and again shows nothing but whole seconds.
func granularity(fs engine.FS) (time.Duration, error) {
	for range 8 {
		now, err := fs.Now()
		if err != nil || now.Nanosecond() != 0 {
			return 0, err
		}
		race.Sleep(3 * time.Millisecond)
	}
	return coarse, nil
}

// coarse is the granularity of filesystems that keep no fractions of a second: one second, or two.
const coarse = 2 * time.Second
