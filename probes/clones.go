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

var exclCreateClones = Probe{
	Name:    "excl-create-clones",
	Promise: "open(O_CREAT|O_EXCL) of one name succeeds for one contender only, also where two machines are as alike as clones.",
	Why: "The Linux NFS client marks an exclusive create with a verifier, by which the server tells a request that was sent twice from a second one: " +
		"the kernel's count of timer ticks since boot (jiffies), and the id of the calling thread. Machines that were booted from one image at one instant " +
		"count alike and number their threads alike; then the server takes the second machine's create for the first one's, sent again, and both win. " +
		"The count restarts with each boot, so that a fleet that comes back from a power cut is such a set of machines.",
	How: "A contender on each of two kernels ends threads until the next one has an id that both have agreed on, and stays on that one. The kernels' counts of ticks " +
		"are read (/proc/timer_list, or else estimated by the time since boot), and each round is one exclusive create on either side of one fresh name: the second starts later by the " +
		"difference of the counts, which is swept by two ticks to both sides. A round is evidence where ids and counts were equal, " +
		"the clocks known to half a tick, and the creates overlapped; those are the contested ones. A file can be confused until its maker has set its times, which takes a way " +
		"to the server and back: far from the server there is more to see. A survey of one kernel leaves this out.",
	Control: "create without O_EXCL, at the same instants by the same threads",
	Broken: "Publish claims by link: generations-linked does, and link carries no verifier. Or see to it that no two machines are alike: boot them at different times, " +
		"and draw what a worker waits, and how many threads it starts, at random before its first claim.",
	Refused: "Exclusive create does not exist here: see excl-create.",
	Weight:  2,
	Hosts:   true,
	Ops:     cloneOps,
	Run:     runClones,
}

const (
	enoughAlike     = 20              // rounds with equal ids and counts, without which nothing is proved: none in 20 bounds the rate at 14 %
	enoughDoubles   = 10              // rounds with two winners, after which a series ends
	controlRounds   = 4               // of each pair
	mostApart       = 2 * time.Second // that the second create may come after the first
	mostThreads     = 1 << 15         // that one contender ends on the way to an id
	idTries         = 8
	lookAgain       = 16 // rounds after which the counts are read again
	ticksAside      = 2  // to both sides of the difference
	firstCloneLead  = 20 * time.Millisecond
	cloneStepsATick = 2
)

// A clone is what one of the two contenders of a round did, raw.
type clone struct {
	who   int
	event race.Event // Saw is the id of the thread
	count ticker
}

// A cloneRound is one round. unsure is how wrong the time between the two creates may be, ns.
type cloneRound struct {
	number int
	of     [2]clone
	unsure int64
}

// alike says that ids and counts were equal, and that the clocks are known well enough to say so.
func (t *cloneRound) alike() bool {
	a, b := &t.of[0], &t.of[1]
	began := a.event.Invoke != 0 && b.event.Invoke != 0
	return began && a.event.Saw == b.event.Saw && int32(a.ticks()) == int32(b.ticks()) && t.unsure < a.count.Tick/2
}

// round is what it is as a race.
func (t *cloneRound) round() *race.Round {
	return &race.Round{
		Number: t.number, Phase: race.Step, Events: []race.Event{t.of[0].event, t.of[1].event}, Unsure: func(int, int) int64 { return t.unsure },
	}
}

// contested says that the round is evidence: a create that is over before the other begins is confused with none.
func (t *cloneRound) contested() bool { return t.alike() && t.round().Contested(2, nil) }

// judge rules on the round, whether or not it is evidence: two winners are too many in any case.
func (t *cloneRound) judge(op string) ruling {
	a, b := &t.of[0], &t.of[1]
	switch {
	case a.event.Won() && b.event.Won():
		return ruling{kind: severalWinners, sentence: fmt.Sprintf("%s succeeded for contenders %d and %d in the same round, by threads %d and %d, at ticks %d and %d since boot",
			op, a.who, b.who, a.event.Saw, b.event.Saw, a.ticks(), b.ticks())}
	case !a.event.Won() && !b.event.Won(), !loses(&a.event) && !loses(&b.event):
		return ruling{failed: true}
	}
	return ruling{}
}

func loses(ev *race.Event) bool { return ev.Errno == uint32(unix.EEXIST) }

// ticks is the kernel's count when the create began.
func (t *clone) ticks() int64 { return t.count.at(t.event.Invoke) }

// add counts a round. event makes the record of an attempt, in which the thread is named that made it, and the ticks are
// what it saw.
func (c *cloning) add(e *evidence, t *cloneRound, event func(contender int, ev *race.Event) result.Event) {
	v := t.judge(e.op)
	if e == c.total && t.alike() {
		c.alike++
		if v.kind != "" {
			c.alikeDoubles++
		}
	}
	e.add(t.round(), t.contested(), v, func() result.Round {
		out := result.Round{Operation: e.op, Number: t.number, Phase: race.Step.String()}
		for i := range t.of {
			ev := event(t.of[i].who, &t.of[i].event)
			ev.TID, ev.Saw = int(t.of[i].event.Saw), uint64(t.of[i].ticks())
			out.Events = append(out.Events, ev)
		}
		return out
	})
}

// instants are when the two are to start: not before an instant, in the first quarter of one tick of the first one, and as
// many steps aside from that tick of the second one.
func instants(a, b *ticker, earliest int64, aside int) [2]int64 {
	later := a.until(b) + int64(aside)*a.Tick/cloneStepsATick
	earliest = max(earliest, earliest-later)
	first := a.At + (earliest-a.At+a.Tick-1)/a.Tick*a.Tick + a.Tick/4
	return [2]int64{first, first + later}
}

// asideOf sweeps in every second round: the middle first, and then further and further to both sides. The others are in the
// middle.
func asideOf(round int) int {
	if round%2 == 1 {
		return 0
	}
	step := round / 2 % (2*ticksAside*cloneStepsATick + 1)
	if step%2 == 1 {
		return (step + 1) / 2
	}
	return -step / 2
}

// A cloning is the probe under way.
type cloning struct {
	*Bench
	total, control *evidence
	lead           time.Duration // from the order to start to the start
	counts         map[int]*ticker
	alike          int // rounds with equal ids and counts
	alikeDoubles   int // of those, with two winners
}

func newCloning(b *Bench) *cloning {
	return &cloning{Bench: b, total: newEvidence("open-excl-alike"), control: newEvidence("create-alike"), lead: firstCloneLead, counts: map[int]*ticker{}}
}

func runClones(ctx context.Context, b *Bench, f *result.Finding) {
	c := newCloning(b)
	pairs, out, err := c.pairs(ctx)
	if err == nil && len(pairs) > 0 {
		c.tell(f, pairs[0])
	}
	for i, p := range pairs {
		if err != nil {
			break
		}
		var why string
		if why, err = c.race(ctx, p, b.Time/time.Duration(len(pairs)), b.Spare/time.Duration(len(pairs)-i)); why != "" {
			out = append(out, why)
		}
	}
	c.decide(f, out, err)
}

// decide fills the finding. out is why pairs of kernels could not be made alike.
func (c *cloning) decide(f *result.Finding, out []string, err error) {
	decide(f, c.total, c.control, enoughAlike, err)
	f.Figures["violations_alike_count"] = float64(c.alikeDoubles)
	if err == nil {
		f.Verdict, f.Reason = c.verdict(f, out)
	}
}

const notAlike = "To test this, boot the machines at one instant, and join outside of containers or in the host's pid namespace. As they are now they " +
	"are not alike; after the next power cut they may be."

// verdict says of a finding what it means here.
func (c *cloning) verdict(f *result.Finding, out []string) (result.Verdict, string) {
	alike := fmt.Sprintf("%d of %d rounds had equal thread ids and counts of ticks", c.alike, c.total.rounds)
	estimated := ""
	for _, n := range c.counts {
		if n.Estimated != 0 {
			estimated = "; counts of ticks were estimated, as /proc/timer_list could not be read"
		}
	}
	switch {
	case f.Verdict == result.Broken:
		return f.Verdict, fmt.Sprintf("%s; %s, %d of them with two winners%s", f.Reason, alike, c.alikeDoubles, estimated)
	case len(out) > 0:
		f.Advice = notAlike
		return result.Unproven, strings.Join(out, "; ")
	case f.Verdict == result.Unproven && c.total.failed == 0 && c.alike >= enoughAlike && c.total.contested == 0:
		f.Advice = notAlike
		return f.Verdict, alike + ", and none of those overlapped: at equal counts one create was over before the other began" + estimated
	case f.Verdict == result.Unproven && c.total.failed == 0 && c.total.contested < enoughAlike:
		return f.Verdict, fmt.Sprintf("only %d of %d rounds had equal thread ids and counts of ticks and overlapped; at least %d are needed%s", c.total.contested, c.total.rounds, enoughAlike, estimated)
	case f.Verdict == result.Holds && estimated != "":
		return result.Unproven, "no second winner, but that says little" + estimated
	case f.Verdict == result.Holds:
		return f.Verdict, fmt.Sprintf("no second winner; %s, and %d of those overlapped", alike, c.total.contested)
	}
	return f.Verdict, f.Reason
}

// pairs are the contenders to race, each two on two kernels, and why others cannot.
func (c *cloning) pairs(ctx context.Context) (pairs [][2]int, out []string, err error) {
	var kernels []int // the first contender on each
	for _, who := range c.firsts() {
		if err := c.look(ctx, who); err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(kernels, func(o int) bool { return c.counts[o].Boot == c.counts[who].Boot }) {
			kernels = append(kernels, who)
		}
	}
	for i, b := range kernels {
		for _, a := range kernels[:i] {
			if why := c.counts[a].tooFar(c.counts[b]); why == "" {
				pairs = append(pairs, [2]int{a, b})
			} else {
				out = append(out, fmt.Sprintf("contenders %d and %d: %s", a, b, why))
			}
		}
	}
	if len(kernels) < 2 {
		out = append(out, "there is one kernel only")
	}
	return pairs, out, nil
}

func (c *cloning) tell(f *result.Finding, p [2]int) {
	a, b := c.counts[p[0]], c.counts[p[1]]
	f.Figures["ticks_apart_s"] = float64(a.until(b)) / 1e9
	f.Figures["tick_us"] = float64(a.Tick) / 1e3
}

// look has a contender read its kernel's count, and the ids of its threads.
func (c *cloning) look(ctx context.Context, who int) error {
	ev, err := c.Line.Do(ctx, who, "clones:look", c.Line.Name(), 0)
	if err == nil && ev.Errno != 0 {
		err = fmt.Errorf("contender %d cannot read the ticks and thread ids of its kernel: %w", who, unix.Errno(ev.Errno))
	}
	n := *tickerOf(c.Line.Words(who))
	c.counts[who] = &n
	return err
}

// race races two contenders, once they have threads of one id. why is what kept them from it.
func (c *cloning) race(ctx context.Context, p [2]int, d, spare time.Duration) (why string, err error) {
	began, before := time.Now(), c.alike
	if why, err = c.agree(ctx, p); err != nil || why != "" {
		return why, err
	}
	for round := range controlRounds {
		if err := c.round(ctx, p, c.control, round); err != nil {
			return "", err
		}
	}
	for round := 0; ; round++ {
		took, alike := time.Since(began), c.alike-before
		if alike >= c.Rounds || c.total.violations >= enoughDoubles || took > d+spare || took > d && alike >= enoughAlike || c.total.failed >= enoughFailed {
			return "", nil
		}
		if err := c.round(ctx, p, c.total, round); err != nil {
			return "", err
		}
	}
}

// agree gives both a thread of one id.
func (c *cloning) agree(ctx context.Context, p [2]int) (why string, err error) {
	for range idTries {
		for _, who := range p {
			if err := c.look(ctx, who); err != nil {
				return "", err
			}
		}
		wanted := c.counts[p[0]].nextID(c.counts[p[1]])
		got := 0
		for _, who := range p {
			ev, err := c.Line.Do(ctx, who, "clones:hold", c.Line.Name(), uint64(wanted))
			if err != nil {
				return "", err
			}
			if ev.Errno == 0 {
				got++
			}
		}
		if got == len(p) {
			return "", nil
		}
	}
	return fmt.Sprintf("contenders %d and %d found no thread id that both could have, in %d tries", p[0], p[1], idTries), nil
}

// round has both create one fresh name.
func (c *cloning) round(ctx context.Context, p [2]int, e *evidence, round int) error {
	if round%lookAgain == 0 {
		for _, who := range p {
			if err := c.look(ctx, who); err != nil {
				return err
			}
		}
	}
	t := cloneRound{number: int(c.Line.Name())}
	// A client asks the server whether it may, if the other has changed the directory, and makes the verifier after that.
	if _, err := c.both(ctx, p, "clones:approach", t.number, [2]int64{}); err != nil {
		return err
	}
	at := instants(c.counts[p[0]], c.counts[p[1]], race.Now()+int64(c.lead), asideOf(round))
	events, err := c.both(ctx, p, e.op, t.number, at)
	if err != nil {
		return err
	}
	for i, who := range p {
		_, unsure := c.Line.Clock(who)
		t.of[i], t.unsure = clone{who, events[i], *c.counts[who]}, t.unsure+unsure
	}
	c.add(e, &t, c.event)
	_, err = c.Line.Do(ctx, p[0], "open-excl"+cleanSuffix, int64(t.number), 0)
	return err
}

// both has both do something at once, and each at its instant if that has any.
func (c *cloning) both(ctx context.Context, p [2]int, op string, number int, at [2]int64) (events [2]race.Event, err error) {
	begun := time.Now()
	for i, who := range p {
		c.Line.Begin(who, op, int64(number), uint64(at[i]))
	}
	c.lead = max(firstCloneLead, 2*time.Since(begun))
	for i, who := range p {
		ev, bad := c.Line.Await(ctx, who, op)
		if events[i] = ev; err == nil {
			err = bad
		}
	}
	return events, err
}
