package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Shell leaves a person in a made target until they end the shell.
func (s *Stand) Shell() error {
	if s.Target.UML != nil {
		g, err := s.boot(plan{Target: s.Target.Name, UML: *s.Target.UML, Dir: s.Dir, Shell: true})
		if err != nil {
			return err
		}
		defer g.kill()
		err = <-g.ended
		g.ended <- err
		return nil
	}
	fmt.Fprintf(os.Stderr, "mounted: %s; exit takes it down\n", strings.Join(s.Routes, " "))
	cmd := exec.CommandContext(context.Background(), cmp.Or(os.Getenv("SHELL"), "/bin/sh"))
	cmd.Dir = s.Routes[0]
	cmd.Env = append(os.Environ(), MarkVariable+"="+s.ledger.Mark)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil // the status of what was last typed
	}
	return err
}
