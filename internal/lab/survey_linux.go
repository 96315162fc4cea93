package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/result"
)

// Survey surveys a made target with settings in YAML, and returns what was found. The survey is a process of its own,
// here as in a guest.
func (s *Stand) Survey(ctx context.Context, settings []byte) (*result.File, error) {
	file := filepath.Join(s.Dir, configName)
	if err := os.WriteFile(file, settings, 0o644); err != nil {
		return nil, err
	}
	c, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	// A survey keeps to its budget, but for what the last workload takes and for removing names.
	limit := 2*c.Budget + 5*time.Minute
	if s.Target.UML != nil && s.Target.UML.Hosts > 0 {
		err = s.surveyKernels(ctx, limit)
	} else if s.Target.UML != nil {
		err = s.surveyUML(ctx, surveyArgs(guestDir), limit)
	} else {
		err = s.surveyHere(ctx, limit)
	}
	if err != nil {
		return nil, err
	}
	return result.Load(filepath.Join(s.Dir, resultName))
}

func surveyArgs(dir string) []string {
	return []string{"survey", "--config", filepath.Join(dir, configName), "--out", filepath.Join(dir, resultName)}
}

func (s *Stand) surveyHere(ctx context.Context, limit time.Duration) error {
	args := append([]string{"/proc/self/exe"}, surveyArgs(s.Dir)...)
	args = append(args, s.Routes[0])
	for _, r := range s.Routes[1:] {
		args = append(args, "--route", s.Routes[0]+"="+r)
	}
	return s.runSurvey(ctx, limit, args)
}

// runSurvey runs claimbench here.
func (s *Stand) runSurvey(ctx context.Context, limit time.Duration, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	log, err := os.Create(filepath.Join(s.Dir, surveyLog))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command(ctx, args)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) } // it removes what it made in the target
	cmd.WaitDelay = 20 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("survey: %w", context.Cause(ctx))
	}
	return surveyed(err, log.Name(), filepath.Join(s.Dir, resultName))
}

// surveyed tells a survey that has come to a verdict, whichever, from one that could not run. Of that the last line of
// its log is the reason.
func surveyed(err error, log, file string) error {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if err == nil || exit.ExitCode() == 1 || exit.ExitCode() == 3 {
		return nil
	}
	if _, statErr := os.Stat(file); statErr == nil {
		return nil // something was found; what could not be surveyed is missing in it
	}
	out, readErr := os.ReadFile(log)
	return errors.Join(fmt.Errorf("survey: %w%s", err, lastLine(out)), readErr)
}
