package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/explore"
)

// A conflict is a flag that makes no sense beside what else there is on the command line.
type conflict struct {
	flags []string
	when  bool
	why   string
}

// check objects to what would otherwise be ignored, and to numbers that cannot be.
func (f *exploreFlags) check(cmd *cobra.Command, args []string) error {
	one, told := len(args) > 0, cmd.Flags().Changed("schedule")
	for _, c := range []conflict{
		{[]string{"weakness", "scenario", "deaths", "ticks", "states", "schedule", "dir"}, !one, "it needs a PROTOCOL"},
		{[]string{"requirements"}, one, "the table is of all protocols: leave out " + first(args)},
		{[]string{"dir"}, !told, "it needs a --schedule to run there"},
		{[]string{"deaths", "ticks", "preemptions", "states"}, told, "it bounds an exploration, and a --schedule is a single one"},
		{[]string{"contenders", "deaths", "ticks", "preemptions"}, f.scenario != "claim", "the scenario " + f.scenario + " has bounds of its own"},
		{[]string{"weakness"}, f.dir != "", "--dir takes a filesystem as it is"},
	} {
		for _, name := range c.flags {
			if c.when && cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s: %s", name, c.why)
			}
		}
	}
	if told && f.schedule == "" {
		return errors.New("--schedule: it is empty")
	}
	for _, n := range []struct {
		name           string
		is, least, max int
	}{
		{"contenders", f.sc.Contenders, 1, 3}, {"deaths", f.sc.Deaths, 0, 4}, {"ticks", f.sc.Ticks, 0, 9},
		{"preemptions", f.sc.Preemptions, 0, 99}, {"states", f.sc.States, 0, 1 << 40},
	} {
		if n.is < n.least || n.is > n.max {
			return fmt.Errorf("--%s %d: it must be %d to %d", n.name, n.is, n.least, n.max)
		}
	}
	return nil
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// subject is what is to be explored: the protocol, and the scenario with the bounds that were asked for.
func (f *exploreFlags) subject(cmd *cobra.Command, name string) (engine.Spec, explore.Scenario, error) {
	spec, ok := engine.Find(name)
	if !ok {
		return spec, explore.Scenario{}, unknown("protocol", name, protocolNames())
	}
	weak, ok := explore.FindWeakness(f.weakness)
	if !ok {
		return spec, explore.Scenario{}, unknown("weakness", f.weakness, explore.WeaknessNames())
	}
	sc, ok := explore.FindScenario(f.scenario, f.sc.Contenders, f.sc.Preemptions, weak)
	if !ok {
		return spec, sc, unknown("scenario", f.scenario, explore.ScenarioNames())
	}
	if !sc.Shows(spec) {
		return spec, sc, fmt.Errorf("--scenario %s: %s has nothing to be reclaimed", f.scenario, name)
	}
	if cmd.Flags().Changed("deaths") {
		sc.Deaths = f.sc.Deaths
	}
	if cmd.Flags().Changed("ticks") {
		sc.Ticks = f.sc.Ticks
	}
	sc.States = f.sc.States
	return spec, sc, nil
}

// emptyDir objects to a directory that a schedule cannot be run in.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usage(fmt.Errorf("--dir %s: no such directory; make it first", dir))
	case errors.Is(err, unix.ENOTDIR):
		return usage(fmt.Errorf("--dir %s: not a directory", dir))
	case err != nil:
		return cannotRun(fmt.Errorf("--dir %s: %w", dir, err))
	case len(entries) > 0:
		return cannotRun(fmt.Errorf("--dir %s: it is not empty; name a directory of its own", dir))
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return cannotRun(fmt.Errorf("--dir %s: %w; name one that can be written", dir, err))
	}
	return nil
}
