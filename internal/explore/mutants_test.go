package explore

import (
	"cmp"
	"sync"
	"testing"
	"time"

	"github.com/claimbench/claimbench/engine"
)

// A mutant is a protocol broken on purpose in one step.
type mutant struct {
	name     string
	base     string
	scenario string
	weak     Weakness
	params   func(*engine.Params, int)
	fs       func(engine.FullFS) engine.FullFS
	lease    func(engine.Env, engine.Outcome) engine.Lease
}

var mutants = []mutant{
	{name: "the exclusive flag is dropped", base: "generations", fs: func(f engine.FullFS) engine.FullFS { return notExclusive{f} }},
	{name: "the exclusive flag of the done record is dropped", base: "flock-reread", fs: func(f engine.FullFS) engine.FullFS { return doneNotExclusive{f} }},
	{name: "the age is judged by times from before the clock was read", base: "generations", scenario: "renew", fs: func(f engine.FullFS) engine.FullFS { return &timesFirst{FullFS: f} }},
	{name: "the done check is skipped", base: "generations", fs: func(f engine.FullFS) engine.FullFS { return blind{f, 'd', 'c'} }},
	{name: "the done file is not looked for", base: "flock-held", fs: func(f engine.FullFS) engine.FullFS { return absentee{f, ".done"} }},
	{name: "the done file is not looked for", base: "quarantine", fs: func(f engine.FullFS) engine.FullFS { return absentee{f, ".done"} }},
	{name: "torn is taken for stale", base: "generations", fs: func(f engine.FullFS) engine.FullFS { return tornIsOld{f} }},
	{name: "the clock is ahead by a TTL", base: "generations-linked", fs: func(f engine.FullFS) engine.FullFS { return ahead{f} }},
	{name: "B has a shorter TTL", base: "generations", scenario: "renew", params: func(p *engine.Params, who int) {
		if who == 1 {
			p.TTL = ttl / 3
		}
	}},
	{name: "the lease outlasts the TTL", base: "quarantine", params: func(p *engine.Params, _ int) { p.Slack = -2 * ttl }},
	{name: "no slack for coarse times", base: "generations-linked", weak: CoarseTimes, params: func(p *engine.Params, _ int) { p.Slack = 0 }},
	{name: "a renewal touches nothing", base: "generations", scenario: "renew", lease: func(e engine.Env, o engine.Outcome) engine.Lease { return &lazyRenewal{Lease: o.Lease, e: e} }},
	{name: "a lost lease is renewed", base: "quarantine", scenario: "renew", lease: func(e engine.Env, o engine.Outcome) engine.Lease { return &reviving{lazyRenewal{Lease: o.Lease, e: e}} }},
	{name: "a renewal is by name", base: "excl-unlink", scenario: "renew", lease: func(e engine.Env, o engine.Outcome) engine.Lease { return &byName{lazyRenewal{Lease: o.Lease, e: e}} }},
	{name: "done is not recorded", base: "generations", lease: func(_ engine.Env, o engine.Outcome) engine.Lease { return forgetful{o.Lease} }},
	{name: "done is recorded before the work", base: "flock-reread", lease: func(_ engine.Env, o engine.Outcome) engine.Lease { return hasty(o.Lease) }},
	{name: "lost is taken for done", base: "generations-linked", lease: func(_ engine.Env, o engine.Outcome) engine.Lease { return proud{o.Lease} }},
	{name: "the lock is not waited for", base: "flock-reread", fs: func(f engine.FullFS) engine.FullFS { return lockless{f} }},
	{name: "the lock is not waited for", base: "flock-held", fs: func(f engine.FullFS) engine.FullFS { return lockless{f} }},
	{name: "an occupied quarantine is emptied", base: "quarantine", fs: func(f engine.FullFS) engine.FullFS { return emptying{f} }},
	{name: "an owner replaces another", base: "quarantine", fs: func(f engine.FullFS) engine.FullFS { return replacing{f} }},
	{name: "a rename publishes instead of a link", base: "generations-linked", fs: func(f engine.FullFS) engine.FullFS { return renaming{f} }},
	{name: "successors are not looked for", base: "generations", fs: func(f engine.FullFS) engine.FullFS { return absentee{f, ".gen2.claim"} }},
}

func TestMutantsAreCaught(t *testing.T) {
	t.Parallel()
	for _, m := range mutants {
		t.Run(m.base+" "+m.name, func(t *testing.T) {
			t.Parallel()
			spec := protocol(t, m.base)
			sc := scenario(t, cmp.Or(m.scenario, "claim"), m.weak)
			sc.First, sc.Unlike = true, m.params != nil
			if m.weak == CoarseTimes {
				sc.Tick = sc.Params.TTL - 100*time.Millisecond
			}
			if r := Explore(m.of(spec), sc); len(r.Found) == 0 {
				t.Errorf("nothing found in %d states", r.States)
			}
			if m.base != "excl-unlink" && !sound(spec, sc) {
				t.Error("the protocol itself is broken: a mutant of it shows nothing")
			}
		})
	}
}

// bases are the explorations of protocols that mutants were made of: many are made of one.
var bases sync.Map

// sound says that a protocol itself is not broken. In short, TestRightProtocolsAreSafe has to do for that.
func sound(spec engine.Spec, sc Scenario) bool {
	if testing.Short() {
		return true
	}
	sc.Unlike = false
	explore, _ := bases.LoadOrStore(spec.Name+" "+sc.Name+" "+sc.Weakness.String(), sync.OnceValue(func() bool {
		return len(Explore(spec, sc).Found) == 0
	}))
	return explore.(func() bool)()
}

func (m mutant) of(spec engine.Spec) engine.Spec {
	return engine.Spec{Name: m.name, New: func(e engine.Env) engine.Protocol {
		if m.params != nil {
			m.params(&e.Params, e.FS.(*seam).who)
		}
		if m.fs != nil {
			e.FS = m.fs(e.FS)
		}
		return leased{spec.New(e), e, m.lease}
	}}
}

type leased struct {
	engine.Protocol
	e     engine.Env
	lease func(engine.Env, engine.Outcome) engine.Lease
}

func (l leased) Try(sig engine.Signature) (engine.Outcome, error) {
	out, err := l.Protocol.Try(sig)
	if out.Lease != nil && l.lease != nil {
		out.Lease = l.lease(l.e, out)
	}
	return out, err
}
