package explore

import (
	"slices"
	"strings"
	"syscall"

	"github.com/claimbench/claimbench/engine"
)

// names are all names that there are, sorted.
func (m *model) names() []string {
	var all []string
	var walk func(dir uint32, prefix string)
	walk = func(dir uint32, prefix string) {
		for _, e := range m.entries {
			if e.dir == dir {
				all = append(all, prefix+m.w.parts[e.part])
				walk(e.id, prefix+m.w.parts[e.part]+"/")
			}
		}
	}
	walk(rootID, "")
	slices.SortFunc(all, strings.Compare)
	return all
}

func (m *model) list(who int, s spot, choice int) Result {
	if !s.there() {
		return Result{Errno: syscall.ENOENT}
	}
	if m.node(s.id).kind != engine.Directory {
		return Result{Errno: syscall.ENOTDIR}
	}
	m.w.touch(StaleReaddir)
	hidden := -1
	for i, e := range m.entries {
		if choice == 1 && e.dir == s.id && int(e.by) != who && (hidden < 0 || e.id > m.entries[hidden].id) {
			hidden = i
		}
	}
	var names []string
	for i, e := range m.entries {
		if e.dir == s.id && i != hidden {
			names = append(names, m.w.parts[e.part])
		}
	}
	slices.Sort(names)
	return Result{Data: m.w.data([]byte(strings.Join(names, "\n")))}
}

func (m *model) stat(who int, n *node) Result {
	m.w.dated = m.w.dated || m.unasked(n)
	size := len(m.w.contents[m.seen(who, n)])
	return Result{Kind: uint8(n.kind), Size: int32(size), Ino: uint64(n.ino), Nlink: n.nlink, Mtime: n.mtime, Ctime: n.ctime}
}

// unasked says that the node is a directory at the top, or one without a name.
// No protocol asks for the times of these, the fan-out directories, so states
// are one that differ in them alone. Should one ask, or rename such a directory
// to where it may be asked for, that is noted, and all is explored again with
// them.
func (m *model) unasked(n *node) bool {
	if n.kind != engine.Directory {
		return false
	}
	return !slices.ContainsFunc(m.entries, func(e entry) bool { return e.id == n.id && e.dir != rootID })
}

func (m *model) knownAbsent(who int, name uint16) bool {
	return slices.Contains(m.absent, absence{uint8(who), name})
}

// remember keeps or drops the absence of a name from a contender's cache.
func (m *model) remember(who int, name uint16, there bool) {
	if m.weak != StaleNegative {
		return
	}
	a := absence{uint8(who), name}
	m.absent = slices.DeleteFunc(m.absent, func(b absence) bool { return a == b })
	if !there {
		m.absent = append(m.absent, a)
		slices.SortFunc(m.absent, func(a, b absence) int {
			return int(a.who)<<16 + int(a.path) - int(b.who)<<16 - int(b.path)
		})
	}
}
