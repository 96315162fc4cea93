package probes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
)

// A ruling is what a judge says about one round.
type ruling struct {
	kind     string // of violation; "" is none
	sentence string
	note     string // something worth counting that breaks no promise
	refused  bool   // the operation was refused to everybody: says nothing about its atomicity
	failed   bool   // an error that is neither a loss nor a refusal: says nothing either
}

// evidence is what a series of rounds amounted to. It only counts; decide turns it into a verdict.
type evidence struct {
	op         string
	rounds     int
	contested  int
	violations int
	refused    int
	failed     int
	errnos     map[string]int
	kinds      map[string]int
	notes      map[string]int
	violated   []result.Round
	example    *result.Counterexample
	began      time.Time
	first      time.Duration  // from the start to the first violation
	firstRound int            // rounds until then, it included
	wins       []int          // by route
	met        map[[2]int]int // contested rounds by the pair of routes that met, the lower first
	parts      int            // of a control: each must fire; 0 is one
}

const (
	keepViolated    = 32  // raw rounds kept per series, about: some of each kind
	enoughBroken    = 200 // violations after which a series ends
	enoughRefused   = 50  // rounds, all of them refused
	enoughFailed    = 500 // rounds, all of them failed
	enoughOfControl = 20
)

func newEvidence(op string) *evidence {
	return &evidence{op: op, began: time.Now(), errnos: map[string]int{}, kinds: map[string]int{}, notes: map[string]int{}, met: map[[2]int]int{}}
}

// add counts one round. raw makes the record that is kept of a violated one.
func (e *evidence) add(r *race.Round, contested bool, v ruling, raw func() result.Round) {
	e.rounds++
	for i := range r.Events {
		ev := &r.Events[i]
		if ev.Errno != 0 && !(v.refused && ev.Role == race.Reader) { // readers were not refused
			e.errnos[errnoName(ev.Errno)]++
		}
	}
	switch {
	case v.refused:
		e.refused++
	case v.failed:
		e.failed++
	case contested:
		e.contested++
	}
	if v.note != "" {
		e.notes[v.note]++
	}
	e.accuse(v, raw)
}

// accuse counts a violation, if it is one, and keeps its record.
func (e *evidence) accuse(v ruling, raw func() result.Round) {
	if v.kind == "" {
		return
	}
	if e.violations++; e.violations == 1 {
		e.first, e.firstRound = time.Since(e.began), e.rounds
	}
	e.kinds[v.kind]++
	if e.kinds[v.kind] <= keepViolated/4 || len(e.violated) < keepViolated/2 {
		e.violated = append(e.violated, raw())
	}
	e.offer(&result.Counterexample{Kind: v.kind, Sentence: v.sentence, Round: raw()})
}

// gravity orders the kinds of violation: the counterexample shown is of the gravest kind, the one that does work
// twice before the one that leaves it undone.
var gravity = []string{
	severalWinners, takenNameGiven, pathsDiffer, keysMerged, pathNotReached, lostUpdate, othersObject, changedByLoser, loserRobbed, objectVanished,
	contentTorn, contentEmpty, nameAbsent, staleHandle, successDenied, takenButAbsent, noWinner, releasedStaysTaken,
	lockOutlives, waiterAsleep, sharedRefused,
	contentStale, touchLate, newNameLate, removedNameStays, oldFileStays, newEntryLate, removedInListing, unlinkIneffective,
	routesDiffer, actsDiffer, timesStill, timesBack, coarseTimes, twins, unstableNumber, syncFails,
	namesMerged, nameRefused,
	lockDropped, lockWithheld, tooFewLocks, staysFull,
	takenEmptied, goneRemoved, doneAnyway, deniedForTaken, wrongForTaken, unlinkDenied,
}

func (e *evidence) offer(x *result.Counterexample) {
	if e.example == nil || slices.Index(gravity, x.Kind) < slices.Index(gravity, e.example.Kind) {
		e.example = x
	}
}

// meet notes that contenders on two routes overlapped in a round.
func (e *evidence) meet(i, j int) { e.met[[2]int{min(i, j), max(i, j)}]++ }

// merge adds the counts of another series of the same operation.
func (e *evidence) merge(o *evidence) {
	if e.violations == 0 && o.violations > 0 {
		e.first, e.firstRound = o.began.Add(o.first).Sub(e.began), e.rounds+o.firstRound
	}
	e.rounds += o.rounds
	e.contested += o.contested
	e.violations += o.violations
	e.refused += o.refused
	e.failed += o.failed
	for k, v := range o.errnos {
		e.errnos[k] += v
	}
	for k, v := range o.kinds {
		e.kinds[k] += v
	}
	for k, v := range o.notes {
		e.notes[k] += v
	}
	for k, v := range o.met {
		e.met[k] += v
	}
	for i, w := range o.wins {
		if i == len(e.wins) {
			e.wins = append(e.wins, 0)
		}
		e.wins[i] += w
	}
	e.violated = append(e.violated, o.violated...)
	if o.example != nil {
		e.offer(o.example)
	}
}

func errnoName(errno uint32) string {
	if unix.Errno(errno) == unix.EOPNOTSUPP {
		return "EOPNOTSUPP" // the same number as ENOTSUP on Linux, and the name that the man pages use
	}
	if name := unix.ErrnoName(unix.Errno(errno)); name != "" {
		return name
	}
	return fmt.Sprintf("errno %d", errno)
}

// decide fills the finding from the evidence, the control's evidence, and the error that ended the measuring, if
// any. It is pure: the same evidence gives the same finding.
func decide(f *result.Finding, e, control *evidence, minProof int, err error) {
	f.Rounds, f.Contested, f.Violations = e.rounds, e.contested, e.violations
	f.Errnos, f.Kinds = e.errnos, e.kinds
	f.Counterexample, f.Violated = e.example, e.violated
	if control != nil {
		f.Control = &result.Control{
			Rounds: control.rounds, Contested: control.contested,
			Violations: control.violations, FirstS: control.first.Seconds(),
		}
	}
	if e.contested > 0 && e.refused < e.rounds {
		upper := stat.Upper95(min(e.violations, e.contested), e.contested)
		f.Upper95 = &upper
	}
	if e.violations > 0 && f.Figures != nil {
		f.Figures["violations_low95_share"], f.Figures["violations_high95_share"] = stat.Wilson(e.violations, e.rounds)
		f.Figures["first_violation_s"], f.Figures["first_violation_round_count"] = e.first.Seconds(), float64(e.firstRound)
	}
	for _, note := range slices.Sorted(maps.Keys(e.notes)) {
		f.Warnings = append(f.Warnings, fmt.Sprintf("in %d of %d rounds %s", e.notes[note], e.rounds, note))
	}
	f.Verdict, f.Reason = verdict(e, control, minProof, err)
}

func verdict(e, control *evidence, minProof int, err error) (result.Verdict, string) {
	var hung *race.HungError
	switch {
	case e.violations > 0:
		return result.Broken, fmt.Sprintf("%s (%s in %d rounds)", e.example.Sentence, countsOf(e.kinds), e.rounds)
	case errors.As(err, &hung):
		return result.Hung, err.Error()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return result.Unproven, fmt.Sprintf(interrupted+" after %d contested rounds", e.contested)
	case err != nil:
		return result.Unproven, "the harness failed: " + err.Error()
	case e.rounds > 0 && e.refused == e.rounds:
		return result.Unsupported, "refused with " + countsOf(e.errnos)
	case e.failed > 0 && e.contested < minProof:
		return result.Unproven, fmt.Sprintf("%d of %d rounds failed, errnos seen: %s", e.failed, e.rounds, countsOf(e.errnos))
	case e.contested < minProof:
		return result.Unproven, fmt.Sprintf("only %d of %d rounds were contested; at least %d are needed", e.contested, e.rounds, minProof)
	case control != nil && control.violations == 0:
		return result.Unproven, fmt.Sprintf("the positive control did not fire in %d contested rounds: this run could not have seen a violation", control.contested)
	}
	if route, share := e.starved(); share < fairEnough {
		return result.Unproven, fmt.Sprintf("contenders over route %d won %.1f %% of the rounds: they came too late to be a test of the others", route, 100*share)
	}
	if i, j, n := e.strangers(); n < minProof {
		return result.Unproven, fmt.Sprintf("routes %d and %d met in %d contested rounds only; at least %d are needed of each pair", i, j, n, minProof)
	}
	return result.Holds, fmt.Sprintf("no violation in %d contested rounds", e.contested)
}

// fairEnough is the least share of the rounds that each route must win. Three kernels that started unaligned had one
// win 296 of 300 rounds, which looked like contention and was none.
const fairEnough = 0.02

// starved returns the route that won least, and its share; a share of 1 where there is nothing to compare.
func (e *evidence) starved() (route int, share float64) {
	total := 0
	for _, w := range e.wins {
		total += w
	}
	if len(e.wins) < 2 || total == 0 {
		return 0, 1
	}
	route = slices.Index(e.wins, slices.Min(e.wins))
	return route, float64(e.wins[route]) / float64(total)
}

// strangers returns the pair of routes that met least, and in how many rounds.
func (e *evidence) strangers() (i, j, n int) {
	n = 1<<63 - 1
	for b := range e.wins {
		for a := range b {
			if k := e.met[[2]int{a, b}]; k < n {
				i, j, n = a, b, k
			}
		}
	}
	return i, j, n
}

// unproved makes a finding that holds unproven where a part of it, named, does not hold by itself.
func unproved(f *result.Finding, part string, e, control *evidence, minProof int) {
	if v, reason := verdict(e, control, minProof, nil); f.Verdict == result.Holds && v != result.Holds && v != result.Unsupported {
		f.Verdict, f.Reason = v, part+": "+reason
	}
}

// interrupted begins the reason of a finding that was cut short by the user.
const interrupted = "interrupted"

// countsOf lists counts by name, the commonest first.
func countsOf(counts map[string]int) string {
	names := slices.Sorted(maps.Keys(counts))
	sort.SliceStable(names, func(i, j int) bool { return counts[names[i]] > counts[names[j]] })
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s ×%d", n, counts[n])
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

// raw is the record of a round that goes into the result file.
func (b *Bench) raw(op string, r *race.Round) result.Round {
	out := result.Round{Operation: op, Number: r.Number, Phase: r.Phase.String()}
	for i := range r.Events {
		out.Events = append(out.Events, b.event(i, &r.Events[i]))
	}
	if r.Phase != race.Step && r.After.By != race.Nobody {
		a := &r.After
		out.After = &result.After{
			By: int(a.By), Inode: a.Inode, Links: a.Links, Mode: a.Mode, Size: a.Size, Owner: int(a.Owner), Saw: a.Saw,
		}
		if a.Errno != 0 {
			out.After.Errno = errnoName(a.Errno)
		}
	}
	return out
}

func (b *Bench) event(contender int, ev *race.Event) result.Event {
	who := b.Line.Contender(contender)
	out := result.Event{
		Contender: contender, Route: b.Line.Route(contender), Host: who.Host, PID: who.PID, TID: who.TID, CPU: who.CPU,
		Invoke: ev.Invoke, Return: ev.Return, Released: ev.Released, Inode: ev.Inode, Links: ev.Links, Saw: ev.Saw,
	}
	if ev.Errno != 0 {
		out.Errno = errnoName(ev.Errno)
	}
	return out
}
