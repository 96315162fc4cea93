package probes

import (
	"context"
	"fmt"
	"slices"
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
		"each create began farther from the edges of its tick than clocks and counts are unsure, and the creates overlapped; those are the contested ones. " +
		"A file can be confused until its maker has set its times, which takes a way " +
		"to the server and back: far from the server there is more to see. A survey of one kernel leaves this out. " +
		"The probe is not calibrated, for want of a second kernel: no fault is planted for it, and no good filesystem is shown to it.",
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
	enoughAlike     = 20              // contested rounds of each pair, without which nothing is proved: none in 20 bounds the rate at 14 %
	enoughDoubles   = 10              // rounds with two winners, after which a series ends
	controlRounds   = 4               // contested ones of each pair
	mostControls    = 24              // rounds of each pair that are tried for those
	mostApart       = 2 * time.Second // that the second create may come after the first
	mostThreads     = 1 << 15         // that one contender ends on the way to an id
	idTries         = 8
	ticksAside      = 2 // to both sides of the difference
	firstCloneLead  = 20 * time.Millisecond
	mostCloneLead   = time.Second
	cloneStepsATick = 2
)

// A clone is what one of the two contenders of a round did, raw.
type clone struct {
	who    int
	event  race.Event // Saw is the id of the thread
	count  ticker
	unsure int64 // how wrong the times of event may be, ns
}

// ticks is the kernel's count when the create began.
func (t *clone) ticks() int64 { return t.count.at(t.event.Invoke) }

// certain says that the count was that one, however wrong clock and count may be: the create began within the tick, and
// not at an edge of it.
func (t *clone) certain() bool {
	into := t.event.Invoke - t.count.begins(t.ticks())
	return min(into, t.count.Tick-into) > t.unsure+t.count.Unsure+t.count.strays(t.event.Invoke)
}

// A cloneRound is one round.
type cloneRound struct {
	number int
	of     [2]clone
}

// alike says that ids and counts were equal, and are known well enough to say so.
func (t *cloneRound) alike() bool {
	a, b := &t.of[0], &t.of[1]
	began := a.event.Invoke != 0 && b.event.Invoke != 0 && a.event.Saw != 0
	return began && a.event.Saw == b.event.Saw && int32(a.ticks()) == int32(b.ticks()) && a.certain() && b.certain()
}

// round is what it is as a race.
func (t *cloneRound) round() *race.Round {
	return &race.Round{
		Number: t.number, Phase: race.Step, Events: []race.Event{t.of[0].event, t.of[1].event},
		Unsure: func(int, int) int64 { return t.of[0].unsure + t.of[1].unsure },
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
	case refusesExcl(&a.event) && refusesExcl(&b.event):
		return ruling{refused: true}
	case !a.event.Won() && !b.event.Won(), !loses(&a.event) && !loses(&b.event):
		return ruling{failed: true}
	}
	return ruling{}
}

func loses(ev *race.Event) bool { return ev.Errno == uint32(unix.EEXIST) }

func refusesExcl(ev *race.Event) bool { return slices.Contains(exclRefusals, unix.Errno(ev.Errno)) }

// instants are when the two are to start: not before an instant, in the middle of one tick of the first one, and as
// many steps aside from that tick of the second one.
func instants(a, b *ticker, earliest int64, aside int) [2]int64 {
	later := a.until(b) + int64(aside)*a.Tick/cloneStepsATick
	earliest = max(earliest, earliest-later)
	first := a.At + (earliest-a.At+a.Tick-1)/a.Tick*a.Tick + a.Tick/2
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
	total, control *evidence // of all pairs
	raced          []*pairing
	lead           time.Duration // from the order to start to the start
	counts         map[int]*ticker
}

func newCloning(b *Bench) *cloning {
	return &cloning{Bench: b, total: newEvidence(exclAlike), control: newEvidence(createAlike), lead: firstCloneLead, counts: map[int]*ticker{}}
}

func runClones(ctx context.Context, b *Bench, f *result.Finding) {
	c := newCloning(b)
	pairs, out, err := c.pairs(ctx)
	if err == nil && len(pairs) > 0 {
		c.tell(f, pairs[0])
	}
	d := b.Time / time.Duration(max(1, len(pairs)))
	for i, who := range pairs {
		began, p := time.Now(), newPairing(who)
		var why string
		if err == nil {
			why, err = c.race(ctx, p, d, b.Spare/time.Duration(len(pairs)-i))
		}
		if why != "" {
			out = append(out, why)
		}
		if err != nil || p.total.violations >= enoughDoubles {
			break
		}
		b.Spare = max(0, b.Spare-max(0, time.Since(began)-d))
	}
	c.decide(f, out, err)
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

// look has a contender read its kernel's count, and the ids of its threads. When that count began is as unsure as the
// clock was, too.
func (c *cloning) look(ctx context.Context, who int) error {
	ev, err := c.Line.Do(ctx, who, "clones:look", c.Line.Name(), 0)
	if err == nil && ev.Errno != 0 {
		err = fmt.Errorf("contender %d cannot read the ticks and thread ids of its kernel: %w", who, unix.Errno(ev.Errno))
	}
	n := *tickerOf(c.Line.Words(who))
	_, unsure := c.Line.Clock(who)
	n.Unsure += unsure
	c.counts[who] = &n
	return err
}

// race races two contenders, once they have threads of one id. why is what kept them from it.
func (c *cloning) race(ctx context.Context, p *pairing, d, spare time.Duration) (why string, err error) {
	began := time.Now()
	if why, err = c.agree(ctx, p.who, began.Add(d+spare)); err != nil || why != "" {
		return why, err
	}
	c.raced = append(c.raced, p)
	if err := c.controls(ctx, p, (d+spare)/4); err != nil {
		return "", err
	}
	for round := 0; !p.over(time.Since(began), d, spare, c.Rounds); round++ {
		if err := c.round(ctx, p, p.total, asideOf(round)); err != nil {
			return "", err
		}
	}
	return "", nil
}

// controls runs the control until it has fired often enough.
func (c *cloning) controls(ctx context.Context, p *pairing, d time.Duration) error {
	began := time.Now()
	for round := range mostControls {
		if p.control.violations >= controlRounds || round > 0 && time.Since(began) > d {
			break
		}
		if err := c.round(ctx, p, p.control, 0); err != nil {
			return err
		}
	}
	return nil
}

// agree gives both a thread of one id, if it can in time.
func (c *cloning) agree(ctx context.Context, who [2]int, until time.Time) (why string, err error) {
	tries := 0
	for tries == 0 || tries < idTries && time.Now().Before(until) {
		tries++
		if held, err := c.hold(ctx, who, until); held || err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("contenders %d and %d found no thread id that both could have, in %d tries", who[0], who[1], tries), nil
}

// hold tries to give both a thread of one id.
func (c *cloning) hold(ctx context.Context, who [2]int, until time.Time) (held bool, err error) {
	for _, who := range who {
		if err := c.look(ctx, who); err != nil {
			return false, err
		}
	}
	wanted := c.counts[who[0]].nextID(c.counts[who[1]])
	for _, who := range who {
		ev, err := c.Line.Do(ctx, who, "clones:hold", c.Line.Name(), holding(wanted, time.Until(until)))
		if err != nil || ev.Errno != 0 {
			return false, err
		}
	}
	return true, nil
}

// round has both create one fresh name.
func (c *cloning) round(ctx context.Context, p *pairing, e *evidence, aside int) error {
	t := cloneRound{number: int(c.Line.Name())}
	// A client asks the server whether it may, if the other has changed the directory, and makes the verifier after that.
	if _, err := c.both(ctx, p.who, "clones:approach", t.number, [2]int64{}); err != nil {
		return err
	}
	for _, who := range p.who {
		if c.counts[who].stale(race.Now()) {
			if err := c.look(ctx, who); err != nil {
				return err
			}
		}
	}
	at := instants(c.counts[p.who[0]], c.counts[p.who[1]], race.Now()+int64(c.lead), aside)
	events, err := c.both(ctx, p.who, e.op, t.number, at)
	if err != nil {
		return err
	}
	for i, who := range p.who {
		_, unsure := c.Line.Clock(who)
		t.of[i] = clone{who, events[i], *c.counts[who], unsure}
	}
	p.add(e, &t, c.event)
	_, err = c.Line.Do(ctx, p.who[0], "open-excl"+cleanSuffix, int64(t.number), 0)
	return err
}

// both has both do something at once, and each at its instant if that has any.
func (c *cloning) both(ctx context.Context, p [2]int, op string, number int, at [2]int64) (events [2]race.Event, err error) {
	begun := time.Now()
	for i, who := range p {
		c.Line.Begin(who, op, int64(number), uint64(at[i]))
	}
	c.lead = min(max(firstCloneLead, 2*time.Since(begun)), mostCloneLead)
	for i, who := range p {
		ev, bad := c.Line.Await(ctx, who, op)
		if events[i] = ev; err == nil {
			err = bad
		}
	}
	return events, err
}
