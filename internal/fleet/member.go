package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/survey"
)

// heard counts the coordinator's news, for orders that must not be carried out before them. After one that is missing
// none counts.
type heard struct {
	mu    sync.Mutex
	moved *sync.Cond
	last  uint64
}

func newHeard() *heard {
	h := &heard{}
	h.moved = sync.NewCond(&h.mu)
	return h
}

func (h *heard) set(number uint64) {
	h.mu.Lock()
	if number == h.last+1 {
		h.last = number
	}
	h.mu.Unlock()
	h.moved.Broadcast()
}

// wait reports whether the news of that number came in time.
func (h *heard) wait(number uint64, d time.Duration) bool {
	late := false
	t := time.AfterFunc(d, func() {
		h.mu.Lock()
		late = true
		h.mu.Unlock()
		h.moved.Broadcast()
	})
	defer t.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.last < number && !late {
		h.moved.Wait()
	}
	return h.last >= number
}

// serve listens for errands, pings and news.
func (m *member) serve(ctx context.Context, w welcome) error {
	m.words = newHeard()
	_, err := m.nc.Subscribe(pingAt(w.Session, m.id), func(msg *nats.Msg) {
		m.pinged.Store(race.Now())
		_ = msg.Respond(encode(pong{At: race.Now() + m.pretend.ahead, Again: m.again.Load()})) // who does not hear it asks again
	})
	if err == nil {
		_, err = m.nc.Subscribe(prefix+w.Session+anyWords, m.hear)
	}
	if err == nil {
		_, err = m.nc.Subscribe(prefix+w.Session+starts, func(msg *nats.Msg) {
			var s start
			if err := decode(msg.Data, &s); err != nil {
				m.strays.add("starts", err)
				return
			}
			for _, d := range m.all() {
				d.start(&s)
			}
		})
	}
	if err == nil {
		_, err = m.nc.Subscribe(errandAt(w.Session, m.id), func(msg *nats.Msg) {
			var e errand
			if err := decode(msg.Data, &e); err != nil {
				m.reply(msg, answer{Failure: failureOf(fmt.Errorf("errand: %w", err))})
				return
			}
			a := answer{}
			if e.Do == doKeep || e.Do == doAsk { // beside all else, which a lock that hangs must not keep waiting
				go func() {
					a.Failure = failureOf(m.run(ctx, w, &e, &a))
					m.reply(msg, a)
				}()
				return
			}
			a.Failure = failureOf(m.run(ctx, w, &e, &a))
			m.reply(msg, a)
			if e.Do == doLeave {
				_ = m.nc.Flush()
				m.end(nil)
			}
		})
	}
	if err != nil {
		return err
	}
	return m.nc.FlushTimeout(5 * time.Second)
}

func (m *member) reply(msg *nats.Msg, a answer) {
	switch err := msg.Respond(encode(a)); {
	case err == nil, errors.Is(err, nats.ErrConnectionClosed):
	case errors.Is(err, nats.ErrMsgNoReply):
		m.strays.add("orders", err)
	default:
		m.Log("answer: " + err.Error())
	}
}

// hear has every desk take note of what changed in contenders' words. What a host announces neither counts nor changes
// what a contender of another has written: that is the coordinator's alone.
func (m *member) hear(msg *nats.Msg) {
	ours := strings.HasSuffix(msg.Subject, written)
	var n news
	err := decode(msg.Data, &n)
	if err == nil && !ours {
		err = m.homeOf(n.Words, idIn(msg.Subject))
	}
	for _, d := range m.all() {
		if err == nil {
			err = d.write(n.Words, n.Echo || !ours)
		}
	}
	if err != nil {
		m.strays.add("words", err)
		return
	}
	if ours {
		m.words.set(n.Number)
	}
}

// homeOf objects to words of contenders that are not on the host that announces them.
func (m *member) homeOf(patches []byte, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	others := -1
	err := patched(patches, func(who, _ int, _ uint64) {
		if who >= len(m.homes) || m.homes[who] != id {
			others = who
		}
	})
	if err == nil && others >= 0 {
		err = fmt.Errorf("a host announces words of contender %d, which is another's", others)
	}
	return err
}

// watch ends the host's part when the coordinator is gone: with a NATS server that is not its own the connection does not
// tell. It pings as long as it surveys, and answers as long as it lives.
func (m *member) watch(ctx context.Context, w welcome) {
	limit := 5 * m.Away // a connection that is there has more time: the other machine may be busy
	for last := race.Now(); pause(ctx, limit/8) == nil; {
		if last = max(last, m.pinged.Load()); time.Duration(race.Now()-last) < limit/2 {
			continue
		}
		one, cancel := context.WithTimeout(ctx, limit/2)
		_, err := m.nc.RequestWithContext(one, prefix+w.Session+alive, nil)
		cancel()
		switch {
		case err == nil:
			last = race.Now()
		case time.Duration(race.Now()-last) >= limit:
			m.end(fmt.Errorf("the coordinator is out of reach for %v: %w", limit, err))
			return
		}
	}
}

// run does one errand.
func (m *member) run(ctx context.Context, w welcome, e *errand, a *answer) (err error) {
	if e.Way < 0 || e.Way >= len(m.sites) {
		return fmt.Errorf("way %d of %d: refused", e.Way, len(m.sites))
	}
	if m.leaving() {
		return errLeaving
	}
	s := m.sites[e.Way]
	switch e.Do {
	case doSub, doClear, doRemove, doKeep, doAsk, doSign:
		if !m.has(e.Nonce) { // as if it were not there: who removes it over every way objects to nothing else
			return &os.PathError{Op: e.Do, Path: dirPrefix + e.Nonce, Err: unix.ENOENT}
		}
	}
	switch e.Do {
	case doStart:
		return m.start(ctx, w, e, a)
	case doMake:
		m.mine(e.Nonce, true)
		err := s.make(e.Nonce)
		if errors.Is(err, os.ErrExist) {
			m.mine(e.Nonce, false) // another's
		}
		return err
	case doSee:
		if a.Seen, err = s.see(e.Nonce); a.Seen {
			m.mine(e.Nonce, true)
		}
		return err
	case doSub:
		return s.sub(e.Nonce, e.Sub)
	case doClear:
		return s.clear(e.Nonce, e.Sub)
	case doRemove:
		if err := s.remove(e.Nonce); err != nil {
			return err
		}
		m.mine(e.Nonce, false)
	case doKeep:
		dir, err := keptIn(e)
		if err == nil {
			a.Held, err = m.keep(s, dir, e.Name)
		}
		return err
	case doAsk:
		dir, err := keptIn(e)
		if err == nil {
			a.Won, a.Given, err = s.ask(dir, e.Name, e.What)
		}
		return err
	case doRelease:
		m.release()
	case doSign:
		return s.signAgain(e.Nonce)
	case doTidy:
		a.Notes = survey.RemoveLeftOvers(s.path)
	case doCancel:
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, who := range e.Contenders {
			if d := m.desks[who]; d != nil {
				d.interrupt(e.Heats)
			}
		}
	case doLeave: // once that is answered
	default:
		return fmt.Errorf("%.40q is no errand", e.Do)
	}
	return nil
}

// mine notes which work directories are there that this host made or saw: nothing is done in others, and these it removes
// when nobody else can.
func (m *member) mine(nonce string, there bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.made, nonce); there && nonceForm.MatchString(nonce) && m.made != nil {
		m.made[nonce] = true
	}
}

func (m *member) has(nonce string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made[nonce]
}

// start starts the contenders, each on a line of its own.
func (m *member) start(ctx context.Context, w welcome, e *errand, a *answer) error {
	if len(e.Route) != len(e.Contenders) || e.HangAfter <= 0 || slices.ContainsFunc(e.Route, func(r int) bool { return r < 0 || r >= len(m.sites) }) {
		return errors.New("an errand that is not complete: start")
	}
	m.mu.Lock()
	m.homes = e.Homes
	m.mu.Unlock()
	if e.Seen > 0 && !m.words.wait(e.Seen, wordsWait) { // words that are still on their way are of those before
		return errors.New("words never came")
	}
	if err := m.dismiss(); err != nil {
		return err
	}
	// Each desk waits for its contender in a system call. The runtime gives the processor of such a call to other
	// goroutines only after up to 10 ms; with one to spare for each nobody waits for that.
	runtime.GOMAXPROCS(runtime.NumCPU() + len(e.Contenders) + 1)
	for k, who := range e.Contenders {
		if m.desk(who) != nil {
			return fmt.Errorf("contender %d is there already: refused", who)
		}
		line, err := race.Start(race.Config{Ops: m.Ops, Contenders: 1, First: who, Place: w.Host + k, HangAfter: time.Duration(e.HangAfter), Seed: e.Seed})
		if err != nil {
			return err
		}
		d := newDesk(who, m.sites[e.Route[k]].path, line, m.ops)
		d.ahead = m.pretend.ahead
		// Whether these arrive shows elsewhere: a coordinator that is gone ends everything.
		d.tell = func(patches []byte) {
			_ = m.nc.Publish(prefix+w.Session+announced+m.id, encode(news{Words: patches}))
		}
		d.arrived = func(a arrival) { _ = m.nc.Publish(prefix+w.Session+arrivals+m.id, encode(a)) }
		if !m.take(d) {
			return errors.Join(errLeaving, d.close())
		}
		if err := m.attend(ctx, w, d); err != nil {
			return err
		}
		a.Whos = append(a.Whos, line.Contender(who))
	}
	return m.nc.FlushTimeout(5 * time.Second)
}

// dismiss ends the contenders that are there.
func (m *member) dismiss() (err error) {
	for _, d := range m.all() {
		unsubscribe(d.orders)
		m.mu.Lock()
		delete(m.desks, d.who)
		m.mu.Unlock()
		err = errors.Join(err, d.close())
	}
	return err
}

// errLeaving is what a host says whose part is over, and that is about to end its contenders.
var errLeaving = errors.New("this host is leaving: refused")

func (m *member) leaving() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.desks == nil
}

// take keeps a desk, for close to close, unless that has begun.
func (m *member) take(d *desk) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.desks == nil {
		return false
	}
	m.desks[d.who] = d
	return true
}

func (m *member) all() []*desk {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.desks))
}

func (m *member) desk(who int) *desk {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.desks[who]
}

// attend carries out the orders for one contender.
func (m *member) attend(ctx context.Context, w welcome, d *desk) (err error) {
	d.orders, err = m.nc.Subscribe(contenderAt(w.Session, m.id, d.who), func(msg *nats.Msg) {
		var o order
		if err := decode(msg.Data, &o); err != nil {
			m.reply(msg, answer{Failure: failureOf(fmt.Errorf("order: %w", err))})
			return
		}
		if !m.words.wait(o.Seen, wordsWait) {
			m.reply(msg, answer{Failure: failureOf(errors.New("words that an order rests on never came"))})
			return
		}
		m.reply(msg, d.carryOut(ctx, &o))
	})
	return err
}
