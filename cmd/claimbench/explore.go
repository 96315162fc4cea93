package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/explore"
)

// exploreFlags are those of the command line. sc holds the bounds.
type exploreFlags struct {
	sc           explore.Scenario
	weakness     string
	scenario     string
	schedule     string
	dir          string
	requirements string
}

func exploreCommand() *cobra.Command {
	var f exploreFlags
	cmd := &cobra.Command{
		Use:   "explore [PROTOCOL]",
		Short: "Run a claim protocol through every order of its file operations",
		Long: `Run the real code of a claim protocol through every order of its contenders' file operations, with deaths and
stalls, on a filesystem in memory that keeps all promises but one, and tell the shortest order found that breaks it.
Without PROTOCOL, print the table of what each protocol requires of a filesystem; that takes minutes.

A schedule has a letter for each operation: ABB is A's next, and two of B's. A! is A's death, + a stall of all for
more than a TTL, A1 the ending of A's next operation that only the weak filesystem has. Z came first and died; F
comes when all others have ended.

Exit status: 0 no violation, 1 a violation, 3 unproven, 2 usage error, 4 it could not run.`,
		Example: `  claimbench explore generations
  claimbench explore quarantine --weakness rename-occupied
  claimbench explore check-then-create --schedule ABAAAABBAAAAAAABBBBBBB --dir /mnt/share/empty`,
		Args: arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return protocolNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.add(cmd)
	return cmd
}

func (f *exploreFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.weakness, "weakness", "perfect", "the promise that the filesystem does not keep: "+strings.Join(explore.WeaknessNames()[1:], ", "))
	fl.StringVar(&f.scenario, "scenario", "claim", "what contenders do: "+strings.Join(explore.ScenarioNames(), ", "))
	fl.IntVar(&f.sc.Contenders, "contenders", 2, "how many contenders, 1 to 3; with 3, set --preemptions")
	fl.IntVar(&f.sc.Deaths, "deaths", 0, "how many of them may die (default 2, with a weakness 1)")
	fl.IntVar(&f.sc.Ticks, "ticks", 0, "how often all may be stalled for more than a TTL (default 2)")
	fl.IntVar(&f.sc.Preemptions, "preemptions", 0, "how often a contender may be preempted by another (default no bound)")
	fl.IntVar(&f.sc.States, "states", 0, "stop after so many states (default no bound)")
	fl.StringVar(&f.schedule, "schedule", "", "tell this one schedule step by step")
	fl.StringVar(&f.dir, "dir", "", "run the schedule in this real directory, which must be empty; what it leaves there stays")
	fl.StringVar(&f.requirements, "requirements", "", "write the table to this file, and the Go table beside the explorer if the file is docs/requirements.md")
	for name, values := range map[string][]string{"weakness": explore.WeaknessNames(), "scenario": explore.ScenarioNames()} {
		// It fails only for a flag that there is not.
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

func protocolNames() []string {
	var names []string
	for _, s := range slices.Concat(engine.Protocols, engine.Controls) {
		names = append(names, s.Name)
	}
	return names
}

func (f *exploreFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.check(cmd, args); err != nil {
		return usage(err)
	}
	if len(args) == 0 {
		return f.table(cmd)
	}
	spec, sc, err := f.subject(cmd, args[0])
	if err != nil {
		return usage(err)
	}
	if f.schedule != "" {
		return f.tell(cmd, spec, sc)
	}
	r, err := watched(cmd, "exploring "+spec.Name, func() *explore.Report { return explore.Explore(spec, sc) })
	if err != nil {
		return err
	}
	if err := explore.Print(cmd.OutOrStdout(), spec, sc, r); err != nil {
		return cannotRun(err)
	}
	switch {
	case len(r.Found) > 0:
		return &statusError{status: 1}
	case r.Cut:
		return &statusError{status: 3}
	}
	return nil
}

func (f *exploreFlags) table(cmd *cobra.Command) error {
	t, err := tabulated(cmd, f.sc.Contenders, f.sc.Preemptions)
	if err != nil {
		return err
	}
	if f.requirements == "" {
		err = t.WriteMarkdown(cmd.OutOrStdout())
	} else {
		err = t.WriteFiles(f.requirements)
	}
	if err != nil {
		return cannotRun(err)
	}
	return nil
}

func (f *exploreFlags) tell(cmd *cobra.Command, spec engine.Spec, sc explore.Scenario) error {
	schedule, err := explore.ParseSchedule(f.schedule)
	if err != nil {
		return usage(err)
	}
	lines, v, err := explore.Tell(spec, sc, schedule)
	if err != nil {
		return usage(err)
	}
	story := explore.Story{Lines: lines, Model: v, Dir: f.dir}
	if f.dir != "" {
		if v, err = f.perform(cmd, spec, sc, schedule); err != nil {
			return err
		}
		story.Real = v
	}
	if err := story.Print(cmd.OutOrStdout(), spec, sc); err != nil {
		return cannotRun(err)
	}
	if v != nil {
		return &statusError{status: 1}
	}
	return nil
}
