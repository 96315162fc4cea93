package probes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/claimbench/claimbench/internal/result"
)

var clockSkew = Probe{
	Name:    "clock-skew",
	Promise: "One clock stamps all files, whatever is done to them and over whichever route.",
	Why: "A claim's age is the difference between the time of the claim and that of a file touched just now. Over SMB, and on CephFS, Lustre, GlusterFS and " +
		"NFSv4.2 with delegated timestamps, the client stamps by its own clock: then one host's claims look older than they are, " +
		"and are taken over while their owners live, and another's never expire. A backup tool's lock was killed by a client whose clock was half an hour wrong.",
	How: "Over each route one contender creates, writes and touches files between two readings of its own CLOCK_REALTIME, hundreds of times. Whenever a stamp " +
		"moves on, the clock behind it passed that time between the reading before the last act and the one after this one: that bounds its difference " +
		"to the contender's clock, and the best bounds are kept as an interval, for each route and act. Two clocks differ where a second lies between their intervals. How far " +
		"stamps are apart at most beyond the passing of time, steps included, is what an age can be wrong by, and the slack of a claim must exceed it.",
	Control: "a contender that reads its own clock an hour wrong",
	Broken:  setClocks,
	Refused: "Files cannot be touched here, so there is no clock to judge ages by: look at who owns the directory and how it is mounted.",
	Alone:   true,
	Run:     runSkew, // its operations are those of timestamps
}

const setClocks = "Set the clocks of all hosts by NTP, and survey again; until then let claims expire by a TTL of at least ten times the difference."

// The kinds of violation.
const (
	routesDiffer = "routes-differ"
	actsDiffer   = "acts-differ" // within one route
)

// tooFarApart is the difference between two clocks that is taken for two clocks, beyond what is not known of either.
const tooFarApart = int64(time.Second)

// An offset is a clock that stamps, less the contender's own, in nanoseconds: it lies between low and high.
type offset struct {
	who       int
	act       act
	low, high int64
	known     bool // the stamps moved at least once
	at        stamp
}

func (o *offset) String() string {
	return fmt.Sprintf("%s by contender %d: %s to %s", o.act, o.who, span(o.low), span(o.high))
}

// offsetOf finds the interval. A stamp is not later than the clock that gives it, so each bounds the clock from below;
// where stamps move on from one to the next, the clock passed the next one's time after the reading before the
// last. Stamps of a clock that moves once per tick come late by a varying part of it, so the bounds can cross by that
// much; then the interval is what lies between.
func offsetOf(who int, a act, ss []stamp) offset {
	o := offset{who: who, act: a}
	for i := range ss {
		if low := ss[i].time() - ss[i].After; i == 0 || low > o.low {
			o.low = low
		}
		if i == 0 || ss[i].time() <= ss[i-1].time() {
			continue
		}
		if high := ss[i].time() - ss[i-1].Before; !o.known || high < o.high {
			o.high, o.known, o.at = high, true, ss[i]
		}
	}
	if o.known && o.low > o.high {
		o.low, o.high = o.high, o.low
	}
	return o
}

// apart is how much lies between two intervals.
func apart(a, b *offset) int64 { return max(a.low-b.high, b.low-a.high, 0) }

// farthest is how much lies at most between two known intervals, and which two those are.
func farthest(all []offset) (most int64, which [2]int) {
	for i := range all {
		for j := range i {
			if gap := apart(&all[i], &all[j]); all[i].known && all[j].known && gap > most {
				most, which = gap, [2]int{j, i}
			}
		}
	}
	return most, which
}

// judgeClocks compares every two clocks, and rules on the two that are farthest apart.
func judgeClocks(all []offset) (v ruling, worst [2]int) {
	most, worst := farthest(all)
	if most <= tooFarApart {
		return ruling{}, worst
	}
	a, b := &all[worst[0]], &all[worst[1]]
	v = ruling{kind: actsDiffer, sentence: fmt.Sprintf("%s and %s of contender %d stamp by clocks that are at least %s apart", a.act, b.act, a.who, span(most))}
	if a.who != b.who {
		v = ruling{kind: routesDiffer, sentence: fmt.Sprintf("%s by contender %d and %s by contender %d stamp by clocks that are at least %s apart", a.act, a.who, b.act, b.who, span(most))}
	}
	return v, worst
}

// ageError is what an age can be wrong by at most: how far stamps are apart, beyond the passing of time.
func ageError(ss []stamp) int64 {
	var low, high []int64
	for a := range acts {
		of := slices.DeleteFunc(slices.Clone(ss), func(s stamp) bool { return s.Act != a })
		if len(of) > 0 {
			l, h := bounds(of)
			low, high = append(low, l), append(high, h)
		}
	}
	if len(low) == 0 {
		return 0
	}
	return slices.Max(high) - slices.Min(low)
}

// bounds is between what stamps of one act lie, less the contender's clock. The quarter of the acts that took longest
// is left out: a contender that was interrupted in the middle says little.
func bounds(ss []stamp) (low, high int64) {
	slices.SortFunc(ss, func(a, b stamp) int { return cmp.Compare(a.After-a.Before, b.After-b.Before) })
	low, high = ss[0].time()-ss[0].After, ss[0].time()-ss[0].Before
	for i := range max(1, len(ss)*3/4) {
		low, high = min(low, ss[i].time()-ss[i].After), max(high, ss[i].time()-ss[i].Before)
	}
	return low, high
}

func runSkew(ctx context.Context, b *Bench, f *result.Finding) {
	total, control := newEvidence("clocks"), newEvidence("control")
	var clocks []offset
	var stamps []stamp
	for route := 0; route < max(1, b.Routes); route++ {
		offsets, s, err := b.clocksOver(ctx, route, 0, total)
		if err != nil {
			decideAlone(f, total, control, b.MinProof, err)
			return
		}
		if b.Line.Contender(route).Host != b.Line.Contender(0).Host {
			tellHost(f, b.Line.Contender(route).Host, route, readAs(stamps, s, offsets))
		}
		clocks, stamps = append(clocks, offsets...), append(stamps, s...)
	}
	began := time.Now()
	wrong, _, err := b.clocksOver(ctx, 0, clockAhead, control)
	b.compare(control, append(slices.Clone(clocks), wrong...), nil)
	control.parts = 1
	if control.violations > 0 {
		control.first = time.Since(began)
	}
	b.compare(total, clocks, stamps)
	decideAlone(f, total, control, b.MinProof, err)
	if err == nil {
		partial(f, total)
		tellSkew(f, clocks, ageError(stamps))
	}
}

// readAs has what a contender of another host read of its own clock be what the first host's clock showed then: what
// stamps files is on trial, not the clocks that it is compared with. It returns how far ahead the other host's clock is.
func readAs(first, ss []stamp, offsets []offset) int64 {
	if len(first) == 0 || len(ss) == 0 {
		return 0
	}
	ahead := dayOffset(ss) - dayOffset(first)
	for i := range ss {
		ss[i].Before, ss[i].After = ss[i].Before-ahead, ss[i].After-ahead
	}
	for i := range offsets {
		o := &offsets[i]
		o.low, o.high = o.low+ahead, o.high+ahead
		o.at.Before, o.at.After = o.at.Before-ahead, o.at.After-ahead
	}
	return ahead
}

// dayOffset is CLOCK_REALTIME less the clock of the events, which is one for all hosts: the middle of what clockSet bounds.
func dayOffset(ss []stamp) int64 {
	low, high := ss[0].After-ss[0].Return, ss[0].Before-ss[0].Invoke
	for i := range ss {
		low, high = max(low, ss[i].After-ss[i].Return), min(high, ss[i].Before-ss[i].Invoke)
	}
	return low + (high-low)/2
}

// tellHost records how far a host's clock is from the first host's.
func tellHost(f *result.Finding, host string, route int, ahead int64) {
	f.Figures[fmt.Sprintf("route_%d_host_ahead_us", route)] = float64(ahead) / 1e3
	if max(ahead, -ahead) > tooFarApart {
		f.Warnings = append(f.Warnings, fmt.Sprintf("the clock of host %s is %s from the first host's: an age judged by hosts' own clocks is wrong by that", host, span(ahead)))
	}
}

// clocksOver measures the clock behind each act over one route. Creates alone, with pauses, show how far a clock that
// moves once per tick lags: looks at other files would move it.
func (b *Bench) clocksOver(ctx context.Context, who int, how uint64, e *evidence) (offsets []offset, all []stamp, err error) {
	atLeast, lasting := max(leastStamps, b.MinProof), stampSpan
	if how != 0 {
		atLeast, lasting = 30, controlWait
	}
	s, err := b.collect(ctx, who, how, atLeast, lasting)
	if err != nil {
		return nil, nil, err
	}
	for a := range acts {
		good, failures := s.of(a)
		v := ruling{refused: len(failures) > 0 && allIn(failures, touchRefusals), failed: !allIn(failures, touchRefusals)}
		if len(good) > 0 {
			offsets = append(offsets, offsetOf(who, a, good))
			v = ruling{}
		}
		if clockSet(good) {
			v = ruling{failed: true, note: clockWasSet}
		}
		e.observe(max(1, len(good)), failures, v, nil)
		all = append(all, good...)
	}
	if how != 0 {
		return offsets, all, nil
	}
	lone, err := b.collect(ctx, who, createOnly, loneCreates, 0)
	good, _ := lone.of(create)
	return offsets, append(all, good...), err
}

// compare adds what the comparison of the clocks says. Where this host's clock was set in the course of the stamps,
// between two routes too, it says nothing.
func (b *Bench) compare(e *evidence, clocks []offset, stamps []stamp) {
	if clockSet(stamps) {
		e.observe(1, nil, ruling{failed: true, note: clockWasSet}, nil)
		return
	}
	v, worst := judgeClocks(clocks)
	if v.kind == "" {
		return
	}
	x, y := &clocks[worst[0]], &clocks[worst[1]]
	e.observe(1, nil, v, func() result.Round { return b.rawStamps("clocks", []int{x.who, y.who}, x.at, y.at) })
}

// tellSkew records the figures, and says what the smallest TTL is.
func tellSkew(f *result.Finding, clocks []offset, wrong int64) {
	for i := range clocks {
		c := &clocks[i]
		if !c.known && (f.Verdict == result.Holds || f.Verdict == result.Unproven) {
			f.Verdict, f.Reason = result.Unproven, fmt.Sprintf("%s by contender %d moved no time, so that its clock is not known (see timestamps)", c.act, c.who)
		}
		if c.known {
			most(f, "width_us", float64(c.high-c.low)/1e3)
			f.Figures[fmt.Sprintf("route_%d_%s_low_us", c.who, c.act)] = float64(c.low) / 1e3
			f.Figures[fmt.Sprintf("route_%d_%s_high_us", c.who, c.act)] = float64(c.high) / 1e3
		}
	}
	known := slices.IndexFunc(clocks, func(c offset) bool { return c.known })
	if known < 0 {
		return
	}
	between, _ := farthest(clocks)
	f.Figures["clocks_apart_us"] = float64(between) / 1e3
	skew := (clocks[known].low + clocks[known].high) / 2
	f.Figures["skew_us"] = float64(skew) / 1e3
	f.Figures["age_error_us"] = float64(wrong) / 1e3
	f.Figures["ttl_least_s"] = 10 * float64(wrong) / 1e9
	if f.Verdict == result.Broken {
		f.Advice = fmt.Sprintf("%s Here that is a TTL of at least %s.", setClocks, span(10*wrong))
	}
	sayClocks(f, skew, wrong)
}

// sayClocks puts it into words.
func sayClocks(f *result.Finding, skew, wrong int64) {
	if f.Verdict == result.Holds {
		f.Reason = fmt.Sprintf("all stamps come from one clock, %s; an age can be wrong by %s, which allows a TTL of %s or more as far as clocks go, with a slack of a tenth of it",
			whose(skew), span(wrong), span(10*wrong))
	}
	if max(skew, -skew) > tooFarApart {
		f.Warnings = append(f.Warnings, fmt.Sprintf("the filesystem's clock is %s from this host's: an age judged by a host's own clock is wrong by that", span(skew)))
	}
}

// whose says which clock it can be.
func whose(skew int64) string {
	if max(skew, -skew) < int64(10*time.Millisecond) {
		return "which agrees with this host's own to " + span(max(skew, -skew)) + " and may be that one"
	}
	return "which is not this host's own: it is " + span(skew) + " from it"
}
