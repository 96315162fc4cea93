package explore

import (
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/claimbench/claimbench/engine"
)

// A Cell is a protocol against a weakness.
type Cell struct {
	Protocol string
	Weakness Weakness
	Kinds    []Kind // gravest first; none is safe
	Why      string // the gravest in a sentence
	Schedule string // of the gravest
	Scenario string // in which it happens
	States   int    // explored for it; 0 where another cell stands for it
}

// Verdict is the cell in words.
func (c Cell) Verdict() string {
	if len(c.Kinds) == 0 {
		return "safe"
	}
	var all []string
	for _, k := range c.Kinds {
		all = append(all, k.String())
	}
	return strings.Join(all, ", ")
}

// A Table is the requirement table, with what it took to make it.
type Table struct {
	Contenders  int
	Deaths      int
	Ticks       int
	Preemptions int
	Cells       []Cell
	Sources     string // the fingerprint of what was explored
	States      int
	Schedules   float64
	Operations  int
	Took        time.Duration
}

// scenarios are what a protocol goes through for one cell. The bounds of all
// but the first are small, as each looks for faults of one kind.
func scenarios(contenders, preemptions int, weak Weakness) []Scenario {
	claim := Scenario{Name: "claim", Contenders: contenders, Deaths: 2, Ticks: 2, Stale: true, Preemptions: preemptions}
	if weak == CoarseTimes {
		// A TTL that is no multiple of the granularity; the lease is just good
		// still when the rounding makes it look old.
		claim.Params = params
		claim.Params.TTL = ttl - time.Second
		claim.Tick = claim.Params.TTL - params.Slack - 100*time.Millisecond
	}
	all := []Scenario{
		claim,
		{Name: "renew", Contenders: 2, Ticks: 3, Tick: ttl/3 + time.Second, Renew: true},
		{Name: "fail", Contenders: 2, Deaths: 1, Ticks: 1, Fail: true},
		{Name: "keys", Contenders: 2, Deaths: 2, Ticks: 1, Stale: true, Apart: true, Plain: true},
		// A rename in flight lands within a margin of its last check.
		{Name: "reclaim", Contenders: 2, Deaths: 1, Ticks: 5, Tick: ttl / 2, Aged: 3, Flight: 3,
			Stale: true, Reclaim: true, Attempts: 2, Preemptions: 2},
		{Name: "reclaim-late", Contenders: 2, Deaths: 1, Ticks: 3, Flight: 1,
			Stale: true, Reclaim: true, Attempts: 2, Preemptions: 2},
	}
	for i := range all {
		all[i].Weakness = weak
		if weak == Perfect {
			continue
		}
		all[i].Deaths = min(1, all[i].Deaths)
		switch {
		case all[i].Reclaim:
			all[i].Preemptions = 1
		case all[i].Renew:
			all[i].Preemptions = 3
		}
	}
	return all
}

// concerns leaves out what a scenario cannot show. Reclaiming is explored on a
// perfect filesystem and with stale listings.
func (sc Scenario) concerns(spec engine.Spec) bool {
	if !sc.Reclaim {
		return true
	}
	_, ok := spec.New((&seam{}).env(params)).(engine.Reclaimer)
	return ok && (sc.Weakness == Perfect || sc.Weakness == StaleReaddir)
}

// FindScenario builds one of them by its name.
func FindScenario(name string, contenders, preemptions int, weak Weakness) (Scenario, bool) {
	for _, sc := range scenarios(contenders, preemptions, weak) {
		if sc.Name == name {
			return sc, true
		}
	}
	return Scenario{}, false
}

// MakeTable explores each protocol with each weakness, on two processors if
// there are two. It tells of each cell when it is done.
//
// The perfect filesystem comes first. A weakness that would have made no
// difference to any step on it has the same cell.
func MakeTable(specs []engine.Spec, contenders, preemptions int, tell func(Cell)) Table {
	began := time.Now()
	t := Table{Contenders: contenders, Deaths: 2, Ticks: 2, Preemptions: preemptions}
	n := len(Weaknesses)
	works := make([]work, len(specs)*n)
	var mu sync.Mutex
	explore := func(i int) {
		works[i].run(specs[i/n], contenders, preemptions, works[i/n*n])
		mu.Lock()
		defer mu.Unlock()
		tell(works[i].cell)
	}
	var perfect, weak []int
	for i := len(works) - 1; i >= 0; i-- {
		works[i].cell = Cell{Protocol: specs[i/n].Name, Weakness: Weaknesses[i%n].Weakness}
		if i%n == 0 {
			perfect = append(perfect, i)
		} else {
			weak = append(weak, i)
		}
	}
	together(perfect, explore)
	together(weak, explore)
	for _, w := range works {
		t.Cells = append(t.Cells, w.cell)
		t.States += w.cell.States
		t.Schedules += w.schedules
		t.Operations += w.operations
	}
	t.Took = time.Since(began)
	return t
}

func together(jobs []int, do func(int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range max(1, min(runtime.GOMAXPROCS(0), 2)) {
		all.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for _, i := range jobs {
		next <- i
	}
	close(next)
	all.Wait()
}
