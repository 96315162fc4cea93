package bench

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// A watcher notices what disturbs a trial from outside: a clock that is set, and this process being stopped.
type watcher struct {
	offset  int64 // of the clock of the day from the one of the records
	stopped chan struct{}
	gap     chan time.Duration
}

const (
	tick    = 20 * time.Millisecond
	longGap = 2 * time.Second // on a loaded machine a process may well not run for a second
	step    = 500 * time.Millisecond
)

func watch() *watcher {
	w := &watcher{offset: dayOffset(), stopped: make(chan struct{}), gap: make(chan time.Duration)}
	go w.run()
	return w
}

func (w *watcher) run() {
	longest, last := time.Duration(0), race.Now()
	for {
		select {
		case <-w.stopped:
			w.gap <- max(longest, time.Duration(race.Now()-last))
			return
		case <-time.After(tick):
			longest, last = max(longest, time.Duration(race.Now()-last)), race.Now()
		}
	}
}

func dayOffset() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &ts); err != nil {
		return 0
	}
	return ts.Nano() - race.Now()
}

// disturbed ends the watch, and says what it saw.
func (w *watcher) disturbed() string {
	close(w.stopped)
	gap, set := <-w.gap, time.Duration(dayOffset()-w.offset)
	switch {
	case set > step || set < -step:
		return fmt.Sprintf("the clock was set by %v", set.Round(time.Millisecond))
	case gap > longGap:
		return fmt.Sprintf("claimbench itself was stopped for %v", gap.Round(time.Millisecond))
	default:
		return ""
	}
}
