package explore

import "hash/maphash"

// hash identifies a state; two states have the same one with probability
// 2^-128.
type hash [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func hashOf(b []byte) hash { return hash{maphash.Bytes(seeds[0], b), maphash.Bytes(seeds[1], b)} }

// A memo holds the states that were visited. It is a map with open addressing:
// a look-up is one cache line, where Go's map takes several, and there are
// tens of millions of them.
type memo struct {
	slots []visit
	n     int
}

// A visit is what is kept of a state: the number of schedules that it stands
// for, and with how many preemptions it was come to.
type visit struct {
	key       hash
	schedules float32
	turns     uint8
}

// enter notes that a state is come to. It says no if it was come to before
// with no more preemptions than now: the number only ever grows, and by the
// same steps from both, and the bound leaves out more steps the greater it is.
// So whatever can be done from here was done from there.
func (m *memo) enter(key hash, turns uint8) bool {
	if 3*m.n >= 2*len(m.slots) {
		m.grow()
	}
	v := m.find(key)
	if v.key == key && v.turns <= turns {
		return false
	}
	if v.key != key {
		m.n++
	}
	*v = visit{key: key, turns: turns}
	return true
}

// find is where the key is, or would be.
func (m *memo) find(key hash) *visit {
	mask := uint64(len(m.slots) - 1)
	for i := key[0] & mask; ; i = (i + 1) & mask {
		if v := &m.slots[i]; v.key == key || v.key == (hash{}) {
			return v
		}
	}
}

func (m *memo) has(key hash) bool { return m.n > 0 && m.find(key).key == key }

func (m *memo) grow() {
	old := m.slots
	m.slots = make([]visit, max(1024, 2*len(old)))
	for _, v := range old {
		if v.key != (hash{}) {
			*m.find(v.key) = v
		}
	}
}
