package engine

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// generations never takes anything away. The claims of a key are numbered
// files beside each other, <fan>/<sig>.gen<N>.claim. Each is created
// exclusively, and only the one with the highest number counts:
//
//   - Claiming a key that nobody claimed creates generation 1.
//   - Taking over from generation N, once N has expired or was given back,
//     creates N+1.
//   - Recording that generation N did the work creates N+1 as well, as a done
//     record. So a take-over and a late finish compete for the same name, and
//     the second to come learns that it is the second. After a done record
//     nothing is created any more.
//   - Renewing touches the held file. Giving back changes its first byte.
//
// It promises: at most one contender wins a generation; there is no generation
// after done; whoever dies, the key can be taken over once its claim is TTL
// old. It cannot promise that an owner stalled past its TTL does nothing when
// it wakes: the generation number is there to refuse it.
//
// It rests on excl-create, on timestamps that come from one clock, and on
// visibility: a renewal has to show within Slack. No order of the contenders'
// steps breaks it. Where exclusive create has two winners, both execute:
//
//  1. A creates gen1, and wins.
//  2. B creates gen1, and is told that it won.
//
// Where the times of a claim are read from a cache, a live owner is replaced:
//
//  1. A creates gen1, and B caches its times.
//  2. A renews gen1, in time, and again.
//  3. B reads the times that it cached: older than TTL. B creates gen2.
//
// The same happens where content is read from a cache, for longer than a TTL:
//
//  1. A creates gen2, its done record. B reads it, empty still, and caches that.
//  2. A writes the record.
//  3. B reads what it cached, and finds gen2 older than TTL. B creates gen3, and
//     the work is done again.
//
// GlusterFS with its md-cache did this with a TTL of half a second. The record
// of generations-linked is in the file before the file has its name.
//
// A reader that sees no file where there is one only loses time: whether a name
// is free is decided by the exclusive create. So does an owner whose successful
// create was answered with EEXIST. It has no descriptor and no nonce in the file
// to know it by, and an empty file may as well be another's: nobody owns that
// claim, and it expires. generations-linked knows its claim in this case.
type generations struct {
	fs     FS
	clock  Clock
	nonce  Nonce
	params Params
	// publish makes the file of a generation, with the record in it, and
	// leaves it open. EEXIST means that the generation is another's. A file
	// returned together with any other error was made, but may not hold the
	// record.
	publish func(name string, rec record) (File, error)
}

func newGenerations(fs FS, clock Clock, nonce Nonce, params Params) *generations {
	g := &generations{fs: fs, clock: clock, nonce: nonce, params: params}
	g.publish = g.create
	return g
}

// Try starts with the create. On a fresh key that is all there is to do, and a
// look before it would leave a negative entry in a network client's cache.
func (g *generations) Try(sig Signature) (Outcome, error) {
	began := g.clock.Now()
	out, err := g.claim(sig, 1, began)
	if !errors.Is(err, syscall.EEXIST) {
		return out, err
	}
	last, err := g.latest(sig)
	if err != nil {
		return Outcome{}, unknown(err)
	}
	out, free, err := g.judge(sig, last)
	if err != nil || !free {
		return out, err
	}
	out, err = g.claim(sig, last+1, began)
	if errors.Is(err, syscall.EEXIST) {
		return Outcome{State: Held, Generation: last + 1}, nil
	}
	return out, err
}

// latest finds the highest generation without listing the directory. The
// numbers have no gaps, so it doubles the number until there is no such file,
// and then halves the interval. Generation 1 is known to exist.
func (g *generations) latest(sig Signature) (uint64, error) {
	lo, hi := uint64(1), uint64(2)
	for {
		there, err := exists(g.fs, sig.claim(hi))
		if err != nil {
			return 0, err
		}
		if !there {
			break
		}
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		there, err := exists(g.fs, sig.claim(mid))
		if err != nil {
			return 0, err
		}
		if there {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// judge says what the latest generation stands for, and whether the next one
// may be created. A claim without readable content is judged by its age like
// any other: it may be a moment old, and its owner about to write.
func (g *generations) judge(sig Signature, last uint64) (Outcome, bool, error) {
	out, _, free, err := g.settled(sig, last)
	if err != nil || free || out.State == Done {
		return out, free, err
	}
	// The clock is read before the times of the claim. The other way round, an
	// owner that renews between the two is taken for expired:
	//
	//	1. B reads the time of A's claim, TTL ago but a moment.
	//	2. A renews, in time.
	//	3. B reads the clock: the time it read is older than TTL. B takes over.
	now, err := g.fs.Now()
	if err != nil {
		return Outcome{}, false, unknown(fmt.Errorf("read the filesystem's clock: %w", err))
	}
	out, s, free, err := g.settled(sig, last)
	if err != nil || free || out.State == Done {
		return out, free, err
	}
	until, err := s.until(now, g.params.TTL)
	if err != nil {
		return Outcome{}, false, unknown(err)
	}
	out.Until = until
	if s.torn && last > 1 {
		finished, err := g.finished(sig, last-1)
		if err != nil {
			return Outcome{}, false, unknown(err)
		}
		if finished {
			return Outcome{State: Done, Generation: last, Torn: true}, false, nil
		}
	}
	return out, now.After(until), nil
}

// settled reads the latest generation: what is done, or was given back, has no
// age to be judged by. The clock, which costs a write, is not read for it.
func (g *generations) settled(sig Signature, last uint64) (Outcome, slot, bool, error) {
	s, err := readSlot(g.fs, sig.claim(last))
	if err != nil {
		return Outcome{}, s, false, unknown(err)
	}
	out := Outcome{State: Held, Generation: last, Owner: s.rec.nonce}
	if s.rec.state == stateDone {
		out.State, out.Record, out.Torn = Done, s.rec.body, s.torn
	}
	return out, s, s.rec.state == stateDropped && !s.torn, nil
}

// finished asks the generation before an unreadable file whether that file is
// its done record.
func (g *generations) finished(sig Signature, generation uint64) (bool, error) {
	s, err := readSlot(g.fs, sig.claim(generation))
	return s.rec.state == stateFinished && !s.torn, err
}

// claim creates one generation, and returns EEXIST as it is. The lease counts
// from the beginning of the attempt: that is before the create, and so before
// the moment from which others count.
func (g *generations) claim(sig Signature, generation uint64, began time.Duration) (Outcome, error) {
	nonce, err := encodeNonce(g.nonce)
	if err != nil {
		return Outcome{}, err
	}
	name := sig.claim(generation)
	rec := record{state: stateClaimed, nonce: nonce, generation: generation}
	f, err := inFan(g.fs, sig, func() (File, error) { return g.publish(name, rec) })
	if err != nil {
		return Outcome{}, givenUp(f, err)
	}
	info, err := f.Stat()
	if err != nil {
		return Outcome{}, givenUp(f, fmt.Errorf("stat %s: %w", name, err))
	}
	l := &generationsLease{g: g, sig: sig, rec: rec, file: f, nlink: info.Nlink}
	l.expires.Store(int64(began + g.params.TTL - g.params.Slack))
	if now := g.clock.Now(); now-began > g.params.Deadline || now >= l.Expires() {
		return answer(Outcome{State: Held, Generation: generation, Owner: nonce}, l.Drop())
	}
	until := later(info.Mtime, info.Ctime).Add(g.params.TTL)
	return Outcome{State: Won, Generation: generation, Until: until, Owner: nonce, Lease: l}, nil
}

// create is publish for a filesystem without links: create, then write. A
// contender that dies between the two leaves an empty claim, which expires.
func (g *generations) create(name string, rec record) (File, error) {
	f, err := g.fs.Create(name)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	return f, writeRecord(f, name, rec, g.params.Sync)
}
