package explore

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown prints the table, and below it what the words stand for and
// how each violation comes about.
func (t Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# What each protocol requires of a filesystem\n\n")
	t.bounds(&b)
	b.WriteString("`make requirements` writes this page.\n\n| protocol |")
	for _, x := range Weaknesses {
		b.WriteString(" " + x.Name + " |")
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(Weaknesses)) + "\n")
	for i, c := range t.Cells {
		if i%len(Weaknesses) == 0 {
			b.WriteString("| " + c.Protocol + " |")
		}
		b.WriteString(" " + c.Verdict() + " |")
		if i%len(Weaknesses) == len(Weaknesses)-1 {
			b.WriteString("\n")
		}
	}
	t.legend(&b)
	t.reasons(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// bounds says how far the exploration went. Beyond that the page says nothing.
func (t Table) bounds(b *strings.Builder) {
	b.WriteString("Found by running the protocols' code through the orders of its file operations, within these bounds and on a\n" +
		"filesystem in memory. `safe` means: none of these orders breaks it. It says nothing of more contenders, deaths or\n" +
		"stalls, nor of two weaknesses at once. A bound of preemptions leaves out the orders in which contenders alternate\n" +
		"more often.\n\n" +
		"| scenario | contenders | stalls | each of | deaths | preemptions | with a weakness |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	weak := scenarios(t.Contenders, t.Preemptions, InodeReuse)
	for i, sc := range scenarios(t.Contenders, t.Preemptions, Perfect) {
		long := sc.Tick
		if long == 0 {
			long = tick
		}
		fmt.Fprintf(b, "| %s | %d | %d | %v, the TTL is %v | %d | %s | %d, %s |\n", sc.Name, sc.Contenders, sc.Ticks, long, ttl,
			sc.Deaths, sc.bound(), weak[i].Deaths, weak[i].bound())
	}
	fmt.Fprintf(b, "\n%d states were explored, and %d operations done in them.\n\n", t.States, t.Operations)
}

func (sc Scenario) bound() string {
	if sc.Preemptions > 0 {
		return fmt.Sprintf("at most %d", sc.Preemptions)
	}
	return "no bound"
}

func (t Table) legend(b *strings.Builder) {
	b.WriteString("\n`safe`: no violation in any schedule within the bounds. `duplicate`: the work is executed twice, and by no fault of the one\n" +
		"who executes it. `missed`: it is not done in time, or counts as done and is not. `stuck`: it is never done.\n" +
		"`blocked`: a contender is refused its key because of another key. With a weakness, a row stops at the first\n" +
		"`duplicate`; without one, only the scenario with two keys is explored after it. An owner that wakes up after its TTL beside its successor is no violation: see fencing.\n\n")
	b.WriteString("| weakness | what it means |\n| --- | --- |\n")
	for _, x := range Weaknesses {
		b.WriteString("| " + x.Name + " | " + x.Means + " |\n")
	}
}

func (t Table) reasons(b *strings.Builder) {
	b.WriteString("\n## The violations\n\nEach can be told step by step with `claimbench explore PROTOCOL --weakness W --scenario S --schedule ...`.\n\n" +
		"| protocol | weakness | what happens | scenario | schedule |\n| --- | --- | --- | --- | --- |\n")
	perfect := map[string]string{}
	for _, c := range t.Cells {
		if c.Weakness == Perfect {
			perfect[c.Protocol] = c.Schedule
		}
		if c.Schedule == "" || c.Weakness != Perfect && c.Schedule == perfect[c.Protocol] {
			continue
		}
		fmt.Fprintf(b, "| %s | %v | %s: %s | %s | `%s` |\n", c.Protocol, c.Weakness, c.Kinds[0], c.Why, c.Scenario, c.Schedule)
	}
}
