package calibrate

import (
	"bytes"
	"fmt"
	"time"

	"github.com/claimbench/claimbench/internal/report"
)

// markdown is the page for somebody who was not there.
func (f *File) markdown() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# What a survey finds\n\n%s\n\n", report.Escape(f.sentence()))
	if f.Incomplete != "" {
		fmt.Fprintf(&out, "**INCOMPLETE: %s**\n\n", report.Escape(f.Incomplete))
	}
	fmt.Fprintf(&out, `Faults were planted, and it was counted which of them the probes found, how soon, and how often a probe claimed a fault
where there is none. This page is rendered from the figures that `+"`%s --format json`"+` saved; nothing in it was
written by hand.

- %s
- %s, seed %d, %s; it took %v.

`, f.command(), report.Escape(f.machine()), f.Started.UTC().Format("2006-01-02 15:04 MST"), f.Seed, report.Escape("claimbench "+f.Tool.Version), time.Duration(f.DurationS)*time.Second)
	var kept []string
	for i := range f.Kept {
		kept = append(kept, f.Kept[i].String())
	}
	f.listed(&out, "Parts that were measured by an earlier build", kept)
	f.listed(&out, "Not well", f.Problems())
	f.listed(&out, "Not run", f.lacking())
	for _, s := range f.sections() {
		if len(s.table.Rows) == 0 {
			continue
		}
		fmt.Fprintf(&out, "## %s\n\n%s\n\n", s.table.Title, s.legend)
		s.table.Title = ""
		if err := s.table.Markdown(&out); err != nil {
			return nil, err
		}
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), nil
}

func (f *File) command() string {
	if f.Quick {
		return "claimbench calibrate --quick"
	}
	return "claimbench calibrate"
}

func (f *File) machine() string {
	h := &f.Host
	kind := h.Virtualization
	if kind == "" {
		kind = "no virtual machine"
	}
	return fmt.Sprintf("%s, Linux %s, %s, %d CPUs, %s", h.OS, h.Kernel, h.Arch, h.CPUs, kind)
}

func (f *File) listed(out *bytes.Buffer, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(out, "**%s**\n\n", title)
	for _, item := range items {
		fmt.Fprintf(out, "- %s\n", report.Escape(item))
	}
	fmt.Fprintln(out)
}

// A section is a table, and what its columns mean.
type section struct {
	table  report.Table
	legend string
}

func (f *File) sections() []section {
	s := &f.Sizes
	return []section{
		{f.rareTable(), fmt.Sprintf(`What the contenders of a probe race was done wrongly in a few rounds, as the probe's own control does it: the round's
number and the seed decide in which, with the probability *of the rounds*, and all contenders of a round agree. It is
higher where contenders read and write, or wait for each other, and a round takes longer. Each of %d runs began anew, and
ended at the first violation or after %g s. A run *caught* it if a round that was done wrongly was seen to be violated in
that time; a violation in any other round would be a false alarm. *rounds* are contested rounds, and *s* seconds from
the beginning of the probe, its control included, until that violation was seen. p50 is the median, p95 what at
least 95 %% of the runs did not exceed; a dash stands where that is a run that caught nothing.`, s.RareRuns, s.RareWithinS)},
		{f.leastTable(), fmt.Sprintf(`How rare may a violation be? *contested rounds* is what the quick survey's share of time amounts to (the fewest of
some runs with nothing planted). *bad seen*: of the contested rounds that were done wrongly, how many were seen to be violated;
in the others the contenders missed each other. From both follows the smallest probability *least p*, per contested
round, that the budget finds with 95 %% power: 1 - 0.05^(1/n), divided by the share seen. So many of the contested rounds
were then done wrongly, and *verified* is in how many of %d runs of so many contested rounds that was caught, with the
Wilson interval of that share. %s`, s.PowerRuns, refutedBy(s.PowerRuns))},
		{f.faultTable(), fmt.Sprintf(`Each row is a FUSE filesystem over a tmpfs with these faults, mounted once or twice; contenders are divided between the
mounts. *caught* counts runs in which the probe said what it must: verdict, class, kind of violation and reason, with
no other kind beside. *rounds* are those until the first violation, without the controls'; *s* are the seconds until
then, in most probes with the controls'. Where there is no violation to see (an operation that is refused), both are the
whole probe's. A run that was unproven was repeated in three times the time, twice at most, as its advice is; its rounds
and seconds count. There were %d such repetitions. %s`, f.repeated(true), p95OfFew(s.ExhibitRuns))},
		{f.harmlessTable(), fmt.Sprintf(`Faults that the probe must not call a violation of its promise: because they break another one, because one mount
hides them, or because nothing is to be had from the filesystem, which proves nothing. Runs that were unproven, and must
not be, were repeated as above: %d repetitions.`, f.repeated(false))},
		{f.goodTable(), `Every probe but the one that fills a filesystem up, on filesystems without any known fault. A false alarm is a verdict
of broken or hung. *95 % bound* is the one-sided upper bound on the rate of false alarms. *unproven* runs claimed nothing.`},
		{f.engineTable(), fmt.Sprintf(`On each filesystem with faults the promises were tested that some protocol rests on; safe, unproven and unsafe are how many
protocols were called so by that alone. Then 16 contenders went for a fresh key, in %d trials of each protocol
that was called safe, and in one of the others, as far as the time allowed. *seen to fail* are the protocols by which work was done twice or not at all. One of them that was called safe has *escaped*. A trial in which something
else went wrong, such as a refused operation, is void and shows nothing.`, s.StormTrials)},
	}
}

// repeated is how often runs were repeated, with exhibits on which something must be found, or with the others.
func (f *File) repeated(found bool) (n int) {
	for i := range f.Exhibits {
		if e := &f.Exhibits[i]; e.mustBeFound() == found {
			n += e.Repeated
		}
	}
	return n
}

// refutedBy says how few of so many runs would refute the power that is claimed.
func refutedBy(runs int) string {
	most := -1
	for (&Seen{Runs: runs, Caught: most + 1}).refuted() {
		most++
	}
	if most < 0 {
		return "So few runs cannot refute it."
	}
	return fmt.Sprintf("%d or fewer would refute it: that has less than one chance in a thousand.", most)
}

func p95OfFew(runs int) string {
	if runs >= 20 {
		return ""
	}
	return fmt.Sprintf("Of %d runs p95 is the slowest.", runs)
}
