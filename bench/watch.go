package bench

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// A watcher notices what disturbs a trial from outside: a clock that is set, and this process being stopped.
type watcher struct {
	began   int64 // by the clock of the records
	offset  int64 // of the clock of the day from the one of the records
	stopped chan struct{}
	seen    chan sighting
}

// A sighting is the worst that was seen.
type sighting struct{ gap, set time.Duration }

const (
	tick    = 20 * time.Millisecond
	longGap = 2 * time.Second       // on a loaded machine a process may well not run for a second
	step    = 50 * time.Millisecond // what owners keep in reserve of the usual TTL
)

func watch() *watcher {
	w := &watcher{began: race.Now(), offset: dayOffset(), stopped: make(chan struct{}), seen: make(chan sighting)}
	go w.run(w.began)
	return w
}

// run looks at the clocks until the watch ends. last is when it began, which is before this goroutine is given a CPU.
func (w *watcher) run(last int64) {
	var s sighting
	look := func() {
		s.gap, last = max(s.gap, time.Duration(race.Now()-last)), race.Now()
		if set := time.Duration(dayOffset() - w.offset); set.Abs() > s.set.Abs() {
			s.set = set
		}
	}
	for {
		select {
		case <-w.stopped:
			look()
			w.seen <- s
			return
		case <-time.After(tick):
			look()
		}
	}
}

// dayOffset reads both clocks between two readings of one of them. Of several tries the shortest counts: in a long one
// this process lost its CPU.
func dayOffset() int64 {
	offset, least := int64(0), never
	for range 5 {
		var day unix.Timespec
		before := race.Now()
		err := unix.ClockGettime(unix.CLOCK_REALTIME, &day)
		after := race.Now()
		if took := after - before; err == nil && took < least {
			least, offset = took, day.Nano()-before-took/2
		}
	}
	return offset
}

// disturbed ends the watch, and says what it saw.
func (w *watcher) disturbed() string {
	close(w.stopped)
	s := <-w.seen
	switch {
	case s.set.Abs() > step:
		return fmt.Sprintf("the clock was set by %v", s.set.Round(time.Millisecond))
	case s.gap > longGap:
		return fmt.Sprintf("claimbench itself was stopped for %v", s.gap.Round(time.Millisecond))
	default:
		return ""
	}
}
