package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

var leadingZero = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

func decimal(digits string) string {
	sign, rest := "", digits
	if strings.HasPrefix(rest, "-") {
		sign = "-"
	}
	rest = strings.TrimLeft(strings.TrimLeft(rest, "-+"), "0_")
	if rest == "" {
		return "0"
	}
	return sign + rest
}

// fits is stricter than the decoder, which reads hexadecimal, cuts a fraction off, and lets a key without a value
// be.
func fits(want any, n *yaml.Node) bool {
	tag, digits := n.ShortTag(), strings.ReplaceAll(n.Value, "_", "")
	switch want.(type) {
	case *time.Duration:
		_, err := time.ParseDuration(n.Value)
		return tag == "!!str" && err == nil
	case *int:
		_, err := strconv.Atoi(digits)
		return tag == "!!int" && err == nil
	case *uint64:
		_, err := strconv.ParseUint(digits, 10, 64)
		return tag == "!!int" && err == nil
	case *float64:
		return (tag == "!!int" || tag == "!!float") && n.Decode(new(float64)) == nil
	}
	return tag == "!!str" && n.Value != ""
}

func expected(want any) string {
	switch want.(type) {
	case *time.Duration:
		return "a duration such as 60s"
	case *int:
		return "a whole number"
	case *uint64:
		return "a whole number, 0 or more"
	case *float64:
		return "a number"
	case *[]int:
		return "a list of numbers such as [2, 8]"
	case *[]string:
		return "a list of names such as [flock, mkdir]"
	}
	return "a name"
}

func got(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.ShortTag() == "!!null":
		return "nothing"
	case n.ShortTag() == "!!str":
		return fmt.Sprintf("the text %.40q", n.Value)
	}
	return bare(n.Value)
}

// bare is a value as it was written, in one line.
func bare(value string) string {
	quoted := fmt.Sprintf("%.40q", value)
	return quoted[1 : len(quoted)-1]
}
