package probes

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// A Dilution plants a rare violation in what is raced: each round is done in the wrong way of a control with the
// probability P, and rightly otherwise. Seed and round decide which, so that all contenders of a round, and those who
// judge it, agree. The zero Dilution plants nothing.
type Dilution struct {
	P    float64
	Seed uint32
}

// Wrong reports whether the round of that number is done wrongly.
func (d Dilution) Wrong(round int) bool { return wrongRound(d.arg(), int64(round)) }

// arg is the dilution as an operation is handed it: the seed, and P in parts of 1<<32.
func (d Dilution) arg() uint64 {
	return uint64(d.Seed)<<32 | uint64(min(d.P*(1<<32), math.MaxUint32))
}

// wrongRound mixes as splitmix64 does (Steele, Lea and Flood, 2014): rounds are numbered one after the other.
//
//go:nosplit
func wrongRound(arg uint64, round int64) bool {
	x := uint64(round)*0x9e3779b97f4a7c15 ^ (arg>>32+1)*0xd1342543de82ef95
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (x^x>>31)>>32 < arg&math.MaxUint32
}

// dilutions are the operations that can be diluted: what is raced, and what is wrong of it.
var dilutions = []struct{ probe, right, wrong string }{
	{"excl-create", "open-excl", "stat-then-create"},
	{"mkdir", "mkdir", "stat-then-mkdir-p"},
	{"symlink", "symlink", "lstat-then-ln-sf"},
	{"link", "link", "stat-then-rename"},
	{"rename-noreplace", "rename-noreplace", "stat-then-rename"},
	{"rename-dir-occupied", "rename-dir", "rename-dir-after-emptying"},
	{"rename-replace", "rename-replace", "unlink-then-rename"},
	{"publish", "publish-by-link", "create-then-write"},
	{"publish", "publish-by-rename", "create-then-write"},
	{"flock", "flock", "no-lock"},
	{"posix-lock", "posix-lock", "no-lock"},
	{"ofd-lock", "ofd-lock", "no-lock"},
	{"lock-coherence", "count-under-flock", "count-under-no"},
	{"lock-coherence", "count-under-posix-lock", "count-under-no"},
	{"lock-coherence", "count-under-ofd-lock", "count-under-no"},
}

// A Dilutable is a probe whose races can be diluted, and what is then done wrongly.
type Dilutable struct {
	Probe, Wrong string
	Races        int // for each of which the rounds of a Bench are wanted
}

// Dilutables are all of them, in the order of All.
func Dilutables() (all []Dilutable) {
	for _, d := range dilutions {
		if len(all) == 0 || all[len(all)-1].Probe != d.probe {
			all = append(all, Dilutable{Probe: d.probe, Wrong: d.wrong})
		}
		all[len(all)-1].Races++
	}
	return all
}

const dilutedPrefix = "diluted:"

// DilutedOps is the table of operations that contenders must be given beside Ops for Bench.Dilution.
func DilutedOps() []race.Op {
	named := map[string]race.Op{}
	for _, op := range Ops() {
		named[op.Name] = op
	}
	var ops []race.Op
	for _, d := range dilutions {
		wrong := named[d.wrong]
		if d.probe == "rename-dir-occupied" {
			wrong.Observe = nil // a loser still has its directory, and the right one's looks at that
		}
		ops = append(ops, diluted(named[d.right], wrong))
	}
	return ops
}

// diluted makes one operation of two. What is left in the directory afterwards is looked at, and removed, as the right
// one does. What the wrong one lacks it has from the right one.
func diluted(right, wrong race.Op) race.Op {
	op := right
	op.Name = dilutedPrefix + right.Name
	op.Prepare = func(e *race.Env) unix.Errno {
		prepare := right.Prepare
		if wrong.Prepare != nil && wrongRound(e.Arg, e.Num) {
			prepare = wrong.Prepare
		}
		if prepare == nil {
			return 0
		}
		return prepare(e)
	}
	op.Attempt = func(e *race.Env, ev *race.Event) unix.Errno {
		if wrongRound(e.Arg, e.Num) {
			return wrong.Attempt(e, ev)
		}
		return right.Attempt(e, ev)
	}
	op.Observe, op.Settle = eitherWay(right.Observe, wrong.Observe), eitherWay(right.Settle, wrong.Settle)
	op.Close = func(e *race.Env) {
		for _, done := range []func(*race.Env){right.Close, wrong.Close} {
			if done != nil {
				done(e)
			}
		}
	}
	return op
}

// eitherWay is what follows an attempt: the wrong one's in a wrong round, if it has any.
func eitherWay(right, wrong func(*race.Env, *race.Event)) func(*race.Env, *race.Event) {
	return func(e *race.Env, ev *race.Event) {
		follow := right
		if wrong != nil && wrongRound(e.Arg, e.Num) {
			follow = wrong
		}
		if follow != nil {
			follow(e, ev)
		}
	}
}
