package explore

import (
	"cmp"
	"slices"
	"syscall"

	"github.com/claimbench/claimbench/engine"
)

// A model is a filesystem in memory that does what Linux does, but for one
// weakness. It holds no pointers into itself, so that copying it copies the
// filesystem, and keeps everything sorted, so that equal filesystems are equal
// in memory.
type model struct {
	w       *world
	weak    Weakness
	now     int64
	nodes   []node
	entries []entry
	handles []handle
	absent  []absence
	made    [places]uint16 // by each contender: nodes
	slots   [places]uint8  // by each contender: handles
	half    [places]bool   // the first half of the pending step is done
	lost    [places]bool   // a reply was lost
}

// A node is what names and handles stand for. Its id says who made it and
// which of his it is, so that two orders of independent creates are one state.
type node struct {
	id           uint32
	data         uint32
	ino          uint32
	nlink        uint16
	kind         engine.Kind
	shared       bool // it has had a name that others use
	mtime, ctime int64
}

type entry struct {
	dir, id uint32
	part    uint16
	by      uint8
}

type handle struct {
	id    uint32
	buf   uint32
	who   uint8
	slot  uint8
	lock  bool
	dirty bool
}

// An absence is a name that a contender has looked up and not found.
type absence struct {
	who  uint8
	path uint16
}

const rootID = 0

func newModel(w *world, weak Weakness, now int64) *model {
	m := &model{w: w, weak: weak, now: now}
	m.nodes = []node{{id: rootID, ino: 1, nlink: 2, kind: engine.Directory, mtime: now, ctime: now}}
	return m
}

// set makes m a copy of from and keeps the memory that m has.
func (m *model) set(from *model) {
	nodes, entries, handles, absent := m.nodes[:0], m.entries[:0], m.handles[:0], m.absent[:0]
	*m = *from
	m.nodes = append(nodes, from.nodes...)
	m.entries = append(entries, from.entries...)
	m.handles = append(handles, from.handles...)
	m.absent = append(absent, from.absent...)
}

func (m *model) node(id uint32) *node {
	for i := range m.nodes {
		if m.nodes[i].id == id {
			return &m.nodes[i]
		}
	}
	return nil
}

func (m *model) entry(dir uint32, part uint16) int {
	for i := range m.entries {
		if m.entries[i].dir == dir && m.entries[i].part == part {
			return i
		}
	}
	return -1
}

// A spot is where a name is or would be.
type spot struct {
	dir  uint32
	part uint16
	at   int // in entries, or -1
	id   uint32
	root bool
	own  bool // a contender's private name
}

func (m *model) find(name uint16) (spot, syscall.Errno) {
	parts := m.w.paths[name].parts
	if len(parts) == 0 {
		return spot{root: true, id: rootID}, 0
	}
	dir := uint32(rootID)
	for _, part := range parts[:len(parts)-1] {
		i := m.entry(dir, part)
		if i < 0 {
			return spot{}, syscall.ENOENT
		}
		dir = m.entries[i].id
		if m.node(dir).kind != engine.Directory {
			return spot{}, syscall.ENOTDIR
		}
	}
	s := spot{dir: dir, part: parts[len(parts)-1], own: m.w.paths[name].owner >= 0}
	if s.at = m.entry(dir, s.part); s.at >= 0 {
		s.id = m.entries[s.at].id
	}
	return s, 0
}

func (s spot) there() bool { return s.root || s.at >= 0 }

// stamp is the time that a file gets which this contender changes.
func (m *model) stamp(who int) int64 {
	t := m.now
	if m.weak == ClockSkew {
		t += skewOf(who)
	}
	if m.weak == CoarseTimes {
		t -= t % int64(coarse)
	}
	return t
}

func (m *model) changed(id uint32, who int) {
	n := m.node(id)
	n.mtime = m.stamp(who)
	n.ctime = n.mtime
}

func (m *model) add(who int, s spot, kind engine.Kind) uint32 {
	m.made[who]++
	n := node{id: uint32(who+1)<<16 | uint32(m.made[who]), kind: kind, mtime: m.stamp(who)}
	n.ctime, n.ino = n.mtime, m.number(n.id)
	if kind == engine.Directory {
		n.nlink = 1
		m.node(s.dir).nlink++
	}
	i, _ := slices.BinarySearchFunc(m.nodes, n.id, func(a node, id uint32) int { return cmp.Compare(a.id, id) })
	m.nodes = slices.Insert(m.nodes, i, n)
	m.enter(who, s, n.id)
	return n.id
}

func (m *model) number(id uint32) uint32 {
	if m.weak != InodeReuse {
		return id
	}
	for n := uint32(2); ; n++ {
		if !slices.ContainsFunc(m.nodes, func(a node) bool { return a.ino == n }) {
			return n
		}
	}
}

// enter gives the node a name.
func (m *model) enter(who int, s spot, id uint32) {
	e := entry{dir: s.dir, part: s.part, id: id, by: uint8(who)}
	i, _ := slices.BinarySearchFunc(m.entries, e, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.part, b.part))
	})
	m.entries = slices.Insert(m.entries, i, e)
	n := m.node(id)
	n.nlink++
	n.shared = n.shared || !s.own
	m.changed(s.dir, who)
}

// leave takes the name away. A node that nothing stands for any more goes.
func (m *model) leave(who int, s spot) {
	m.entries = slices.Delete(m.entries, s.at, s.at+1)
	n := m.node(s.id)
	n.nlink--
	n.ctime = m.stamp(who)
	if n.kind == engine.Directory {
		n.nlink = 0
		m.node(s.dir).nlink--
	}
	m.changed(s.dir, who)
	m.forget(s.id)
}

func (m *model) forget(id uint32) {
	open := slices.ContainsFunc(m.handles, func(h handle) bool { return h.id == id })
	if m.node(id).nlink == 0 && !open {
		m.w.touch(InodeReuse)
		m.nodes = slices.DeleteFunc(m.nodes, func(n node) bool { return n.id == id })
	}
}

func (m *model) empty(dir uint32) bool {
	return !slices.ContainsFunc(m.entries, func(e entry) bool { return e.dir == dir })
}

// below says whether dir is inside of or the same as top.
func (m *model) below(dir, top uint32) bool {
	for dir != top {
		i := slices.IndexFunc(m.entries, func(e entry) bool { return e.id == dir })
		if i < 0 {
			return false
		}
		dir = m.entries[i].dir
	}
	return true
}

// skewOf is how far ahead the clock is that stamps a contender's files: B's is.
func skewOf(who int) int64 {
	if who == 1 {
		return int64(skew)
	}
	return 0
}
