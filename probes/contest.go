package probes

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
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
	op         string
	control    string
	lost       []unix.Errno // what a loser is told
	refusals   []unix.Errno // what everybody is told where the operation does not exist
	overwrite  string       // an operation that takes the name whatever is there: control of the sequences; "" for no sequences
	named      bool         // the round leaves an object under its name
	loserKeeps bool         // a loser's Saw is 1 if it still has what it came with
	winnerHas  bool         // a winner's Saw is 1 if it has what it took
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
	case c.winnerHas && r.Events[winners[0]].Saw != 1:
		return ruling{kind: objectVanished, sentence: fmt.Sprintf("%s succeeded for contender %d, and afterwards it had nothing", c.op, winners[0])}
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
	wrong.op, wrong.loserKeeps, wrong.winnerHas = c.control, false, false
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
	decide(f, total, control, b.MinProof, err)
	if c.named && !marks && err == nil && f.Verdict != result.Unsupported {
		f.Warnings = append(f.Warnings, "objects do not keep their maker's mark here: that they are the winner's was not tested")
	}
}

// marksKept lets every contender make an object, and looks over its own and the next routes whether it carries its maker's mark. It
// is no judgement: a filesystem, an ACL or a mask that changes permission bits gives objects without owners.
func (c *contest) marksKept(ctx context.Context, b *Bench) (bool, error) {
	if !c.named {
		return false, nil
	}
	kept := true
	for who := range slices.Max(b.Contenders) {
		s := b.script(ctx)
		s.do(who, c.op, 0) // whatever it is told: the object tells
		for k := range min(max(1, b.Routes), fewRoutes) {
			route := (who + k) % max(1, b.Routes)
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
