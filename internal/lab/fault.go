package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Fault is what goes wrong with a share while it is surveyed. Its text form parses back:
//
//	latency 20ms                  every packet to a client is late
//	loss 2%                       packets to a client get lost
//	restart 1s every 20s          the server is down for a second
//	cut 5s every 30s              the last client's cable is out for as long
//	lost-reply 5s every 15s       what the server sends gets lost, what it is sent arrives, and its connections are closed
//	full 500ms every 3s           the share is filled, and emptied so much later
//	reboot 5s every 2m            the server's kernel is ended, and boots from its disk so much later
//	death 60s                     the last client's kernel is ended once, that long after the survey began
type Fault struct {
	Kind    string
	Percent int           // of loss
	For     time.Duration // of the others
	Every   time.Duration // of those that recur
}

func (f Fault) String() string {
	switch {
	case f.Kind == "loss":
		return fmt.Sprintf("loss %d%%", f.Percent)
	case f.Every > 0:
		return fmt.Sprintf("%s %v every %v", f.Kind, f.For, f.Every)
	}
	return fmt.Sprintf("%s %v", f.Kind, f.For)
}

const faultForms = "expected latency 20ms, loss 2%, restart 1s every 20s, cut 5s every 30s, lost-reply 5s every 15s, full 500ms every 3s, reboot 5s every 2m or death 60s"

// recurring are the faults that come and go.
var recurring = []string{"restart", "cut", "lost-reply", "full", "reboot"}

// MarshalText writes the text form.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads it.
func (f *Fault) UnmarshalText(text []byte) (err error) {
	*f, err = parseFault(string(text))
	return err
}

func parseFault(text string) (Fault, error) {
	words := strings.Fields(text)
	wrong := fmt.Errorf("fault %q: %s", text, faultForms)
	if len(words) < 2 {
		return Fault{}, wrong
	}
	f := Fault{Kind: words[0]}
	var err error
	if f.Kind == "loss" {
		f.Percent, err = strconv.Atoi(strings.TrimSuffix(words[1], "%"))
		if err != nil || len(words) != 2 || !strings.HasSuffix(words[1], "%") || f.Percent < 1 || f.Percent > 100 {
			return Fault{}, wrong
		}
		return f, nil
	}
	if f.For, err = time.ParseDuration(words[1]); err != nil || f.For <= 0 {
		return Fault{}, wrong
	}
	switch {
	case (f.Kind == "latency" || f.Kind == "death") && len(words) == 2:
		return f, nil
	case slices.Contains(recurring, f.Kind) && len(words) == 4 && words[2] == "every":
		if f.Every, err = time.ParseDuration(words[3]); err == nil && f.Every > f.For {
			return f, nil
		}
	}
	return Fault{}, wrong
}

// outside says of several kernels' faults that they happen to kernels and cables, and not within the server.
func (f Fault) outside() bool { return f.Kind == "cut" || f.Kind == "reboot" || f.Kind == "death" }

// within says that it comes and goes within the server, also where that is a kernel of its own.
func (f Fault) within() bool {
	return f.Kind == "restart" || f.Kind == "lost-reply" || f.Kind == "full"
}

// order is the file in the scratch directory of a server, a kernel of its own, that asks it for the fault.
func (f Fault) order() string { return "fault-" + f.Kind }
