package report

import (
	"strconv"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

func protocolFields() []field[*result.Protocol] {
	return []field[*result.Protocol]{
		{"protocol", func(p *result.Protocol) string { return p.Name }},
		{"verdict", func(p *result.Protocol) string { return string(p.Verdict) }},
		{"scope", func(p *result.Protocol) string { return string(p.Scope) }},
		{"because", func(p *result.Protocol) string { return strings.Join(p.Because, ";") }},
		{"advice", func(p *result.Protocol) string { return p.Advice }},
	}
}

func benchFields() []field[*result.Bench] {
	count := func(name string, of func(*result.Bench) int) field[*result.Bench] {
		return field[*result.Bench]{name, func(b *result.Bench) string { return strconv.Itoa(of(b)) }}
	}
	fields := []field[*result.Bench]{
		{"workload", func(b *result.Bench) string { return b.Workload }},
		{"protocol", func(b *result.Bench) string { return b.Protocol }},
		{"variant", func(b *result.Bench) string { return b.Variant }},
		{"control", func(b *result.Bench) string { return strconv.FormatBool(b.Control) }},
		{"scope", func(b *result.Bench) string { return string(b.Scope) }},
		count("contenders", func(b *result.Bench) int { return b.Contenders }),
		count("keys", func(b *result.Bench) int { return b.Keys }),
		count("trials", func(b *result.Bench) int { return b.Trials }),
		count("void", func(b *result.Bench) int { return b.Void }),
		count("attempts", func(b *result.Bench) int { return b.Attempts }),
		count("expected", func(b *result.Bench) int { return b.Expected }),
		count("executed", func(b *result.Bench) int { return b.Executed }),
		count("duplicates", func(b *result.Bench) int { return b.Duplicates }),
		count("missed", func(b *result.Bench) int { return b.Missed }),
		count("blocked", func(b *result.Bench) int { return b.Blocked }),
		count("illegal", func(b *result.Bench) int { return b.Illegal }),
		count("overlaps", func(b *result.Bench) int { return b.Overlaps }),
		count("refused", func(b *result.Bench) int { return b.Refused }),
		count("accepted", func(b *result.Bench) int { return b.Accepted }),
		count("contested", func(b *result.Bench) int { return b.Contested }),
	}
	fields = append(fields, latencyFields("claim", "us", func(b *result.Bench) *result.Latency { return b.LatencyUS })...)
	fields = append(fields, field[*result.Bench]{"under_fault", func(b *result.Bench) string {
		if len(b.Times) == 0 {
			return ""
		}
		return strconv.Itoa(b.UnderFault)
	}})
	fields = append(fields, latencyFields("recovery", "ms", func(b *result.Bench) *result.Latency { return b.RecoveryMS })...)
	fields = append(fields, latencyFields("takeover", "ms", func(b *result.Bench) *result.Latency { return b.TakeoverMS })...)
	return append(fields, []field[*result.Bench]{
		{"claims_per_s", func(b *result.Bench) string { return floatUnlessZero(b.ClaimsPerS) }},
		{"exponent", func(b *result.Bench) string { return floatIf(b.Exponent) }},
		{"settings", func(b *result.Bench) string { return b.Settings }},
		{"voided", func(b *result.Bench) string { return strings.Join(b.Voided, ";") }},
		{"counterexample", func(b *result.Bench) string {
			if b.Counterexample == nil {
				return ""
			}
			return b.Counterexample.Kind + ": " + b.Counterexample.Sentence
		}},
	}...)
}

func latencyFields(name, unit string, of func(*result.Bench) *result.Latency) []field[*result.Bench] {
	cell := func(suffix string, text func(*result.Latency) string) field[*result.Bench] {
		return field[*result.Bench]{name + "_" + suffix, func(b *result.Bench) string {
			if of(b) == nil {
				return ""
			}
			return text(of(b))
		}}
	}
	return []field[*result.Bench]{
		cell("n", func(l *result.Latency) string { return strconv.Itoa(l.N) }),
		cell("p50_"+unit, func(l *result.Latency) string { return float(l.P50) }),
		cell("p99_"+unit, func(l *result.Latency) string { return floatIf(l.P99) }),
		cell("p999_"+unit, func(l *result.Latency) string { return floatIf(l.P999) }),
		cell("max_"+unit, func(l *result.Latency) string { return float(l.Max) }),
		cell("samples_"+unit, func(l *result.Latency) string {
			texts := make([]string, len(l.Samples))
			for i, x := range l.Samples {
				texts[i] = float(x)
			}
			return strings.Join(texts, ";")
		}),
	}
}

func floatUnlessZero(x float64) string {
	if x == 0 {
		return ""
	}
	return float(x)
}
