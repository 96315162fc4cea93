package bench

import (
	"context"
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
