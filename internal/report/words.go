package report

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// clean makes one line of s that cannot steer a terminal: a path or a message may come from another machine.
func clean(s string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(s), " ") {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// columnsOf is the number of terminal columns that s takes, whatever the locale says of ambiguous ones.
func columnsOf(s string) int { return twwidth.WidthWithOptions(s, twwidth.Options{}) }

// wrap breaks s into lines of at most width columns, at spaces where it can. A width below 1 is no limit.
func wrap(s string, width int) []string {
	if width < 1 {
		return []string{s}
	}
	var lines []string
	line := ""
	for _, word := range unbroken(s) {
		switch {
		case line == "":
			line = word
		case columnsOf(line)+1+columnsOf(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
		for columnsOf(line) > width {
			head := prefix(line, width)
			if head == line {
				break // one character, wider than the terminal
			}
			lines, line = append(lines, head), line[len(head):]
		}
	}
	return append(lines, line)
}

// unbroken splits s into words, at no space inside a number or before its percent sign.
func unbroken(s string) []string {
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	var words []string
	for word := range strings.SplitSeq(s, " ") {
		more := strings.HasPrefix(word, "%") || len(word) >= 3 && digit(word[0]) && digit(word[1]) && digit(word[2])
		if last := len(words) - 1; more && last >= 0 && words[last] != "" && digit(words[last][len(words[last])-1]) {
			words[last] += " " + word
			continue
		}
		words = append(words, word)
	}
	return words
}

// prefix is the longest start of s within width columns, and at least one character.
func prefix(s string, width int) string {
	end := 0
	for i, r := range s {
		next := i + utf8.RuneLen(r)
		if end > 0 && columnsOf(s[:next]) > width {
			return s[:end]
		}
		end = next
	}
	return s
}
