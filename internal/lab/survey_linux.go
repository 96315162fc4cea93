package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/result"
)

// Survey surveys a made target with settings in YAML, and returns what was found. The survey is a process of its own,
// here as in a guest.
func (s *Stand) Survey(ctx context.Context, settings []byte) (*result.File, error) {
	file := filepath.Join(s.Dir, configName)
	if s.Target.Disposable {
		settings = append(slices.Clone(settings), fmt.Sprintf("\ndisposable: [%q]\n", s.Routes[0])...)
	}
	if err := os.WriteFile(file, settings, 0o644); err != nil {
		return nil, err
	}
	c, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	// A survey keeps to its budget, but for what the last workload takes and for removing names.
	limit := 2*c.Budget + 5*time.Minute
	switch u := s.Target.UML; {
	case u == nil:
		err = s.surveyHere(ctx, limit)
	case u.Hosts > 0:
		err = s.surveyKernels(ctx, limit)
	default:
		err = s.surveyUML(ctx, s.surveyArgs(guestDir), limit)
	}
	if err != nil {
		return nil, err
	}
	f, err := result.Load(filepath.Join(s.Dir, resultName))
	if err != nil || s.Target.UML == nil || len(s.Target.UML.Faults) == 0 {
		return f, err
	}
	return f, s.mark(f)
}

// mark reads what the guest has written down about its faults.
func (s *Stand) mark(f *result.File) error {
	data, err := os.ReadFile(filepath.Join(s.Dir, faultTimes))
	if err != nil {
		return err
	}
	var faults []result.Fault
	if err := json.Unmarshal(data, &faults); err != nil {
		return fmt.Errorf("%s: %w", faultTimes, err)
	}
	for _, f := range s.Target.UML.Faults {
		if !happened(f, faults) {
			return fmt.Errorf("fault %q: it never happened", f)
		}
	}
	for i := range f.Targets {
		mark(&f.Targets[i], faults)
	}
	return nil
}

// happened says whether a fault began, and ended if it is one that does.
func happened(f Fault, all []result.Fault) bool {
	return slices.ContainsFunc(all, func(x result.Fault) bool { return x.Fault == f.String() && (x.End != 0 || f.Every == 0) })
}

func (s *Stand) surveyArgs(dir string) []string {
	args := []string{"survey", "--config", filepath.Join(dir, configName), "--out", filepath.Join(dir, resultName)}
	if u := s.Target.UML; u != nil && len(u.Faults) > 0 {
		args = append(args, "--trial-times")
	}
	if len(s.Target.Protocols) > 0 {
		args = append(args, "--protocol", strings.Join(s.Target.Protocols, ","))
	}
	return args
}

func (s *Stand) surveyHere(ctx context.Context, limit time.Duration) error {
	args := append([]string{"/proc/self/exe"}, s.surveyArgs(s.Dir)...)
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
