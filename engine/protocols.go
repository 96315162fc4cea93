package engine

// Protocols are all protocols, in the order of every table: from none to the
// wrong ones that people write to the right ones.
var Protocols = []Spec{
	{
		Name:    "unguarded",
		Summary: "execute",
		New:     func(Env) Protocol { return unguarded{} },
	},
	{
		Name:    "check-then-create",
		Summary: "look, then create",
		Needs:   []string{"timestamps"},
		New:     func(e Env) Protocol { return checkThenCreate{newClaimFile(e)} },
	},
	{
		Name:    "excl",
		Summary: "exclusive create, no expiry",
		Needs:   []string{"excl-create"},
		New:     func(e Env) Protocol { return newExcl(e) },
	},
	{
		Name:    "excl-unlink",
		Summary: "exclusive create; an expired claim is unlinked and created anew",
		Needs:   []string{"excl-create", "timestamps"},
		New:     func(e Env) Protocol { return exclUnlink{newClaimFile(e)} },
	},
	{
		Name:    "flock-dir",
		Summary: "excl-unlink, the unlink under one flock for the directory",
		Needs:   []string{"excl-create", "timestamps", "flock", "lock-release"},
		New:     func(e Env) Protocol { return flockDir{newClaimFile(e)} },
	},
	{
		Name:    "flock-key",
		Summary: "excl-unlink, the unlink under a flock for each key",
		Needs:   []string{"excl-create", "timestamps", "flock", "lock-release"},
		New:     func(e Env) Protocol { return flockKey{newClaimFile(e)} },
	},
	{
		Name:    "flock-reread",
		Summary: "flock-key, the claim judged again under the flock",
		Safe:    true,
		Needs:   []string{"excl-create", "timestamps", "flock", "lock-release", "visibility"},
		New:     func(e Env) Protocol { return flockReread{newClaimFile(e)} },
	},
	{
		Name:    "generations",
		Summary: "an expired claim stays; the next generation is created beside it",
		Safe:    true,
		Needs:   []string{"excl-create", "timestamps", "visibility"},
		New:     func(e Env) Protocol { return newGenerations(e.FS, e.Clock, e.Nonce, e.Params) },
	},
	{
		Name:    "generations-linked",
		Summary: "generations, each file written under a private name and linked whole",
		Safe:    true,
		Needs:   []string{"link", "timestamps", "visibility"},
		New:     func(e Env) Protocol { return newGenerationsLinked(e) },
	},
	{
		Name:    "quarantine",
		Summary: "mkdir; an expired lock is renamed to a name that stays occupied",
		Safe:    true,
		Needs:   []string{"mkdir", "rename-dir-occupied", "rename-away", "excl-create", "timestamps", "visibility"},
		New:     func(e Env) Protocol { return newQuarantine(e, rules{}) },
	},
	{
		Name:    "quarantine-eager",
		Summary: "quarantine, the renamed lock removed at once",
		Needs:   []string{"mkdir", "rename-dir-occupied", "rename-away", "excl-create", "timestamps"},
		New:     func(e Env) Protocol { return newQuarantine(e, rules{eager: true}) },
	},
	{
		Name:    "flock-held",
		Summary: "a flock for each key, held while the work lasts",
		Safe:    true,
		Needs:   []string{"flock", "lock-release", "excl-create", "visibility"},
		New:     func(e Env) Protocol { return flockHeld{fs: e.FS, nonce: e.Nonce, params: e.Params} },
	},
}

// Controls are quarantine with one rule broken on purpose. Whatever shows that
// quarantine is right has to show that each of these is wrong. The fault shows
// when one contender reclaims while another is late.
var Controls = []Spec{
	{
		Name:    "quarantine/age-from-name",
		Summary: "age counts from when the owner claimed, not from its eviction",
		New:     func(e Env) Protocol { return newQuarantine(e, rules{fromName: true}) },
	},
	{
		Name:    "quarantine/age-from-mtime",
		Summary: "age counts from the directory's mtime, which the eviction leaves as it was",
		New:     func(e Env) Protocol { return newQuarantine(e, rules{fromMtime: true, unstamped: true}) },
	},
	{
		Name:    "quarantine/long-deadline",
		Summary: "attempts may take longer than TTL, and reclaiming does not wait for them",
		New: func(e Env) Protocol {
			e.Params.Deadline = 4 * e.Params.TTL
			return newQuarantine(e, rules{onlyTTL: true})
		},
	},
	{
		Name:    "quarantine/no-margin",
		Summary: "a rename that is in flight at the end of its deadline is not waited for",
		New: func(e Env) Protocol {
			e.Params.Margin = 0
			return newQuarantine(e, rules{})
		},
	},
	{
		Name:    "quarantine/short-nonce",
		Summary: "the nonce is a counter: two locks of one millisecond have one name",
		New: func(e Env) Protocol {
			e.Nonce = counter()
			return newQuarantine(e, rules{})
		},
	},
}

// counter is a source of nonces that other contenders' sources repeat.
func counter() Nonce {
	n := byte(0)
	return func() ([]byte, error) {
		n++
		return []byte{n}, nil
	}
}

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
