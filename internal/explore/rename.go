package explore

import (
	"slices"
	"syscall"

	"github.com/claimbench/claimbench/engine"
)

func (m *model) rename(who int, from, to uint16) syscall.Errno {
	s, errno := m.find(from)
	if errno != 0 {
		return errno
	}
	d, errno := m.find(to)
	if errno != 0 {
		return errno
	}
	if s.root || d.root {
		return syscall.EBUSY
	}
	if errno := m.mayRename(s, d); errno != 0 {
		return errno
	}
	if s.there() && s.id == d.id && d.there() {
		return 0
	}
	if d.there() {
		m.clear(who, d)
	}
	m.w.dated = m.w.dated || m.unasked(m.node(s.id))
	m.move(who, from, to)
	m.remember(who, to, true)
	return 0
}

// mayRename objects in the order in which Linux does (do_renameat2, vfs_rename).
func (m *model) mayRename(s, d spot) syscall.Errno {
	if !s.there() {
		return syscall.ENOENT
	}
	dir := m.node(s.id).kind == engine.Directory
	switch {
	case dir && m.below(d.dir, s.id):
		return syscall.EINVAL
	case !d.there() || s.id == d.id:
		return 0
	case m.node(d.id).kind == engine.Directory && m.below(s.dir, d.id):
		return syscall.ENOTEMPTY
	case dir && m.node(d.id).kind != engine.Directory:
		return syscall.ENOTDIR
	case !dir && m.node(d.id).kind == engine.Directory:
		return syscall.EISDIR
	case dir && !m.empty(d.id) && m.weak != RenameOccupied:
		m.w.touch(RenameOccupied)
		return syscall.ENOTEMPTY
	}
	return 0
}

// clear takes away what a rename replaces, with what is in it.
func (m *model) clear(who int, d spot) {
	for {
		i := slices.IndexFunc(m.entries, func(e entry) bool { return e.dir == d.id })
		if i < 0 {
			break
		}
		e := m.entries[i]
		m.clear(who, spot{dir: e.dir, part: e.part, at: i, id: e.id})
	}
	d.at = m.entry(d.dir, d.part)
	m.leave(who, d)
}

func (m *model) move(who int, from, to uint16) {
	s, _ := m.find(from)
	d, _ := m.find(to)
	n := m.node(s.id)
	m.entries = slices.Delete(m.entries, s.at, s.at+1)
	n.nlink--
	m.enter(who, d, s.id)
	m.node(s.id).ctime = m.stamp(who)
	m.changed(s.dir, who)
	if n.kind == engine.Directory {
		m.node(s.dir).nlink--
		m.node(d.dir).nlink++
	}
}
