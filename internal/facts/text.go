package facts

import (
	"fmt"
	"strings"
)

// prettyName finds PRETTY_NAME in the text of an os-release(5) file. The format is that of shell assignments:
// quotes are optional, and a backslash escapes one character.
func prettyName(osRelease string) string {
	for line := range strings.Lines(osRelease) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return unquoteShell(value)
		}
	}
	return ""
}

func unquoteShell(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		quote := s[0]
		s = s[1 : len(s)-1]
		if quote == '\'' {
			return s
		}
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// cpuList prints ascending CPU numbers in the list format of cpuset(7), "0-3,8".
func cpuList(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		part := fmt.Sprint(cpus[i])
		if j > i {
			part += fmt.Sprintf("-%d", cpus[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// splitOptions splits what mountinfo prints as options. The kernel escapes commas inside values (seq_show_option),
// so every comma separates; ocfs2 prints a stray one.
func splitOptions(options string) []string {
	var list []string
	for option := range strings.SplitSeq(options, ",") {
		if option != "" {
			list = append(list, option)
		}
	}
	return list
}

// optionValue is the value of the first "name=value" in options, or "".
func optionValue(options []string, name string) string {
	for _, option := range options {
		if value, ok := strings.CutPrefix(option, name+"="); ok {
			return value
		}
	}
	return ""
}
