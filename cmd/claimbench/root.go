package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/survey"
)

// The exit statuses. survey.Decision holds the others.
const (
	statusUsage     = 2
	statusCannotRun = 4
)

// A statusError ends the program with a status of its own. With a nil error nothing is printed.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

func usage(err error) error     { return &statusError{statusUsage, err} }
func cannotRun(err error) error { return &statusError{statusCannotRun, err} }

func decided(d survey.Decision) error {
	if d == survey.Safe {
		return nil
	}
	return &statusError{status: int(d)}
}

// exitStatus prints an error, one line for each of those joined in it, and gives the status. What cobra itself
// objects to is usage.
func exitStatus(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(stderr, "claimbench: "+strings.TrimSuffix(line, "\n"))
	}
	var s *statusError
	if errors.As(err, &s) {
		return s.status
	}
	return statusUsage
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "claimbench",
		Short: "Is work that is claimed through files in a directory done exactly once?",
		Long: `If many workers race to claim the same work through files in a directory, and some of them die half-way,
is each piece of work done exactly once? claimbench surveys the directory's filesystem and answers with
a table, the evidence under it, and what to change where the answer is no.

Exit status: 0 every required protocol is safe and every required promise holds, 1 at least one is not, 3 unproven,
2 usage or configuration error, 4 the survey could not run.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return seeHelp(cmd, err) })
	root.AddCommand(surveyCommand(), probeCommand(), benchCommand(), exploreCommand(), calibrateCommand(), labCommand(), serveCommand(), joinCommand(), onceCommand(), reportCommand(), compareCommand(), docsCommand(), versionCommand())
	return root
}

// noSuchCommand objects to what is left of the arguments when no command was found in them.
func noSuchCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if near, ok := config.Nearest(args[0], names); ok {
		return fmt.Errorf("unknown command %q; did you mean %q?", args[0], near)
	}
	return seeHelp(root, fmt.Errorf("unknown command %q", args[0]))
}

func seeHelp(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// arguments adds to an objection of cobra's how the command is meant to be called.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}
