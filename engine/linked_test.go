package engine

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestRefusedLinksLeaveNothing(t *testing.T) {
	w := newWorld(t)
	p, h := w.join("generations-linked")
	h.answer = func(op, name string, err error) error {
		if op == "link" && err == nil {
			return errors.Join(&os.PathError{Op: op, Path: name, Err: syscall.EPERM}, h.FullFS.Unlink(name))
		}
		return err
	}
	if _, err := p.Try(sig); !errors.Is(err, syscall.EPERM) || !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	if names, err := h.List(sig.fan()); err != nil || len(names) != 0 {
		t.Errorf("left %v, %v", names, err)
	}
}

// A done record counts once it is durable, and so does its name.
func TestLinkedNamesAreDurable(t *testing.T) {
	w := newWorld(t)
	p := testParams()
	p.Sync = true
	a, ha := w.joinWith("generations-linked", p)
	var steps []string
	ha.before = func(op, name string) {
		if op == "link" || op == "sync" {
			steps = append(steps, op)
		}
	}
	w.try(a, sig, Won)
	if got := strings.Join(steps, " "); got != "sync link sync" {
		t.Errorf("steps are %q", got)
	}
}
