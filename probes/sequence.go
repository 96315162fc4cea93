package probes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

const (
	sequences = 10 // per ordered pair of contenders, of few
	fewRoutes = 4  // more are not all paired
)

// times is how often each pair plays.
func times(pairs int) int {
	return max(1, sequences*fewRoutes*(fewRoutes-1)/max(pairs, fewRoutes*(fewRoutes-1)))
}

// inSequence looks at two attempts one after the other, by contenders on different routes where there are
// several. Both halves need the later contender to have looked the name up before.
//
//	A taken name:    B looks, nothing there. A takes it. B tries: must be told that it is taken, and A's object
//	                 must be as it was.
//	A released name: A takes it. B looks, sees it. A removes it. B tries: must win.
func (c *contest) inSequence(ctx context.Context, b *Bench, f *result.Finding, e *evidence) error {
	fired, failed, refused := 0, 0, 0
	each, played, began := times(len(b.pairs())), 0, time.Now()
	for _, p := range b.pairs() {
		for k := range each {
			if k > 0 && time.Since(began) > b.Time {
				break // over a slow way to many hosts
			}
			played += 2
			for _, half := range []func(*script, [2]int, string) ruling{c.takenName, c.releasedName} {
				v, err := c.play(ctx, b, e, p, c.op, half)
				if err != nil {
					return err
				}
				if v.failed {
					failed++
				}
				if v.refused {
					refused++
				}
			}
		}
		if refused > 0 {
			return nil // the race will tell by which errno
		}
		v, err := c.play(ctx, b, newEvidence(c.overwrite), p, c.overwrite, c.takenName)
		if err != nil {
			return err
		}
		if v.kind != "" {
			fired++
		}
	}
	f.Figures["sequences_count"] = float64(played)
	f.Figures["sequences_failed_count"] = float64(failed)
	if failed > 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%d of %d attempts in sequence failed and say nothing", failed, played))
	}
	if fired < len(b.pairs()) {
		f.Warnings = append(f.Warnings, fmt.Sprintf("the control of the attempts in sequence (%s) was flagged for %d of %d pairs of contenders: what these attempts show here is no proof", c.overwrite, fired, len(b.pairs())))
	}
	return nil
}

// play performs one half and counts it. It is no contested round, but a violation is a violation.
func (c *contest) play(ctx context.Context, b *Bench, e *evidence, p [2]int, op string, half func(*script, [2]int, string) ruling) (ruling, error) {
	s := b.script(ctx)
	v := half(s, p, op)
	if s.err != nil {
		return v, s.err
	}
	s.round.Phase = race.Step
	e.add(&s.round, false, v, func() result.Round { return s.raw(op) })
	return v, nil
}

// pairs is every ordered pair of routes, each by its first contender; of many routes, each with the next one; on one
// route, its first two contenders.
func (b *Bench) pairs() [][2]int {
	if b.Routes < 2 {
		return [][2]int{{0, 1}, {1, 0}}
	}
	var out [][2]int
	for i := range b.Routes {
		for j := range b.Routes {
			if next := (i+1)%b.Routes == j || (j+1)%b.Routes == i; i != j && (next || b.Routes <= fewRoutes) {
				out = append(out, [2]int{i, j})
			}
		}
	}
	return out
}

// A script is a sequence of steps by two contenders, recorded as one round.
type script struct {
	ctx   context.Context
	b     *Bench
	name  int64
	round race.Round
	steps []result.Event
	err   error
}

func (b *Bench) script(ctx context.Context) *script {
	return &script{ctx: ctx, b: b, name: b.Line.Name()}
}

// do performs one step, and nothing after an error.
func (s *script) do(who int, op string, arg uint64) race.Event {
	if s.err != nil {
		return race.Event{}
	}
	ev, err := s.b.Line.Do(s.ctx, who, op, s.name, arg)
	s.err = err
	if !strings.HasSuffix(op, lookSuffix) && !strings.HasSuffix(op, cleanSuffix) { // not what is judged
		s.round.Events = append(s.round.Events, ev)
	}
	s.record(who, op, &ev)
	return ev
}

// record notes what a step did, in the words of a reader.
func (s *script) record(who int, op string, ev *race.Event) {
	e := s.b.event(who, ev)
	e.Did = op
	switch _, step, _ := strings.Cut(op, ":"); ":" + step {
	case lookSuffix:
		e.Did = "look"
	case cleanSuffix:
		e.Did = "remove"
	}
	s.steps = append(s.steps, e)
}

func (s *script) raw(op string) result.Round {
	return result.Round{Operation: op + " in sequence", Number: int(s.name), Phase: race.Step.String(), Events: s.steps}
}

func (c *contest) takenName(s *script, p [2]int, op string) ruling {
	absent := s.do(p[1], c.op+lookSuffix, 0)
	first := s.do(p[0], c.op, withContent)
	before := s.do(p[0], c.op+lookSuffix, 0)
	second := s.do(p[1], op, withContent)
	after := s.do(p[0], c.op+lookSuffix, 0)
	s.do(p[0], c.op+cleanSuffix, 0)
	switch {
	case c.refuses(first) && c.refuses(second):
		return ruling{refused: true}
	case c.loses(first) && absent.Errno == uint32(unix.ENOENT) && before.Errno == uint32(unix.ENOENT):
		return ruling{kind: takenButAbsent, sentence: fmt.Sprintf("%s told contender %d, alone, that a fresh name is taken, and nothing was there", c.op, p[0])}
	case c.loses(first) && absent.Errno == uint32(unix.ENOENT) && before.Errno == 0 && owner(before) == p[0]:
		return ruling{kind: successDenied, sentence: fmt.Sprintf("%s made contender %d's object and told it, alone, that another had won", c.op, p[0])}
	case first.Errno != 0 || before.Errno != 0 || second.Unready:
		return ruling{failed: true}
	case second.Errno == 0:
		return ruling{kind: takenNameGiven, sentence: fmt.Sprintf("%s succeeded for contender %d on a name that contender %d had taken before", op, p[1], p[0])}
	case after.Errno == uint32(unix.ENOENT):
		return ruling{kind: objectVanished, sentence: fmt.Sprintf("%s by contender %d failed, and contender %d's object was gone", op, p[1], p[0])}
	case after.Errno == 0 && (size(after) < size(before) || owner(after) == p[1] && owner(before) != p[1]):
		return ruling{kind: changedByLoser, sentence: fmt.Sprintf("%s by contender %d failed, and yet changed contender %d's object", op, p[1], p[0])}
	}
	return ruling{failed: after.Errno != 0 || !slices.Contains(c.lost, unix.Errno(second.Errno))}
}

// refuses tells a refusal from a failure.
func (c *contest) refuses(ev race.Event) bool {
	return !ev.Unready && slices.Contains(c.refusals, unix.Errno(ev.Errno))
}

// loses says that a step was told that another was first.
func (c *contest) loses(ev race.Event) bool {
	return !ev.Unready && slices.Contains(c.lost, unix.Errno(ev.Errno))
}

// size and owner are what a look saw. Inode numbers are not compared: some filesystems give a file another one at
// every look.
func size(look race.Event) uint64 { return look.Saw >> 8 }
func owner(look race.Event) int   { return int(int8(look.Saw)) }

func (c *contest) releasedName(s *script, p [2]int, op string) ruling {
	first := s.do(p[0], op, withContent)
	seen := s.do(p[1], c.op+lookSuffix, 0)
	s.do(p[0], c.op+cleanSuffix, 0)
	gone := s.do(p[0], c.op+lookSuffix, 0)
	second := s.do(p[1], op, withContent)
	after := s.do(p[0], c.op+lookSuffix, 0)
	s.do(p[1], c.op+cleanSuffix, 0)
	s.do(p[0], c.op+cleanSuffix, 0)
	switch {
	case c.refuses(first) && c.refuses(second):
		return ruling{refused: true}
	case first.Errno != 0 || seen.Errno != 0 || gone.Errno != uint32(unix.ENOENT) || second.Unready:
		return ruling{failed: true} // a name that B does not see is another promise's matter
	case slices.Contains(c.lost, unix.Errno(second.Errno)) && after.Errno == 0:
		return ruling{kind: successDenied, sentence: fmt.Sprintf("%s made contender %d's object and told it that another's was there", op, p[1])}
	case slices.Contains(c.lost, unix.Errno(second.Errno)):
		return ruling{kind: releasedStaysTaken, sentence: fmt.Sprintf("%s told contender %d that the name is taken, after contender %d had removed it", op, p[1], p[0])}
	}
	return ruling{failed: second.Errno != 0}
}
