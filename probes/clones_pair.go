package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// A pairing is what the rounds of two contenders amount to. Nothing that is known of one pair of kernels is so of another.
type pairing struct {
	who            [2]int
	total, control *evidence
	alike          int // rounds with equal ids and counts
	alikeDoubles   int // of those, with two winners
}

const (
	exclAlike   = "open-excl-alike"
	createAlike = "create-alike"
)

func newPairing(who [2]int) *pairing {
	return &pairing{who: who, total: newEvidence(exclAlike), control: newEvidence(createAlike)}
}

// add counts a round. event makes the record of an attempt, in which the thread is named that made it, and the ticks are
// what it saw.
func (p *pairing) add(e *evidence, t *cloneRound, event func(contender int, ev *race.Event) result.Event) {
	v, contested := t.judge(e.op), t.contested()
	switch {
	case e == p.control && !contested:
		v.kind = "" // without a race both win as well, and that shows nothing
	case e == p.total && t.alike():
		p.alike++
		if v.kind != "" {
			p.alikeDoubles++
		}
	}
	e.add(t.round(), contested, v, func() result.Round {
		out := result.Round{Operation: e.op, Number: t.number, Phase: race.Step.String()}
		for i := range t.of {
			ev := event(t.of[i].who, &t.of[i].event)
			ev.TID, ev.Saw = int(t.of[i].event.Saw), uint64(t.of[i].ticks())
			out.Events = append(out.Events, ev)
		}
		return out
	})
}

// over says that the pair need not go on, or has no time left. wanted is how many contested rounds there are to be.
func (p *pairing) over(took, d, spare time.Duration, wanted int) bool {
	e := p.total
	switch {
	case e.violations >= enoughDoubles, e.decided(), e.contested >= max(wanted, enoughAlike), took > d+spare:
		return true
	}
	return took > d && (e.contested >= enoughAlike || p.apart())
}

// apart says that creates at equal counts do not overlap: more rounds would not, either.
func (p *pairing) apart() bool {
	return p.total.failed == 0 && p.alike >= enoughAlike && p.total.contested == 0
}

// lacks is what the pair lacks to be a proof, or "".
func (p *pairing) lacks() string {
	e := p.total
	v, reason := verdict(e, p.control, enoughAlike, nil)
	switch {
	case v == result.Holds, v == result.Broken:
		return ""
	case p.apart():
		reason = p.counted() + ", and none of those overlapped: at equal counts one create was over before the other began"
	case v == result.Unproven && e.failed == 0 && e.contested < enoughAlike:
		reason = fmt.Sprintf("only %d of %d rounds had equal thread ids and counts of ticks and overlapped; at least %d are needed", e.contested, e.rounds, enoughAlike)
	}
	return fmt.Sprintf("contenders %d and %d: %s", p.who[0], p.who[1], reason)
}

// counted is how many rounds were alike.
func (p *pairing) counted() string {
	return fmt.Sprintf("%d of %d rounds had equal thread ids and counts of ticks", p.alike, p.total.rounds)
}

// decide fills the finding. out is why pairs of kernels could not be made alike.
func (c *cloning) decide(f *result.Finding, out []string, err error) {
	all := pairing{total: c.total, control: c.control}
	for _, p := range c.raced {
		all.total.merge(p.total)
		all.control.merge(p.control)
		all.alike += p.alike
		all.alikeDoubles += p.alikeDoubles
	}
	decide(f, all.total, all.control, enoughAlike, err)
	f.Figures["violations_alike_count"] = float64(all.alikeDoubles)
	if err == nil {
		f.Verdict, f.Reason = c.verdict(f, &all, out)
	}
}

const notAlike = "To test this, boot the machines at one instant, and join outside of containers or in the host's pid namespace. As they are now they " +
	"are not alike; after the next power cut they may be."

// verdict says of a finding what it means here: it holds where it does so of each pair.
func (c *cloning) verdict(f *result.Finding, all *pairing, out []string) (result.Verdict, string) {
	estimated := c.estimated()
	switch f.Verdict {
	case result.Broken:
		return f.Verdict, fmt.Sprintf("%s; %s, %d of them with two winners%s", f.Reason, all.counted(), all.alikeDoubles, estimated)
	case result.Unsupported:
		return f.Verdict, f.Reason
	}
	if len(out) > 0 || slices.ContainsFunc(c.raced, (*pairing).apart) {
		f.Advice = notAlike
	}
	for _, p := range c.raced {
		if why := p.lacks(); why != "" {
			out = append(out, why)
		}
	}
	switch {
	case len(out) > 0:
		return result.Unproven, strings.Join(out, "; ") + estimated
	case f.Verdict == result.Holds && estimated != "":
		return result.Unproven, "no second winner, but that says little" + estimated
	case f.Verdict == result.Holds:
		return f.Verdict, fmt.Sprintf("no second winner; %s, and %d of those overlapped", all.counted(), all.total.contested)
	}
	return f.Verdict, f.Reason
}

// estimated says that counts were, or is "".
func (c *cloning) estimated() string {
	for _, n := range c.counts {
		if n.Estimated != 0 {
			return "; counts of ticks were estimated, as /proc/timer_list could not be read"
		}
	}
	return ""
}
