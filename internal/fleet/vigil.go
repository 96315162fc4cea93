package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
)

// Once nothing is heard of a host, the others ask for what it holds again and again, until it is given to them: how long
// that takes is what the death of a host costs. The survey goes on meanwhile.

const (
	suspicious = 1500 * time.Millisecond // without a sign of it
	askEvery   = 250 * time.Millisecond
	askFor     = 150 * time.Second // the lease of the kernel's NFS server is 90 s
	askedAgain = 4                 // after a claim was given, to see whether it is given to one more
	vigilDir   = "vigil"
)

// An asked is one host's question for one thing, at instants of the coordinator's clock, and what came of it.
type asked struct {
	what, by      string
	invoke, until int64
	won, given    bool // to this host; to anybody by now
	err           error
}

// keepVigil has each host hold something, from now on, and watches the hosts. Where that cannot be, nothing is learnt of
// the death of a host, which is no reason not to survey.
func (w *ground) keepVigil(ctx context.Context, patience time.Duration) {
	f := w.f
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := w.do(within, &w.ways()[0], errand{Do: doSub, Sub: vigilDir}); err != nil {
		f.Log("what the loss of a host costs cannot be seen: " + err.Error())
		return
	}
	err := f.each(f.hosts, func(h *host) error {
		a, err := w.do(within, &route{host: h}, errand{Do: doKeep, Sub: vigilDir, Name: h.name()})
		h.holds = a.Held
		return err
	})
	if err != nil {
		f.Log("what the loss of a host costs cannot be seen everywhere: " + err.Error())
	}
	watching, unwatch := context.WithCancel(context.Background())
	for _, h := range f.hosts {
		h.watched = make(chan struct{})
		go w.watch(watching, h)
	}
	f.unwatch = unwatch
}

// watch waits for a host to be silent, and asks. What was asked of one that is heard of again does not count.
func (w *ground) watch(ctx context.Context, h *host) {
	defer close(h.watched)
	for pause(ctx, askEvery) == nil {
		h.sign = h.seen.Load()
		if h.lost() == nil && time.Duration(race.Now()-h.sign) < suspicious {
			continue
		}
		if h.asks = w.askAll(ctx, h); h.lost() != nil && h.seen.Load() == h.sign {
			return
		}
		h.asks = nil
	}
}

// askAll asks for all that a host holds, until it is given, or a sign of the host comes.
func (w *ground) askAll(ctx context.Context, h *host) (asks []asked) {
	ctx, cancel := context.WithTimeout(ctx, w.f.askFor-time.Duration(race.Now()-h.sign))
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, what := range h.holds {
		wg.Go(func() {
			given := 0
			for given <= askedAgain && h.seen.Load() == h.sign {
				these := w.askOnce(ctx, h, what)
				mu.Lock()
				asks = append(asks, these...)
				mu.Unlock()
				if given > 0 || slices.ContainsFunc(these, func(a asked) bool { return a.given }) {
					given++
				}
				if given > 0 && keptLocks[what] != nil || len(these) == 0 || pause(ctx, askEvery) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return asks
}

// askOnce has all the other hosts ask for a claim, at once, and one of them for a lock.
func (w *ground) askOnce(ctx context.Context, h *host, what string) []asked {
	others := slices.DeleteFunc(w.f.living(), func(o *host) bool { return o == h })
	if keptLocks[what] != nil {
		others = others[:min(1, len(others))]
	}
	asks := make([]asked, len(others))
	var wg sync.WaitGroup
	for i, o := range others {
		wg.Go(func() {
			a := asked{what: what, by: o.name(), invoke: race.Now()}
			got, err := w.do(ctx, &route{host: o}, errand{Do: doAsk, Sub: vigilDir, Name: h.name(), What: what})
			a.until, a.won, a.given, a.err = race.Now(), got.Won, got.Given, err
			asks[i] = a
		})
	}
	wg.Wait()
	return asks
}

// Aftermath waits until what lost hosts held is given to others, or long enough, and says what became of their claims.
// From then on nobody holds anything.
func (f *Fleet) Aftermath(ctx context.Context) []result.Bench {
	if f.unwatch == nil { // there is no vigil
		return nil
	}
	for h := f.askedFor(); h != nil && ctx.Err() == nil; h = f.askedFor() {
		f.sendAway()
		f.Log(fmt.Sprintf("what %s held is asked for, for up to %v", h.name(), f.askFor))
		select {
		case <-h.watched:
		case <-ctx.Done():
		}
	}
	f.unwatch()
	var estates []estate
	for _, h := range f.hosts {
		<-h.watched
		if h.lost() != nil {
			e := estate{h.holds, h.sign, h.asks}
			h.held = e.waits()
			estates = append(estates, e)
		}
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	// Whoever does not hear it lets all go when it leaves.
	_ = f.each(f.living(), func(h *host) error {
		_, err := f.ground.do(bound, &route{host: h}, errand{Do: doRelease})
		return err
	})
	return inherited(estates)
}

// askedFor is a lost host whose things the others still ask for.
func (f *Fleet) askedFor() *host {
	for _, h := range f.hosts {
		select {
		case <-h.watched:
		default:
			if h.lost() != nil {
				return h
			}
		}
	}
	return nil
}

// An estate is what a host held when it was lost, when the last sign of it was, and what the others asked for since.
type estate struct {
	holds []string
	sign  int64
	asks  []asked
}

// of are the questions for one thing, in the order of their answers.
func (e *estate) of(what string) []asked {
	asks := slices.DeleteFunc(slices.Clone(e.asks), func(a asked) bool { return a.what != what })
	slices.SortStableFunc(asks, func(a, b asked) int { return cmp.Compare(a.until, b.until) })
	return asks
}

// waits says how long the others asked for each thing, since the last sign of the host. What nobody was given an answer
// about is left out. It is pure.
func (e *estate) waits() []result.Held {
	all := []result.Held{}
	for _, what := range e.holds {
		h, lost := result.Held{What: what}, false
		for _, a := range e.of(what) {
			switch {
			case h.GivenS > 0:
			case a.won:
				h.GivenS = float64(a.until-e.sign) / 1e9
			case a.given:
				lost = true // the answer to an earlier question was
			case a.err == nil:
				h.RefusedS = max(h.RefusedS, float64(a.invoke-e.sign)/1e9)
			}
		}
		if h.GivenS > 0 || h.RefusedS > 0 && !lost {
			all = append(all, h)
		}
	}
	return all
}

// inherited judges what became of the claims that lost hosts held: each is to be given to one of the others only. It is
// pure.
func inherited(estates []estate) (rows []result.Bench) {
	for _, protocol := range keptClaims {
		r := result.Bench{Workload: result.HostDeath, Protocol: protocol, Keys: 1}
		for _, e := range estates {
			if slices.Contains(e.holds, protocol) {
				e.inherit(&r)
			}
		}
		if r.Trials+r.Void > 0 {
			r.TakeoverMS = takeovers(r.Times)
			rows = append(rows, r)
		}
	}
	return rows
}

// inherit is one trial. A claim that nobody was given proves nothing.
func (e *estate) inherit(r *result.Bench) {
	time, won, by := result.TrialTime{Begin: e.sign, UnderFault: true}, 0, map[string]bool{}
	asks := e.of(r.Protocol)
	for _, a := range asks {
		time.End, by[a.by] = max(time.End, a.until), true
		if a.won {
			won++
			time.Done = cmp.Or(time.Done, a.until)
		}
	}
	if won == 0 {
		why := "nobody was given the claim: the host may live, and hold it, or was asked for too briefly"
		if slices.ContainsFunc(asks, func(a asked) bool { return a.given }) {
			why = "the answer of whoever was given the claim is lost"
		}
		if r.Void++; !slices.Contains(r.Voided, why) {
			r.Voided = append(r.Voided, why)
		}
		return
	}
	r.Trials, r.Attempts, r.Expected, r.UnderFault = r.Trials+1, r.Attempts+len(asks), r.Expected+1, r.UnderFault+1
	r.Executed, r.Duplicates, r.Contenders = r.Executed+won, r.Duplicates+won-1, max(r.Contenders, len(by))
	r.Times = append(r.Times, time)
}

// takeovers are counted from the last sign of the host, after which it died.
func takeovers(trials []result.TrialTime) *result.Latency {
	var took []float64
	for _, t := range trials {
		took = append(took, float64(t.Done-t.Begin)/1e6)
	}
	if len(took) == 0 {
		return nil
	}
	p50, _, _, _ := stat.Median(took)
	return &result.Latency{N: len(took), P50: p50, Max: slices.Max(took)}
}
