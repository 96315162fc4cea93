package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// A host is a joined host as the coordinator knows it.
type host struct {
	index  int
	id     string
	hello  hello
	met    time.Time
	alive  context.Context // ends, with a LostError as its cause, when the host is lost
	lose   context.CancelCauseFunc
	kernel *kernel

	seen atomic.Int64 // when the last sign of it came, by the coordinator's clock

	holds   []string      // from the beginning of the survey
	watched chan struct{} // closed when nobody watches it any more; what follows is there then
	sign    int64         // the last of it, after which the others asked
	asks    []asked
	held    []result.Held

	mu    sync.Mutex
	trip  time.Duration // of the shortest ping; 0 before the first
	again int64         // how often the connection had been broken and mended by the first
}

func newHost(index int, id string, h hello) *host {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &host{index: index, id: id, hello: h, met: time.Now(), alive: ctx, lose: cancel}
}

func (h *host) name() string    { return h.hello.Name }
func (h *host) machine() string { return machine(&h.hello.Host, h.hello.TimeNS) }

// lost is why the host is lost, or nil.
func (h *host) lost() error {
	if h.alive.Err() == nil {
		return nil
	}
	return context.Cause(h.alive)
}

func (h *host) losing(why string) { h.lose(&LostError{h.name(), why}) }

// ask sends an order or an errand and waits for its answer: until the context ends, or the host is lost. One that answers
// pings and nothing else is lost, too.
func (f *Fleet) ask(ctx context.Context, h *host, at string, what any) (answer, error) {
	var a answer
	if err := h.lost(); err != nil {
		return a, err
	}
	both, cancel := context.WithTimeout(ctx, f.mostWait)
	defer cancel()
	defer context.AfterFunc(h.alive, cancel)()
	sub, err := f.answersOf(h)
	if err != nil {
		return a, err
	}
	defer unsubscribe(sub)
	msg, err := f.question(both, sub, at, encode(what))
	switch {
	case h.lost() != nil:
		return a, h.lost()
	case errors.Is(err, nats.ErrNoResponders):
		h.losing("it no longer listens")
		return a, h.lost()
	case err != nil && both.Err() != nil && ctx.Err() == nil:
		h.losing(fmt.Sprintf("it lives, and has not answered for %v", f.mostWait))
		return a, h.lost()
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrMaxPayload):
		return a, err
	case err != nil:
		return a, fmt.Errorf("host %s gives no answer: %w", h.name(), err)
	}
	if err := decode(msg.Data, &a); err != nil {
		h.losing("its answer makes no sense: " + fmt.Sprintf("%.80s", err))
		return a, h.lost()
	}
	return a, a.Failure.error(h.name())
}

// answersOf listens for one answer of a host, where it alone may give it: nats.Conn's own requests are answered at the
// inbox of who asks, where no permission tells one host from another.
func (f *Fleet) answersOf(h *host) (*nats.Subscription, error) {
	return f.point.nc.SubscribeSync(answerAt(f.session, h.id))
}

func (f *Fleet) question(ctx context.Context, answers *nats.Subscription, at string, what []byte) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // what nobody waits for is not asked
	}
	if err := f.point.nc.PublishRequest(at, answers.Subject, what); err != nil {
		return nil, err
	}
	return answers.NextMsgWithContext(ctx)
}

// unsubscribe fails only on a connection that is closed, where nothing is left to do.
func unsubscribe(s *nats.Subscription) { _ = s.Unsubscribe() }

func (f *Fleet) errand(ctx context.Context, h *host, e *errand) (answer, error) {
	return f.ask(ctx, h, errandAt(f.session, h.id), e)
}

// The pace of pings: at first fast, for the clocks, then just to hear whether the host lives.
const (
	firstPings = 40
	pingEvery  = 250 * time.Millisecond
	silence    = 12 * time.Second        // without an answer, and the host is lost
	wordsWait  = 8 * time.Second         // for words that are on their way
	pingWait   = silence                 // a late answer is a sign of life, too
	patience   = silence + 2*time.Second // who waits for a lost host hears first that it is
	mostWait   = 30 * time.Minute        // for an answer: longer than anything that a contender does at once
)

// listenTo pings every host from now on. It returns when the first pings are answered.
func (f *Fleet) listenTo(ctx context.Context) error {
	for _, h := range f.hosts {
		key := cmp.Or(h.machine(), fmt.Sprint("unknown ", h.index))
		if f.kernels[key] == nil {
			f.kernels[key] = &kernel{own: key == f.self}
		}
		h.kernel = f.kernels[key]
	}
	return f.each(f.hosts, func(h *host) error {
		until := time.Now().Add(patience)
		for n := 0; n < firstPings; {
			err := f.ping(h)
			switch {
			case err == nil:
				n++
			case ctx.Err() != nil:
				return ctx.Err()
			case time.Now().After(until):
				h.losing("it joined, and never answered")
				return h.lost()
			default:
				time.Sleep(20 * time.Millisecond) // it may not listen yet
			}
		}
		go f.keepPinging(h)
		return nil
	})
}

func (f *Fleet) keepPinging(h *host) {
	last := time.Now()
	for {
		select {
		case <-h.alive.Done():
			return
		case <-time.After(pingEvery):
		}
		err := f.ping(h)
		f.mu.Lock()
		closing := f.closing
		f.mu.Unlock()
		switch {
		case closing:
			return
		case err == nil:
			last = time.Now()
		case errors.Is(err, nats.ErrNoResponders):
			h.losing("its process or its connection is gone")
		case errors.Is(err, nats.ErrConnectionClosed):
			h.losing("the coordinator has lost its own connection")
		case time.Since(last) > silence:
			h.losing(fmt.Sprintf("no sign of it for %v", silence))
		}
	}
}

// gone reports whether a host has ended since it joined. One that has just joined may not listen yet, and a connection that
// broke may be mended at once.
func (f *Fleet) gone(ctx context.Context, h *host) bool {
	sub, err := f.answersOf(h)
	if err != nil {
		return false
	}
	defer unsubscribe(sub)
	until := time.Now().Add(max(time.Second, patience-time.Since(h.met)))
	for {
		one, cancel := context.WithTimeout(ctx, time.Second)
		_, err := f.question(one, sub, pingAt(f.session, h.id), nil)
		cancel()
		switch {
		case !errors.Is(err, nats.ErrNoResponders):
			return false
		case time.Now().After(until):
			return true
		case pause(ctx, 50*time.Millisecond) != nil:
			return false
		}
	}
}

// ping takes one sample of the host's clock.
func (f *Fleet) ping(h *host) error {
	ctx, cancel := context.WithTimeout(context.Background(), pingWait)
	defer cancel()
	sub, err := f.answersOf(h)
	if err != nil {
		return err
	}
	defer unsubscribe(sub)
	sent := race.Now()
	msg, err := f.question(ctx, sub, pingAt(f.session, h.id), nil)
	back := race.Now()
	if err != nil {
		return err
	}
	var p pong
	if err := decode(msg.Data, &p); err != nil {
		return err
	}
	h.seen.Store(back)
	h.kernel.add(sample{sent, back, p.At})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trip == 0 {
		h.again = p.Again // nothing was on its way yet
	}
	if p.Again != h.again {
		h.losing("its connection was broken meanwhile, and what was on its way is lost")
	}
	if trip := time.Duration(back - sent); h.trip == 0 || trip < h.trip {
		h.trip = trip
	}
	return nil
}

// A kernel is one clock, whichever of its hosts read it.
type kernel struct {
	own bool // the coordinator's, which needs no correction

	mu      sync.Mutex
	samples []sample
	fit     fit
	fitted  time.Time
}

func (k *kernel) add(s sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.samples) == keptSamples {
		k.samples = append(k.samples[:0], k.samples[keptSamples/8:]...)
	}
	k.samples = append(k.samples, s)
}

// fresh is a fit to all that is known by now, for a comparison.
func (k *kernel) fresh() fit {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fitClock(k.samples)
}

// fits counts them all.
var fits atomic.Int64

// refitAfter is how old a fit may be.
const refitAfter = time.Second

// current is the fit to go by. All hosts of one kernel are given the same.
func (k *kernel) current() fit {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.own:
		k.fit = fit{unsure: func(int64) int64 { return 0 }}
	case time.Since(k.fitted) > refitAfter:
		k.fit, k.fitted = fitClock(k.samples), time.Now()
		k.fit.number = int(fits.Add(1))
	}
	return k.fit
}
