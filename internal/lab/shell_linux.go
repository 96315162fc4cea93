package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"
)

// Shell leaves a person in a made target until they end the shell, or ctx is done.
func (s *Stand) Shell(ctx context.Context) error {
	if u := s.Target.UML; u != nil && u.Hosts > 0 {
		return errors.New("a target of several kernels has no shell; what each of them says is kept by lab run")
	}
	if s.Target.UML != nil {
		return s.shellUML(ctx)
	}
	fmt.Fprintf(os.Stderr, "mounted: %s; exit takes it down\n", strings.Join(s.Routes, " "))
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("SHELL"), "/bin/sh"))
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

// shellUML lends the guest's console the terminal. The guest is another process group, which may use it only when it
// is the one in the foreground.
func (s *Stand) shellUML(ctx context.Context) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New("a shell in a User-mode Linux target needs a terminal")
	}
	before, err := term.GetState(int(os.Stdin.Fd()))
	if err != nil {
		return err
	}
	defer term.Restore(int(os.Stdin.Fd()), before)
	g, err := s.boot(plan{Target: s.Target.Name, UML: *s.Target.UML, Dir: s.Dir, Shell: true})
	if g == nil {
		return err
	}
	defer g.kill()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err := <-g.ended:
		g.ended <- err
	}
	return nil
}
