package explore

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/claimbench/claimbench/engine"
)

// PerformToEnd is Perform, and where that leaves all contenders ended or dead, it has a fresh one come, as Replay has
// on the model: without it, nobody would notice a key that is never to be had again.
//
// A real filesystem's clock cannot be moved. A tick is waited for, at the rate at which the TTL is scaled down, and
// the steps between two ticks have to be done within a fraction of the TTL: on a machine that is too busy for that,
// leases run out which the schedule means to be good. What is blocked by another key is judged on the model alone,
// as it takes a second run, without the others, to tell.
func PerformToEnd(spec engine.Spec, sc Scenario, schedule Schedule, dir string) (*Violation, error) {
	sc.Params = scaled(sc.Params)
	x := newExplorer(spec, sc)
	x.w.path("") // what has no name has name 0, and unguarded uses no other
	s := &state{last: -1}
	s.fs = *newModel(x.w, Perfect, 0)
	stands, err := x.stands(s, dir)
	defer func() {
		for _, c := range stands {
			c.stop()
		}
	}()
	if err != nil {
		return nil, err
	}
	if v, err := x.perform(s, stands, schedule); v != nil || err != nil {
		return v, err
	}
	for who := range sc.Contenders {
		if !stands[who].over {
			return nil, nil
		}
		stands[who].stop()
	}
	if before := stands[before]; before != nil {
		before.stop()
	}
	return x.freshReal(s, dir)
}

// stands has the contenders come to their first operations. What they have learned by then counts already.
func (x *explorer) stands(s *state, dir string) (map[int]*stand, error) {
	all := map[int]*stand{}
	for who := range places {
		if x.autos[who] == nil || who == after {
			continue
		}
		d, err := engine.OpenDir(dir)
		if err != nil {
			return all, err
		}
		c := begin(x.w, who, d, x.autos[who].run)
		all[who], s.actors[who].life = c, alive
		if v := x.learnedOf(s, who, c.events); v != nil {
			panic("explore: a contender at its start: " + v.What)
		}
		c.events = nil
	}
	return all, nil
}

// freshReal is fresh on a real directory.
func (x *explorer) freshReal(s *state, dir string) (*Violation, error) {
	if x.sc.Apart {
		return nil, nil
	}
	d, err := engine.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	c := begin(x.w, after, d, x.autos[after].run)
	defer c.stop()
	waits := 0
	for !c.over {
		if c.op.Verb == Poll {
			waits++
			time.Sleep(tick / (ttl / realTTL))
		}
		if v := x.stepReal(s, c, after); v != nil {
			return v, nil
		}
	}
	switch {
	case s.keys[0].done == 0 && !s.keys[0].known:
		return &Violation{Stuck, fmt.Sprintf("the key is not to be had, %d TTLs after all have ended", waits)}, nil
	case waits > 1:
		return &Violation{Missed, fmt.Sprintf("the key is to be had only %d TTLs after all have ended", waits)}, nil
	}
	return leftIn(dir)
}

// leftIn finds what is left in a real directory that is not documented. The files by which its clock is read are.
func leftIn(dir string) (*Violation, error) {
	var v *Violation
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if name != "." && name != "clock" && !strings.HasPrefix(name, "clock/") && !documented.MatchString(name) {
			v = &Violation{Leftover, name + " is left"}
		}
		return err
	})
	return v, err
}
