package engine

// Protocols are all protocols, in the order of every table: from none to the
// wrong ones that people write to the right ones.
var Protocols = []Spec{
	{
		Name:    "generations",
		Summary: "an expired claim stays; the next generation is created beside it",
		Safe:    true,
		Needs:   []string{"excl-create", "timestamps", "visibility"},
		New:     func(e Env) Protocol { return newGenerations(e.FS, e) },
	},
	{
		Name:    "generations-linked",
		Summary: "as generations, each file written under a private name and linked whole",
		Safe:    true,
		Needs:   []string{"link", "timestamps", "visibility"},
		New:     func(e Env) Protocol { return newGenerationsLinked(e.FS, e) },
	},
}

// Controls are protocols with one rule broken on purpose. A harness that
// finds nothing wrong with them cannot see.
var Controls = []Spec{}

// Find returns the protocol or control of that name.
func Find(name string) (Spec, bool) {
	for _, list := range [][]Spec{Protocols, Controls} {
		for _, s := range list {
			if s.Name == name {
				return s, true
			}
		}
	}
	return Spec{}, false
}
