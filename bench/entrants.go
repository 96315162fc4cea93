package bench

import (
	"github.com/claimbench/claimbench/engine"
)

// An entrant is one way to claim work, that takes part in the workloads.
type entrant struct {
	name     string
	settings string
	open     func(dir string, e engine.Env) (engine.Protocol, error)
}

// entrants are the protocols of the engine, its controls, one of our own, and what people use instead.
var entrants = allEntrants()

func allEntrants() []entrant {
	var all []entrant
	for _, s := range engine.Protocols {
		all = append(all, entrant{name: s.Name, open: opener(s)})
	}
	for _, s := range engine.Controls {
		all = append(all, entrant{name: s.Name, open: opener(s)})
	}
	all = append(all, entrant{
		name: "generations/empty-is-stale", // an empty claim counts as stale, whatever its age
		open: func(_ string, e engine.Env) (engine.Protocol, error) {
			e.FS = emptyIsStale{e.FS}
			spec, _ := engine.Find("generations")
			return spec.New(e), nil
		},
	})
	return append(all, peers...)
}

func opener(s engine.Spec) func(string, engine.Env) (engine.Protocol, error) {
	return func(_ string, e engine.Env) (engine.Protocol, error) { return s.New(e), nil }
}

// wrong says that a protocol is one of the engine's that are not meant to be safe.
func wrong(protocol string) bool {
	s, ok := engine.Find(protocol)
	return ok && !s.Safe
}

func entrantNamed(name string) int {
	for i := range entrants {
		if entrants[i].name == name {
			return i
		}
	}
	panic("bench: no entrant " + name)
}
