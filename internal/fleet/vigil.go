package fleet

import (
	"context"
	"fmt"
	"maps"
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
	askWait    = 60 * time.Second  // for one answer
	vigilDir   = "vigil"
)

// An asked is one host's question for one thing, at instants of the coordinator's clock, and what came of it.
type asked struct {
	what, by      string
	invoke, until int64
	won, over     bool
	err           error
}

// keepVigil has each host hold something, from now on, and watches the hosts. Where that cannot be, nothing is learnt of
// the death of a host, which is no reason not to survey.
func (w *ground) keepVigil(ctx context.Context) {
	f := w.f
	if _, err := w.do(ctx, &w.routes[0], errand{Do: doSub, Sub: vigilDir}); err != nil {
		f.Log("what the death of a host costs cannot be seen: " + err.Error())
		return
	}
	// What one host does not see yet, as the directory is new, it does not hold.
	err := f.each(f.hosts, func(h *host) error {
		a, err := w.do(ctx, w.wayOf(h), errand{Do: doKeep, Sub: vigilDir, Name: h.name()})
		h.holds = a.Held
		return err
	})
	if err != nil {
		f.Log("what the death of a host costs cannot be seen everywhere: " + err.Error())
	}
	watching, cancel := context.WithCancel(context.Background())
	f.unwatch = cancel
	for _, h := range f.hosts {
		h.watched = make(chan struct{})
		go w.watch(watching, h)
	}
}

// wayOf is the first way of a host.
func (w *ground) wayOf(h *host) *route {
	return &w.routes[slices.IndexFunc(w.routes, func(r route) bool { return r.host == h })]
}

// watch waits for a host to be silent. One that is heard of again has lost nothing.
func (w *ground) watch(ctx context.Context, h *host) {
	defer close(h.watched)
	for pause(ctx, askEvery) == nil {
		sign := h.seen.Load()
		if h.lost() == nil && time.Duration(race.Now()-sign) < suspicious {
			continue
		}
		if h.asks = w.askAll(ctx, h, sign); h.lost() != nil {
			return
		}
	}
}

// askAll asks for all that a host holds, until it is given, or a sign of the host comes.
func (w *ground) askAll(ctx context.Context, h *host, sign int64) (asks []asked) {
	open := map[string]int{} // how often it is still asked for, once it was given
	for _, what := range h.holds {
		open[what] = askedAgain
	}
	for len(open) > 0 && time.Duration(race.Now()-sign) < w.f.askFor && h.seen.Load() == sign {
		for _, what := range slices.Sorted(maps.Keys(open)) {
			these := w.askOnce(ctx, h, what)
			asks = append(asks, these...)
			given := slices.ContainsFunc(asks, func(a asked) bool { return a.what == what && a.over })
			if open[what]--; !given {
				open[what] = askedAgain
			} else if open[what] < 0 || keptLocks[what] != nil {
				delete(open, what)
			}
		}
		if pause(ctx, askEvery) != nil {
			break
		}
	}
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
			one, cancel := context.WithTimeout(ctx, askWait)
			defer cancel()
			a := asked{what: what, by: o.name(), invoke: race.Now()}
			got, err := w.do(one, w.wayOf(o), errand{Do: doAsk, Sub: vigilDir, Name: h.name(), What: what})
			a.until, a.won, a.over, a.err = race.Now(), got.Won, got.Over, err
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
	for _, h := range f.hosts {
		if h.lost() == nil {
			continue
		}
		select {
		case <-h.watched:
		default:
			f.Log(fmt.Sprintf("what %s held is asked for, for up to %v", h.name(), f.askFor))
		}
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
			e := estate{h.holds, h.seen.Load(), h.asks}
			h.held = e.waits()
			estates = append(estates, e)
		}
	}
	// Whoever does not hear it lets all go when it leaves.
	_ = f.each(f.living(), func(h *host) error {
		_, err := f.ground.do(context.WithoutCancel(ctx), f.ground.wayOf(h), errand{Do: doRelease})
		return err
	})
	return inherited(estates)
}

// An estate is what a host held when it was lost, when the last sign of it was, and what the others asked for since.
type estate struct {
	holds []string
	sign  int64
	asks  []asked
}

// of are the questions for one thing.
func (e *estate) of(what string) []asked {
	return slices.DeleteFunc(slices.Clone(e.asks), func(a asked) bool { return a.what != what })
}

// waits says how long the others asked for each thing, since the last sign of the host. It is pure.
func (e *estate) waits() []result.Held {
	all := []result.Held{}
	for _, what := range e.holds {
		h := result.Held{What: what}
		for _, a := range e.of(what) {
			switch {
			case a.won && h.GivenS == 0:
				h.GivenS = float64(a.until-e.sign) / 1e9
			case a.err == nil && !a.over:
				h.RefusedS = max(h.RefusedS, float64(a.invoke-e.sign)/1e9)
			}
		}
		all = append(all, h)
	}
	return all
}

// inherited judges what became of the claims that lost hosts held: each has to be given to another, to one only. It is
// pure.
func inherited(estates []estate) (rows []result.Bench) {
	for _, protocol := range keptClaims {
		r := result.Bench{Workload: "host-death", Protocol: protocol, Keys: 1}
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

// inherit is one trial.
func (e *estate) inherit(r *result.Bench) {
	asks := e.of(r.Protocol)
	if len(asks) == 0 {
		r.Void, r.Voided = r.Void+1, []string{"nobody asked"}
		return
	}
	time, executed, by := result.TrialTime{Begin: e.sign, UnderFault: true}, 0, map[string]bool{}
	for _, a := range asks {
		time.End, by[a.by] = max(time.End, a.until), true
		if !a.won {
			continue
		}
		if executed++; executed == 1 {
			time.Done = a.until
		}
	}
	if last := asks[len(asks)-1]; executed == 0 && (last.err != nil || last.over) {
		r.Void, r.Voided = r.Void+1, []string{"no answer tells who was given it"}
		return
	}
	r.Trials, r.Attempts, r.Expected = r.Trials+1, r.Attempts+len(asks), r.Expected+1
	r.Executed, r.Duplicates, r.Contenders = r.Executed+executed, r.Duplicates+max(0, executed-1), max(r.Contenders, len(by))
	r.Times, r.UnderFault = append(r.Times, time), r.UnderFault+1
	if executed == 0 {
		r.Missed++
	}
}

// takeovers are counted from the last sign of the host, after which it died.
func takeovers(trials []result.TrialTime) *result.Latency {
	var took []float64
	for _, t := range trials {
		if t.Done != 0 {
			took = append(took, float64(t.Done-t.Begin)/1e6)
		}
	}
	if len(took) == 0 {
		return nil
	}
	p50, _, _, _ := stat.Median(took)
	return &result.Latency{N: len(took), P50: p50, Max: slices.Max(took)}
}
