package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
)

// A benchRow is a row of the bench, and what the same target did with generations in the same workload, if it
// did.
type benchRow struct {
	*result.Bench
	base *result.Bench
}

type benchColumn struct {
	head
	cell func(benchRow) string
}

func benchColumns() []benchColumn {
	return slices.Concat(benchSetting(), benchCounts(), benchTimes())
}

// nameWidth is that of generations-linked, the longest protocol but for controls.
const nameWidth = 18

func benchSetting() []benchColumn {
	return []benchColumn{
		{head{name: "protocol", wrap: nameWidth}, func(b benchRow) string { return benchName(b.Bench) }},
		{head{name: "variant", wrap: 22}, func(b benchRow) string { return cmp.Or(b.Variant, "-") }},
		{head{name: "scope", drop: 60}, func(b benchRow) string { return string(b.Scope) }},
		{head{name: "contenders", right: true, drop: 12}, func(b benchRow) string { return group(b.Contenders) }},
		{head{name: "keys", right: true, drop: 13, blank: "1", means: "of a trial"}, func(b benchRow) string { return group(b.Keys) }},
		{head{name: "trials", right: true, drop: 63, means: "that were judged"}, func(b benchRow) string { return group(b.Trials) }},
		{head{name: "void", right: true, means: "trials that could not be judged; they are in no other column"}, void},
		{head{name: "under fault", right: true, drop: 9, means: "trials during which something was made to go wrong"}, underFault},
	}
}

// benchCounts are "-" where no trial was judged: 0 would read as a pass.
func benchCounts() []benchColumn {
	judged := func(h head, cell func(benchRow) string) benchColumn {
		return benchColumn{h, func(b benchRow) string {
			if b.Trials == 0 {
				return "-"
			}
			return cell(b)
		}}
	}
	count := func(name string, of func(benchRow) int, blank, means string) benchColumn {
		return judged(head{name: name, right: true, blank: blank, means: means}, func(b benchRow) string { return group(of(b)) })
	}
	return []benchColumn{
		judged(head{name: "attempts", right: true, drop: 90, means: "to claim"}, func(b benchRow) string { return group(b.Attempts) }),
		judged(head{name: "executed", right: true, means: "executions that began, those cut short by a death too / expected if each key is executed once"}, executed),
		count("duplicates", func(b benchRow) int { return b.Duplicates }, "", "executions of what was done, or was being done under a good lease"),
		count("missed", func(b benchRow) int { return b.Missed }, "", "keys that nobody finished in time"),
		count("blocked", func(b benchRow) int { return b.Blocked }, "0", "keys refused because of another key"),
		count("illegal", func(b benchRow) int { return b.Illegal }, "0", "trials of which no order of the contenders' calls, one after the other, explains what they were told"),
		count("overlaps", func(b benchRow) int { return b.Overlaps }, "0", "executions beside one whose lease had run out: no violation where the late write is refused"),
		{head{name: "late writes refused", right: true, means: "by a sink that checks the fencing token"}, fenced},
		judged(head{name: "contested", right: true, drop: 20, means: "share of the trials in which the winner's claim overlapped another's"},
			func(b benchRow) string { return share(b.Contested, b.Trials) }),
		judged(head{name: "95 % bound", right: true, drop: 95, means: "on the share of contested trials with a duplicate, if there was none"}, benchBound),
	}
}

func void(b benchRow) string {
	if b.Void == 0 {
		return "-"
	}
	return group(b.Void)
}

// underFault is "-" where nobody looked.
func underFault(b benchRow) string {
	if len(b.Times) == 0 {
		return "-"
	}
	return group(b.UnderFault)
}

func recoveries(b benchRow) string {
	if b.RecoveryMS == nil {
		return "-"
	}
	return group(b.RecoveryMS.N)
}

func executed(b benchRow) string { return group(b.Executed) + "/" + group(b.Expected) }

func fenced(b benchRow) string {
	if b.Refused+b.Accepted == 0 {
		return "-"
	}
	return group(b.Refused) + "/" + group(b.Refused+b.Accepted)
}

func benchBound(b benchRow) string {
	if b.Duplicates > 0 || b.Contested == 0 || b.Control {
		return "-"
	}
	return bound(stat.Upper95(0, b.Contested))
}

func benchTimes() []benchColumn {
	return []benchColumn{
		{head{name: "claim p50", right: true, drop: 30, means: "latency of a claim that was won"}, func(b benchRow) string { return median(b.LatencyUS, 1e-6) }},
		{head{name: "claim p99", right: true, drop: 31}, func(b benchRow) string { return tail(b.LatencyUS, 1e-6) }},
		{head{name: "take-over p50", right: true, drop: 10, means: "from a death to the start of its successor's execution"},
			func(b benchRow) string { return median(b.TakeoverMS, 1e-3) }},
		{head{name: "take-over max", right: true, drop: 32}, func(b benchRow) string { return most(b.TakeoverMS, 1e-3) }},
		{head{name: "recoveries", right: true, drop: 34, means: "times that a fault ended during a trial whose first key was done after that"}, recoveries},
		{head{name: "recovery p50", right: true, drop: 8, means: "from the end of a fault to the first key recorded as done after it"},
			func(b benchRow) string { return median(b.RecoveryMS, 1e-3) }},
		{head{name: "recovery max", right: true, drop: 33}, func(b benchRow) string { return most(b.RecoveryMS, 1e-3) }},
		{head{name: "claims/s", right: true, drop: 50, means: "won and done, all contenders together"}, func(b benchRow) string { return rate(b.ClaimsPerS) }},
		{head{name: "growth", right: true, drop: 11, means: "exponent of the claim latency in the number of keys; 0 is no growth"}, growth},
		{head{name: "p50 to generations", right: true, drop: 40, means: "claim p50 as a multiple of that of generations"}, p50Ratio},
		{head{name: "claims/s to generations", right: true, drop: 41, means: "claims/s as a multiple of those of generations"}, rateRatio},
		{head{name: "settings", text: 20, drop: 70, below: true}, func(b benchRow) string { return cmp.Or(b.Settings, "-") }},
	}
}

func benchName(b *result.Bench) string {
	switch {
	case !b.Control:
		return b.Protocol
	case flagged(b):
		return b.Protocol + " (control)"
	case b.Trials == 0:
		return b.Protocol + " (control, NOT JUDGED)"
	}
	return b.Protocol + " (control, NOT FLAGGED)"
}

func flagged(b *result.Bench) bool { return b.Violations() > 0 }

func median(l *result.Latency, unit float64) string {
	if l == nil || l.N == 0 {
		return "-"
	}
	return span(l.P50 * unit)
}

// tail is "-" for a percentile that the sample could not carry.
func tail(l *result.Latency, unit float64) string {
	if l == nil || l.P99 == nil {
		return "-"
	}
	return span(*l.P99 * unit)
}

func most(l *result.Latency, unit float64) string {
	if l == nil || l.N == 0 {
		return "-"
	}
	return span(l.Max * unit)
}

func rate(perS float64) string {
	if perS == 0 {
		return "-"
	}
	return digits(perS)
}

func growth(b benchRow) string {
	if b.Exponent == nil {
		return "-"
	}
	return fmt.Sprintf("%+.2f", *b.Exponent)
}

func p50Ratio(b benchRow) string {
	if b.base == nil || b.LatencyUS == nil || b.base.LatencyUS == nil {
		return "-"
	}
	return ratio(b.LatencyUS.P50, b.base.LatencyUS.P50)
}

func rateRatio(b benchRow) string {
	if b.base == nil {
		return "-"
	}
	return ratio(b.ClaimsPerS, b.base.ClaimsPerS)
}

func ratio(x, base float64) string {
	if x <= 0 || base <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g×", x/base)
}

// rowsOf is the rows of a workload.
func rowsOf(t *result.Target, workload string) []benchRow {
	var rows []benchRow
	for i := range t.Bench {
		if b := &t.Bench[i]; b.Workload == workload {
			rows = append(rows, benchRow{b, generations(t, b)})
		}
	}
	return rows
}

// generations is what a peer is measured by: the row of the same work, and of the same variant if there is one.
// The protocols of other workloads are compared by their tables.
func generations(t *result.Target, b *result.Bench) *result.Bench {
	if b.Workload != "peers" || b.Trials == 0 {
		return nil
	}
	var base *result.Bench
	for i := range t.Bench {
		g := &t.Bench[i]
		same := g.Workload == b.Workload && g.Protocol == "generations" && g.Scope == b.Scope && g.Contenders == b.Contenders && g.Keys == b.Keys
		if same && g.Trials > 0 && (base == nil || g.Variant == b.Variant) {
			base = g
		}
	}
	return base
}
