package explore

import (
	"fmt"
	"strconv"
	"strings"
)

// A Step is one choice of the scheduler.
type Step struct {
	Who    int8
	Choice int8
	Dies   bool // instead of doing its next operation
	Tick   bool // the clock goes on by more than a TTL
}

func (s Step) String() string {
	switch {
	case s.Tick:
		return "+"
	case s.Dies:
		return letter(int(s.Who)) + "!"
	case s.Choice > 0:
		return letter(int(s.Who)) + strconv.Itoa(int(s.Choice))
	default:
		return letter(int(s.Who))
	}
}

// A Schedule is an order of steps. Its text is the contenders' letters: A does
// its next operation, A1 the same with the ending that the weakness allows,
// A! dies, + is a tick.
type Schedule []Step

func (s Schedule) String() string {
	var b strings.Builder
	for _, step := range s {
		b.WriteString(step.String())
	}
	return b.String()
}

// ParseSchedule reads what String wrote. White space is skipped.
func ParseSchedule(text string) (Schedule, error) {
	var s Schedule
	for i, c := range text {
		last := len(s) - 1
		switch {
		case c == '+':
			s = append(s, Step{Tick: true, Who: -1})
		case c >= 'A' && c < 'A'+before:
			s = append(s, Step{Who: int8(c - 'A')})
		case c == 'Z':
			s = append(s, Step{Who: before})
		case c == '!' && last >= 0 && !s[last].Tick && !s[last].Dies:
			s[last].Dies = true
		case c > '0' && c <= '9' && last >= 0 && !s[last].Tick:
			s[last].Choice = int8(c - '0')
		case !strings.ContainsRune(" \t\n", c):
			return nil, fmt.Errorf("parse schedule: %q at %d is no step", c, i)
		}
	}
	return s, nil
}
