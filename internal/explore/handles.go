package explore

import (
	"cmp"
	"slices"
	"syscall"

	"github.com/claimbench/claimbench/engine"
)

func (m *model) open(who int, id uint32) uint8 {
	m.slots[who]++
	h := handle{who: uint8(who), slot: m.slots[who], id: id}
	i, _ := slices.BinarySearchFunc(m.handles, h, func(a, b handle) int {
		return cmp.Or(cmp.Compare(a.who, b.who), cmp.Compare(a.slot, b.slot))
	})
	m.handles = slices.Insert(m.handles, i, h)
	return h.slot
}

func (m *model) handle(who int, slot uint8) *handle {
	for i := range m.handles {
		if m.handles[i].who == uint8(who) && m.handles[i].slot == slot {
			return &m.handles[i]
		}
	}
	return nil
}

// die closes what the contender has open. What it has not synced is gone.
func (m *model) die(who int) {
	for i := len(m.handles) - 1; i >= 0; i-- {
		if m.handles[i].who == uint8(who) {
			m.drop(i)
		}
	}
	m.absent = slices.DeleteFunc(m.absent, func(a absence) bool { return a.who == uint8(who) })
	m.half[who] = false
	m.made[who], m.slots[who], m.lost[who] = 0, 0, false
}

func (m *model) drop(i int) {
	id := m.handles[i].id
	m.handles = slices.Delete(m.handles, i, i+1)
	m.forget(id)
}

// seen is the content of a node as this contender reads it: what it has
// written itself, synced or not.
func (m *model) seen(who int, n *node) uint32 {
	for i := range m.handles {
		if h := &m.handles[i]; h.who == uint8(who) && h.id == n.id && h.dirty {
			return h.buf
		}
	}
	return n.data
}

// onHandle does a step on what is open, whatever became of its name.
func (m *model) onHandle(who int, op Op) (r Result, more bool) {
	h := m.handle(who, op.Handle)
	if h == nil {
		return Result{Errno: syscall.EBADF}, false
	}
	switch op.Verb {
	case WriteAt:
		m.write(who, h, op)
		return Result{}, false
	case Touch:
		m.changed(h.id, who)
		return Result{}, false
	case Fstat:
		return m.stat(who, m.node(h.id)), false
	case ReadAt:
		return m.read(who, h, op), false
	case TryLock:
		return Result{Errno: m.lock(h)}, false
	}
	if m.publish(who, h) {
		return Result{}, true
	}
	if op.Verb == Close {
		for i := range m.handles {
			if &m.handles[i] == h {
				m.drop(i)
				break
			}
		}
	}
	return Result{}, false
}

func (m *model) write(who int, h *handle, op Op) {
	m.w.touch(TornWrites)
	n := m.node(h.id)
	content := m.w.spliced(m.seen(who, n), op.Data, int(op.Off))
	if m.weak == TornWrites {
		h.buf, h.dirty = content, true
		return
	}
	n.data = content
	if op.Data != 0 {
		m.changed(h.id, who)
	}
}

// publish shows others what was written, in two steps. It reports whether one
// is still to come.
func (m *model) publish(who int, h *handle) bool {
	if !h.dirty {
		return false
	}
	n := m.node(h.id)
	m.changed(h.id, who)
	whole := m.w.contents[h.buf]
	if !m.half[who] && len(whole) > len(m.w.contents[n.data]) {
		m.half[who] = true
		n.data = m.w.data([]byte(whole[:len(whole)/2]))
		return true
	}
	m.half[who] = false
	n.data, h.buf, h.dirty = h.buf, 0, false
	return false
}

func (m *model) read(who int, h *handle, op Op) Result {
	n := m.node(h.id)
	if n.kind == engine.Directory {
		return Result{Errno: syscall.EISDIR}
	}
	content := m.w.contents[m.seen(who, n)]
	from := min(int(op.Off), len(content))
	to := min(from+int(op.Len), len(content))
	return Result{Data: m.w.data([]byte(content[from:to]))}
}

func (m *model) lock(h *handle) syscall.Errno {
	if m.weak == FlockNoop {
		h.lock = true
		return 0
	}
	for i := range m.handles {
		other := &m.handles[i]
		if other.id == h.id && other != h && other.lock && (m.weak != FlockLocal || mount(other.who) == mount(h.who)) {
			m.w.touch(FlockNoop, FlockLocal)
			return syscall.EWOULDBLOCK
		}
	}
	h.lock = true
	return 0
}

// mount is where a contender works: A on one, B and C on another.
func mount(who uint8) int {
	if who == 2 {
		return 1
	}
	return int(who)
}

// quiet says that a step makes no difference to anybody else, whenever it
// happens: it closes something that holds no lock, no name-less file and
// nothing unsynced.
func (m *model) quiet(who int, op Op) bool {
	if op.Verb != Close {
		return false
	}
	h := m.handle(who, op.Handle)
	return h == nil || !h.lock && !h.dirty && (m.weak != InodeReuse || m.node(h.id).nlink > 0)
}

// leaveAll is the orderly end of a process: what it wrote is kept.
func (m *model) leaveAll(who int) {
	for i := range m.handles {
		if h := &m.handles[i]; h.who == uint8(who) && h.dirty {
			m.node(h.id).data = h.buf
		}
	}
	m.die(who)
}

// private says that no other contender can come upon what is open.
func (m *model) private(who int, slot uint8) bool {
	h := m.handle(who, slot)
	return h != nil && int(h.id>>16)-1 == who && !m.node(h.id).shared
}
