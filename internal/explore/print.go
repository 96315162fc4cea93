package explore

import (
	"fmt"
	"io"
	"strings"

	"github.com/claimbench/claimbench/engine"
)

// means says what contenders do in a scenario, by its name.
var means = map[string]string{
	"claim":        "each claims the key, works, and records that it is done",
	"renew":        "each claims the key, and renews its claim while it works",
	"fail":         "A's work fails, and A gives its claim up",
	"keys":         "each claims a key of its own",
	"reclaim":      "each reclaims what evictions have left before it begins the work",
	"reclaim-late": "the same, with a rename that is long under way",
}

// ScenarioNames are those that FindScenario knows.
func ScenarioNames() []string {
	var names []string
	for _, sc := range scenarios(2, 0, Perfect) {
		names = append(names, sc.Name)
	}
	return names
}

// WeaknessNames are those that FindWeakness knows.
func WeaknessNames() []string {
	var names []string
	for _, w := range Weaknesses {
		names = append(names, w.Name)
	}
	return names
}

// Shows says that a scenario has anything to do with a protocol: there is nothing to be reclaimed where nothing is
// ever evicted.
func (sc Scenario) Shows(spec engine.Spec) bool {
	sc.Weakness = Perfect
	return sc.concerns(spec)
}

// Print writes what an exploration was of and how far it went, and tells each violation that it found.
func Print(w io.Writer, spec engine.Spec, sc Scenario, r *Report) error {
	var b strings.Builder
	subject(&b, spec, sc)
	bounds(&b, sc)
	fmt.Fprintf(&b, "explored:   %d states, which stand for %.2g schedules; %d operations\n", r.States, r.Schedules, r.Operations)
	if r.Stalls > 0 {
		fmt.Fprintf(&b, "            %d times an owner that was stalled past its TTL worked beside its successor;\n"+
			"            that is no violation of the protocol: the sink of the work has to check the generation\n", r.Stalls)
	}
	fmt.Fprintf(&b, "verdict:    %s\n", verdict(r))
	for _, found := range r.Found {
		found = Shortest(spec, sc, found, 1_000_000)
		lines, v, err := Tell(spec, sc, found.Schedule)
		if err != nil {
			return err
		}
		b.WriteString("\n")
		Story{Lines: lines, Model: v}.tell(&b)
		fmt.Fprintf(&b, "again: %s\n", rerun(spec, sc, found.Schedule))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func subject(b *strings.Builder, spec engine.Spec, sc Scenario) {
	weak := Weaknesses[sc.Weakness]
	fmt.Fprintf(b, "protocol:   %s\nfilesystem: %s: %s\nscenario:   %s: %s\n", spec.Name, weak.Name, weak.Means, sc.Name, means[sc.Name])
	fmt.Fprintf(b, "contenders: %s\n", cast(sc))
}

// cast says who is who in the steps.
func cast(sc Scenario) string {
	var all []string
	for who := range sc.Contenders {
		all = append(all, letter(who))
	}
	text := strings.Join(all, ", ") + " and the key k"
	if sc.Apart {
		text = "A and the key k, B and the key l"
	}
	if sc.Stale {
		text += "; Z came before them, and may have died anywhere"
	}
	return text
}

func bounds(b *strings.Builder, sc Scenario) {
	long, lease := sc.Tick, sc.Params.TTL
	if long == 0 {
		long = tick
	}
	if lease == 0 {
		lease = ttl
	}
	fmt.Fprintf(b, "bounds:     %s, at most %s and %s of %v; the TTL is %v",
		count(sc.Contenders, "contender"), count(sc.Deaths, "death"), count(sc.Ticks, "stall"), long, lease)
	if sc.Preemptions > 0 {
		fmt.Fprintf(b, "; at most %s", count(sc.Preemptions, "preemption"))
	}
	b.WriteString("\n")
}

func verdict(r *Report) string {
	var all []string
	for k := Duplicate; k <= Leftover; k++ {
		if _, ok := r.Of(k); ok {
			all = append(all, k.String())
		}
	}
	switch {
	case len(all) > 0:
		return strings.Join(all, ", ")
	case r.Cut:
		return "unproven: no violation so far, but not all states were visited"
	default:
		return "no violation in any schedule within these bounds"
	}
}

// A Story is one schedule step by step, as it goes on the model, and what came of it.
type Story struct {
	Lines []Line
	Model *Violation
	Dir   string // the real directory in which it was performed, or ""
	Real  *Violation
}

// Print writes the story with what it is of.
func (s Story) Print(w io.Writer, spec engine.Spec, sc Scenario) error {
	var b strings.Builder
	subject(&b, spec, sc)
	b.WriteString("\n")
	s.tell(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Story) tell(b *strings.Builder) {
	for i, l := range s.Lines {
		fmt.Fprintf(b, "%3d. %s\n", i+1, l)
	}
	b.WriteString(ending(s.Model) + "\n")
	if s.Dir != "" {
		fmt.Fprintf(b, "the same in %s: %s\n", s.Dir, ending(s.Real))
	}
}

func ending(v *Violation) string {
	if v == nil {
		return "no violation"
	}
	return v.Kind.String() + ": " + v.What
}

func rerun(spec engine.Spec, sc Scenario, schedule Schedule) string {
	text := "claimbench explore " + spec.Name
	if sc.Weakness != Perfect {
		text += " --weakness " + sc.Weakness.String()
	}
	if sc.Name != "claim" {
		text += " --scenario " + sc.Name
	}
	if sc.Contenders != 2 {
		text += fmt.Sprintf(" --contenders %d", sc.Contenders)
	}
	return text + " --schedule '" + schedule.String() + "'"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
