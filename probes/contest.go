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
	"github.com/claimbench/claimbench/internal/stat"
)

// The kinds of violation of a promise that only one may succeed.
const (
	severalWinners = "several-winners"
	noWinner       = "no-winner"
	takenButAbsent = "taken-but-absent"
	successDenied  = "success-denied" // the object carries the mark of a contender that was told it lost
	objectVanished = "object-vanished"
	othersObject   = "another's-object"
	loserRobbed    = "loser-robbed"

	// In sequence.
	takenNameGiven     = "taken-name-given-away"
	changedByLoser     = "changed-by-loser"
	releasedStaysTaken = "released-name-stays-taken"
)

// A contest is a race for something that only one may win.
type contest struct {
	op          string
	control     string
	controlName string
	lost        []unix.Errno // what a loser is told
	refusals    []unix.Errno // what everybody is told where the operation does not exist
	overwrite   string       // an operation that takes the name whatever is there: control of the sequences; "" for no sequences
	named       bool         // the round leaves an object under its name
	loserKeeps  bool         // a loser's Saw is 1 if it still has what it came with
}

// judge rules on one round. marks says that the filesystem keeps the marks by which an object's owner is known.
// That the object is not seen over another route than its winner's is an old look-up there, and no second winner:
// it is noted, and the visibility of names is another promise.
func (c *contest) judge(r *race.Round, routes int, marks bool) ruling {
	winners := r.Winners()
	after := &r.After
	if len(winners) < 2 && slices.ContainsFunc(r.Events, func(ev race.Event) bool { return ev.Unready }) {
		return ruling{failed: true}
	}
	owner := int(after.Owner)
	known := marks && c.named && after.Errno == 0 && owner >= 0 && owner < len(r.Events)
	switch {
	case len(winners) > 1:
		return ruling{kind: severalWinners, sentence: fmt.Sprintf("%s succeeded for contenders %s in the same round", c.op, list(winners))}
	case len(winners) == 0:
		return c.judgeLosers(r, known, owner)
	case c.named && after.Errno == uint32(unix.ENOENT) && int(after.By)%routes != winners[0]%routes:
		return ruling{note: "the winner's object was not seen over another route"}
	case c.named && after.Errno == uint32(unix.ENOENT):
		return ruling{kind: objectVanished, sentence: fmt.Sprintf("%s succeeded for contender %d, and afterwards nothing was there", c.op, winners[0])}
	case known && owner != winners[0]:
		return ruling{kind: othersObject, sentence: fmt.Sprintf("%s succeeded for contender %d, and afterwards contender %d's object was there", c.op, winners[0], owner)}
	}
	for i := range r.Events {
		if ev := &r.Events[i]; c.loserKeeps && ev.Errno != 0 && !ev.Unready && ev.Saw != 1 {
			return ruling{kind: loserRobbed, sentence: fmt.Sprintf("%s failed for contender %d, and yet what it was to move is gone", c.op, i)}
		}
	}
	return ruling{}
}

func (c *contest) judgeLosers(r *race.Round, known bool, owner int) ruling {
	refused := true
	for i := range r.Events {
		errno := unix.Errno(r.Events[i].Errno)
		if !slices.Contains(c.refusals, errno) {
			refused = false
		}
		if !slices.Contains(c.lost, errno) && !slices.Contains(c.refusals, errno) {
			return ruling{failed: true}
		}
	}
	switch {
	case refused:
		return ruling{refused: true}
	case known:
		return ruling{kind: successDenied, sentence: fmt.Sprintf("%s made contender %d's object and told every contender, it included, that another had won", c.op, owner)}
	case c.named && r.After.Errno == uint32(unix.ENOENT):
		return ruling{kind: takenButAbsent, sentence: fmt.Sprintf("%s told every contender that the name is taken, and nothing was there", c.op)}
	}
	return ruling{kind: noWinner, sentence: fmt.Sprintf("%s succeeded for nobody", c.op)}
}

func list(xs []int) string {
	s := ""
	for i, x := range xs {
		switch {
		case i == 0:
		case i == len(xs)-1:
			s += " and "
		default:
			s += ", "
		}
		s += fmt.Sprint(x)
	}
	return s
}

// judgeControl rules on a round of the control, which must show what it was made to show: two winners, on different
// routes where there are several.
func (c *contest) judgeControl(r *race.Round, routes int) ruling {
	wrong := *c
	wrong.op, wrong.loserKeeps = c.control, false
	v := wrong.judge(r, routes, false)
	winners := r.Winners()
	if v.kind != severalWinners || routes > 1 && !slices.ContainsFunc(winners, func(w int) bool { return w%routes != winners[0]%routes }) {
		return ruling{}
	}
	return v
}

// meets says of an attempt that it took part in a contest: it won, or was told that another had.
func meets(lost ...unix.Errno) func(*race.Event) bool {
	return func(ev *race.Event) bool { return ev.Errno == 0 || slices.Contains(lost, unix.Errno(ev.Errno)) }
}

// run races the operation, and its control, and looks at it in sequence.
func (c *contest) run(ctx context.Context, b *Bench, f *result.Finding) {
	marks, err := c.marksKept(ctx, b)
	total := newEvidence(c.op)
	control := newEvidence(c.control)
	if err == nil {
		err = b.control(ctx, control, func(r *race.Round) ruling { return c.judgeControl(r, b.Routes) })
	}
	if err == nil && c.overwrite != "" {
		err = c.inSequence(ctx, b, f, total)
	}
	if err == nil {
		err = b.raceAll(ctx, total, f, func(r *race.Round) ruling { return c.judge(r, b.Routes, marks) })
	}
	decide(f, total, control, c.controlName, b.MinProof, err)
	if c.named && !marks && err == nil && f.Verdict != result.Unsupported {
		f.Warnings = append(f.Warnings, "objects do not keep their maker's mark here: that they are the winner's was not tested")
	}
}

// control races the control until it has fired often enough, with each number of contenders.
func (b *Bench) control(ctx context.Context, e *evidence, judge func(*race.Round) ruling) error {
	began := time.Now()
	for _, n := range slices.Backward(b.Contenders) {
		_, err := b.Line.Race(ctx, e.op, b.plan(n, b.Time/4/time.Duration(len(b.Contenders))), func(r *race.Round) bool {
			contested, v := r.Contested(b.Routes, b.Line.Meets(e.op)), judge(r)
			if !contested {
				v = ruling{} // a control that needs no contention shows nothing about the harness
			}
			e.add(r, contested, v, func() result.Round { return b.raw(e.op, r) })
			if v.kind != "" && e.violations == 1 {
				e.first = time.Since(began)
			}
			return e.violations < enoughOfControl
		})
		if err != nil || e.violations >= enoughOfControl {
			return err
		}
	}
	return nil
}

func (b *Bench) plan(n int, d time.Duration) race.Plan {
	return race.Plan{
		Contenders: n, Rounds: max(1, b.Rounds/len(b.Contenders)), Time: max(d, time.Millisecond),
		AtLeast: b.MinProof/len(b.Contenders) + 1, Extra: min(3*d, b.Spare),
		ScanShare: b.ScanShare, ColdRounds: b.ColdRounds / len(b.Contenders), ColdPause: b.ColdPause,
	}
}

// raceAll races the operation with each number of contenders, the time split evenly, and records the figures.
func (b *Bench) raceAll(ctx context.Context, e *evidence, f *result.Finding, judge func(*race.Round) ruling) error {
	left := b.Time * 3 / 4
	for i, n := range b.Contenders {
		d := left / time.Duration(len(b.Contenders)-i)
		t, err := b.Line.Race(ctx, e.op, b.plan(n, d), func(r *race.Round) bool {
			contested := false
			r.Meetings(b.Routes, b.Line.Meets(e.op), func(i, j int) {
				contested = true
				e.meet(b.Line.Route(i), b.Line.Route(j))
			})
			e.add(r, contested, judge(r), func() result.Round { return b.raw(e.op, r) })
			return !e.decided()
		})
		left -= min(t.Elapsed, d)
		b.Spare -= max(0, t.Elapsed-d)
		figures(f, &t, n)
		e.wins = slices.Grow(e.wins, b.Routes)[:b.Routes]
		for i, w := range t.Wins {
			e.wins[b.Line.Route(i)] += w
		}
		if err != nil || e.decided() {
			return err
		}
	}
	return nil
}

// decided reports that more rounds would not change the verdict.
func (e *evidence) decided() bool {
	return e.violations >= enoughBroken || e.contested == 0 && (e.refused >= enoughRefused || e.failed >= enoughFailed)
}

// figures records how the race went: where the contention came from, who won, how long an attempt took.
func figures(f *result.Finding, t *race.Tally, n int) {
	rounds, contested := t.Total()
	if rounds == 0 {
		return
	}
	by := fmt.Sprintf("_%d", n)
	f.Figures["contested"+by+"_share"] = float64(contested) / float64(rounds)
	f.Figures["contested_per_s"+by] = float64(contested) / t.Elapsed.Seconds()
	for p, name := range []string{"tight", "scan", "cold"} {
		if t.Rounds[p] > 0 {
			f.Figures["contested_"+name+by+"_share"] = float64(t.Contested[p]) / float64(t.Rounds[p])
		}
	}
	wins := 0
	for _, w := range t.Wins {
		wins += w
	}
	if wins > 0 {
		f.Figures["wins_least"+by+"_share"] = float64(slices.Min(t.Wins)) / float64(wins)
		f.Figures["wins_most"+by+"_share"] = float64(slices.Max(t.Wins)) / float64(wins)
	}
	us := make([]float64, len(t.Durations))
	for i, d := range t.Durations {
		us[i] = float64(d) / 1e3
	}
	if v, lo, hi, ok := stat.Median(us); ok {
		f.Figures["round"+by+"_p50_us"], f.Figures["round"+by+"_p50_low95_us"], f.Figures["round"+by+"_p50_high95_us"] = v, lo, hi
		f.Figures["round_p50_us"] = v
	}
	if v, ok := stat.Percentile(us, 99); ok {
		f.Figures["round"+by+"_p99_us"] = v
	}
}

// marksKept lets every contender make an object, and looks over every route whether it carries its maker's mark. It
// is no judgement: a filesystem, an ACL or a mask that changes permission bits gives objects without owners.
func (c *contest) marksKept(ctx context.Context, b *Bench) (bool, error) {
	if !c.named {
		return false, nil
	}
	kept := true
	for who := range slices.Max(b.Contenders) {
		s := b.script(ctx)
		s.do(who, c.op, 0) // whatever it is told: the object tells
		for route := range max(1, b.Routes) {
			look := s.do(route, c.op+lookSuffix, 0)
			kept = kept && look.Errno == 0 && owner(look) == who
		}
		s.do(who, c.op+cleanSuffix, 0)
		if s.err != nil || !kept {
			return false, s.err
		}
	}
	return true, nil
}

const sequences = 10 // per ordered pair of contenders

// inSequence looks at two attempts one after the other, by contenders on different routes where there are
// several. Both halves need the later contender to have looked the name up before.
//
//	A taken name:    B looks, nothing there. A takes it. B tries: must be told that it is taken, and A's object
//	                 must be as it was.
//	A released name: A takes it. B looks, sees it. A removes it. B tries: must win.
func (c *contest) inSequence(ctx context.Context, b *Bench, f *result.Finding, e *evidence) error {
	fired, failed, refused := 0, 0, 0
	for _, p := range b.pairs() {
		for range sequences {
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
	f.Figures["sequences_count"] = float64(2 * sequences * len(b.pairs()))
	f.Figures["sequences_failed_count"] = float64(failed)
	if failed > 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%d of %d attempts in sequence failed and say nothing", failed, 2*sequences*len(b.pairs())))
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

// pairs is every ordered pair of routes, each by its first contender; on one route, its first two contenders.
func (b *Bench) pairs() [][2]int {
	if b.Routes < 2 {
		return [][2]int{{0, 1}, {1, 0}}
	}
	var out [][2]int
	for i := range b.Routes {
		for j := range b.Routes {
			if i != j {
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
