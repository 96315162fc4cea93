package explore

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/claimbench/claimbench/engine"
)

// realTTL is the TTL in a real directory, where a tick has to be waited for.
const realTTL = 400 * time.Millisecond

// clockDir is where a real directory keeps the files by which its clock is read.
const clockDir = "clock"

// Perform runs a schedule in a real, empty directory, and judges it as on the model. Endings that only a weak
// filesystem has are those that the directory gives.
//
// A real filesystem's clock cannot be moved. A tick is waited for, at the rate at which the TTL is scaled down to
// 0.4 s, and the steps between two ticks have to be done within a fraction of that: on a machine that is too busy for
// it, leases run out which the schedule means to be good. What is blocked by another key is judged on the model alone,
// as it takes a second run, without the others, to tell.
func Perform(spec engine.Spec, sc Scenario, schedule Schedule, dir string) (*Violation, error) {
	sc.Params = scaled(sc.Params)
	x := newExplorer(spec, sc)
	s := x.empty()
	stands := map[int]*stand{}
	defer func() {
		for _, c := range stands {
			c.stop()
		}
	}()
	for who := range places {
		if !x.takesPart(who, schedule) {
			continue
		}
		c, err := x.come(s, who, dir)
		if err != nil {
			return nil, err
		}
		stands[who] = c
	}
	if v, err := x.perform(s, stands, schedule); v != nil || err != nil || s.waiting() {
		return v, err
	}
	return x.freshReal(s, dir)
}

func (x *explorer) perform(s *state, stands map[int]*stand, schedule Schedule) (*Violation, error) {
	for i, step := range schedule {
		if step.Tick {
			time.Sleep(down(x.sc.Tick))
			continue
		}
		c := stands[int(step.Who)]
		if c == nil || c.over {
			return nil, fmt.Errorf("perform step %d: %s has no next operation", i+1, letter(int(step.Who)))
		}
		if step.Dies {
			c.stop()
			s.actors[step.Who].finish(dead)
			continue
		}
		if v := x.stepReal(s, c); v != nil {
			return v, nil
		}
	}
	return nil, nil
}

// stepReal does one operation, and those after it that make no difference to others. What a contender has open when it
// ends is closed, as by the end of a process.
func (x *explorer) stepReal(s *state, c *stand) *Violation {
	for again := true; again; again = c.quiet() {
		s.fs.now = time.Now().UnixNano()
		if v := x.began(s, c.who, c.op); v != nil {
			return v
		}
		c.perform()
		if v := x.heard(s, c); v != nil {
			return v
		}
	}
	if c.over {
		c.stop()
		s.actors[c.who].finish(ended)
	}
	return nil
}

// freshReal is fresh on a real directory.
func (x *explorer) freshReal(s *state, dir string) (*Violation, error) {
	if x.sc.Apart {
		return nil, nil
	}
	c, err := x.come(s, after, dir)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	waits := 0
	for !c.over {
		if c.op.Verb == Poll {
			waits++
			time.Sleep(down(tick))
		}
		if v := x.stepReal(s, c); v != nil {
			return v, nil
		}
	}
	if v := s.overdue(waits); v != nil {
		return v, nil
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
		if name != "." && name != clockDir && !strings.HasPrefix(name, clockDir+"/") && !documented.MatchString(name) {
			v = &Violation{Leftover, name + " is left"}
		}
		return err
	})
	return v, err
}

func scaled(p engine.Params) engine.Params {
	if p == (engine.Params{}) {
		p = params
	}
	return engine.Params{TTL: down(p.TTL), Deadline: down(p.Deadline), Margin: down(p.Margin), Slack: down(p.Slack), Sync: p.Sync}
}

// down scales a time of the model down to one that can be waited for.
func down(d time.Duration) time.Duration { return d / (ttl / realTTL) }
