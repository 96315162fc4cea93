package explore

import (
	"encoding/binary"
	"time"

	"github.com/claimbench/claimbench/engine"
)

// Life is how a contender is.
type life uint8

const (
	none life = iota // it takes no part
	alive
	dead
	ended
)

// A state is all that the future depends on.
type state struct {
	fs     model
	actors [places]actor
	keys   [len(keys)]progress
	ticks  uint8
	deaths uint8
	turns  uint8 // preemptions, where they are bounded
	last   int8  // who did the last step, where preemptions are bounded
	alone  uint8 // bit n: contender n is refused its key even if no other is there
	ready  bool  // alone is known
}

type actor struct {
	at      int32
	life    life
	put     bool // it reads a clock later, after a tick
	won     bool
	working bool // began, and holds the claim still as far as it knows
	trying  bool
	late    bool // it began to claim before a done record that came late
	key     uint8
	flight  uint8 // ticks since its rename was issued, where they are bounded
	gen     uint64
	expires int64 // on the clock of the model
}

// progress is what became of a key.
type progress struct {
	gens     uint64 // bit n: generation n was executed
	finished bool   // an execution came to its end
	done     int8   // who recorded that it is done, plus one
	known    bool   // the fresh contender found it done
}

func (s *state) set(from *state) {
	fs := s.fs
	fs.set(&from.fs)
	*s = *from
	s.fs = fs
}

// holds says that the actor rightly believes that the claim is its own.
func (a *actor) holds(now int64) bool { return a.expires > now }

func (a *actor) release() {
	a.trying, a.won, a.working, a.late, a.gen, a.expires, a.key = false, false, false, false, 0, 0, 0
}

// finish is for a contender that does nothing any more: what it was about to
// do makes no difference.
func (a *actor) finish(how life) { *a = actor{life: how} }

// encode leaves out the number of preemptions, which the memo compares.
func (s *state) encode(b []byte) []byte {
	for i := range s.actors {
		a := &s.actors[i]
		if a.life == none {
			continue
		}
		b = append(b, byte(i), byte(a.life), flags(a.put, a.trying, a.won, a.working, a.late), a.key, a.flight)
		b = binary.LittleEndian.AppendUint32(b, uint32(a.at))
		b = binary.LittleEndian.AppendUint64(b, uint64(a.expires))
	}
	b = append(b, s.ticks, s.deaths, byte(s.last), s.alone)
	return s.encodeEnd(b)
}

// encodeEnd leaves the contenders out.
func (s *state) encodeEnd(b []byte) []byte {
	for _, k := range s.keys {
		b = binary.LittleEndian.AppendUint64(b, k.gens)
		b = append(b, flags(k.finished), byte(k.done))
	}
	return s.fs.encode(b)
}

func flags(all ...bool) (b byte) {
	for i, f := range all {
		if f {
			b |= 1 << i
		}
	}
	return b
}

// encode leaves out the times of directories that nobody ever asks for.
func (m *model) encode(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(m.now))
	b = append(b, byte(len(m.nodes)), byte(len(m.entries)), byte(len(m.handles)))
	for i := range m.nodes {
		n := &m.nodes[i]
		b = binary.LittleEndian.AppendUint64(b, uint64(n.id)<<32|uint64(n.data))
		b = binary.LittleEndian.AppendUint64(b, uint64(n.ino)<<32|uint64(n.nlink)<<8|uint64(flags(n.shared))<<7|uint64(n.kind))
		if !m.w.dated && m.unasked(n) {
			continue
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(n.mtime))
		b = binary.LittleEndian.AppendUint64(b, uint64(n.ctime))
	}
	for i := range m.entries {
		e := &m.entries[i]
		b = binary.LittleEndian.AppendUint64(b, uint64(e.dir)<<32|uint64(e.id))
		b = append(b, byte(e.part), byte(e.part>>8), e.by)
	}
	for i := range m.handles {
		h := &m.handles[i]
		b = binary.LittleEndian.AppendUint64(b, uint64(h.id)<<32|uint64(h.buf))
		b = append(b, h.who, h.slot, flags(h.lock, h.dirty))
	}
	for _, a := range m.absent {
		b = append(b, a.who, byte(a.path), byte(a.path>>8))
	}
	return append(b, flags(m.half[:]...), flags(m.lost[:]...))
}

// The clocks. A tick is longer than a TTL.
const (
	epoch  = int64(1_000_000_001_900_000_000)
	offset = 1000 * time.Hour // between the local clocks of two contenders
	ttl    = 30 * time.Second
	tick   = ttl + time.Second
	skew   = ttl + 2*time.Second
)

// params are the engine's defaults.
var params = engine.Params{TTL: ttl, Deadline: ttl / 2, Margin: ttl, Slack: ttl / 10}
