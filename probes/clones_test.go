package probes

import (
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/race"
)

// What the rounds need of a kernel works, though two contenders of one cannot have one thread id.
func TestAContenderCreatesByTheThreadAgreedOn(t *testing.T) {
	b := newBench(t, 2, t.TempDir())
	tick := func(who int) ticker {
		ev, err := b.Line.Do(t.Context(), who, "clones:look", b.Line.Name(), 0)
		if err != nil || ev.Errno != 0 {
			t.Fatal(ev, err)
		}
		return *tickerOf(b.Line.Words(who))
	}
	c := tick(0)
	later := time.Duration(tick(1).At - c.At)
	o := tick(1)
	t.Logf("%+v, %v later %+v", c, later, o)
	if apart := time.Duration(c.until(&o)); apart.Abs() > time.Duration(c.Tick)/2 {
		t.Errorf("one kernel's count is %v from itself", apart)
	}
	wanted := c.nextID(&o)
	ev, err := b.Line.Do(t.Context(), 0, "clones:hold", b.Line.Name(), uint64(wanted))
	if err != nil || ev.Errno != 0 {
		t.Fatal(wanted, ev, err)
	}
	at := race.Now() + int64(5*time.Millisecond)
	name := b.Line.Name()
	ev, err = b.Line.Do(t.Context(), 0, "open-excl-alike", name, uint64(at))
	if err != nil || !ev.Won() || int64(ev.Saw) != wanted || ev.Invoke < at {
		t.Errorf("%+v, %v: not by thread %d at %d", ev, err, wanted, at)
	}
	ev, err = b.Line.Do(t.Context(), 0, "open-excl-alike", name, 0)
	if err != nil || !loses(&ev) || int64(ev.Saw) != wanted {
		t.Errorf("a second time: %+v, %v", ev, err)
	}
	ev, err = b.Line.Do(t.Context(), 0, "clones:hold", b.Line.Name(), 1)
	if err != nil || ev.Errno == 0 {
		t.Errorf("has the id of init: %+v, %v", ev, err)
	}
}
