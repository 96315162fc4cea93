package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/explore"
)

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
stalls, on a filesystem in memory that keeps all promises but one. Without PROTOCOL, print the table of what each
protocol requires of a filesystem.

A schedule names the contender that does its next operation: ABB. A! dies, + lets more than a TTL go by,
A1 is the ending that only the weak filesystem has. Z came first and died.`,
		Args: arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return protocolNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.sc.Contenders, "contenders", 2, "contenders, 1 to 3")
	flags.IntVar(&f.sc.Deaths, "deaths", 2, "how many of them may die")
	flags.IntVar(&f.sc.Ticks, "ticks", 2, "how often more than a TTL may go by")
	flags.IntVar(&f.sc.Preemptions, "preemptions", 0, "how often a contender may be preempted by another; 0 is no bound")
	flags.StringVar(&f.weakness, "weakness", "perfect", "the promise that the filesystem does not keep")
	flags.StringVar(&f.scenario, "scenario", "claim", "what contenders do: claim, renew, fail, keys or reclaim")
	flags.StringVar(&f.schedule, "schedule", "", "tell one schedule step by step")
	flags.StringVar(&f.dir, "dir", "", "run the schedule in this real directory, which must be empty")
	flags.StringVar(&f.requirements, "requirements", "", "write the requirement table to this file, and the Go table beside the explorer if the file is docs/requirements.md")
	return cmd
}

func protocolNames() []string {
	var names []string
	for _, s := range slices.Concat(engine.Protocols, engine.Controls) {
		names = append(names, s.Name)
	}
	return names
}

func (f *exploreFlags) run(cmd *cobra.Command, args []string) error {
	if f.sc.Contenders < 1 || f.sc.Contenders > 3 {
		return usage(fmt.Errorf("--contenders %d: it must be 1 to 3", f.sc.Contenders))
	}
	weak, ok := explore.FindWeakness(f.weakness)
	if !ok {
		return usage(fmt.Errorf("--weakness %s: there is none of that name; the page of requirements lists them", f.weakness))
	}
	if len(args) == 0 {
		return f.table(cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	spec, ok := engine.Find(args[0])
	if !ok {
		if near, ok := config.Nearest(args[0], protocolNames()); ok {
			return usage(fmt.Errorf("unknown protocol %q; did you mean %q?", args[0], near))
		}
		return usage(fmt.Errorf("unknown protocol %q", args[0]))
	}
	sc, ok := explore.FindScenario(f.scenario, f.sc.Contenders, f.sc.Preemptions, weak)
	if !ok {
		return usage(fmt.Errorf("--scenario %s: it must be claim, renew, fail, keys or reclaim", f.scenario))
	}
	if flags := cmd.Flags(); f.scenario == "claim" {
		if flags.Changed("deaths") {
			sc.Deaths = f.sc.Deaths
		}
		if flags.Changed("ticks") {
			sc.Ticks = f.sc.Ticks
		}
	}
	if f.schedule != "" {
		return f.tell(cmd.OutOrStdout(), spec, sc)
	}
	return one(cmd.OutOrStdout(), spec, sc)
}

func (f *exploreFlags) table(stdout, stderr io.Writer) error {
	t := explore.MakeTable(engine.Protocols, f.sc.Contenders, f.sc.Preemptions, func(c explore.Cell) {
		fmt.Fprintf(stderr, "%s, %v: %s, %d states\n", c.Protocol, c.Weakness, c.Verdict(), c.States)
	})
	fmt.Fprintf(stderr, "%d states that stand for %.2g schedules, %d operations, in %v\n", t.States, t.Schedules, t.Operations, t.Took)
	if f.requirements == "" {
		return t.WriteMarkdown(stdout)
	}
	if err := t.WriteFiles(f.requirements); err != nil {
		return cannotRun(err)
	}
	return nil
}

func (f *exploreFlags) tell(w io.Writer, spec engine.Spec, sc explore.Scenario) error {
	schedule, err := explore.ParseSchedule(f.schedule)
	if err != nil {
		return usage(err)
	}
	if f.dir != "" {
		return f.perform(w, spec, sc, schedule)
	}
	lines, v, err := explore.Replay(spec, sc, schedule)
	if err := explore.WriteLines(w, lines); err != nil {
		return err
	}
	if err != nil {
		return usage(err)
	}
	if v == nil {
		_, err := fmt.Fprintln(w, "no violation")
		return err
	}
	fmt.Fprintf(w, "%v: %s\n", v.Kind, v.What)
	return &statusError{status: 1}
}

func (f *exploreFlags) perform(w io.Writer, spec engine.Spec, sc explore.Scenario, schedule explore.Schedule) error {
	if entries, err := os.ReadDir(f.dir); err != nil || len(entries) > 0 {
		return cannotRun(fmt.Errorf("--dir %s: it must be an empty directory", f.dir))
	}
	v, err := explore.Perform(spec, sc, schedule, f.dir)
	if err != nil {
		return cannotRun(err)
	}
	if v == nil {
		_, err := fmt.Fprintln(w, "no violation")
		return err
	}
	fmt.Fprintf(w, "%v: %s\n", v.Kind, v.What)
	return &statusError{status: 1}
}

func one(w io.Writer, spec engine.Spec, sc explore.Scenario) error {
	r := explore.Explore(spec, sc)
	fmt.Fprintf(w, "%s on a %v filesystem, %d contenders, %d deaths, %d ticks", spec.Name, sc.Weakness, sc.Contenders, sc.Deaths, sc.Ticks)
	if sc.Preemptions > 0 {
		fmt.Fprintf(w, ", at most %d preemptions", sc.Preemptions)
	}
	fmt.Fprintf(w, ":\n%d states that stand for %.2g schedules, %d operations; %d overlaps after a stall past the TTL\n",
		r.States, r.Schedules, r.Operations, r.Stalls)
	if len(r.Found) == 0 {
		_, err := fmt.Fprintln(w, "no violation")
		return err
	}
	for _, found := range r.Found {
		found = explore.Shortest(spec, sc, found, 1_000_000)
		lines, _, err := explore.Replay(spec, sc, found.Schedule)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "\n%v: %s\nschedule %v\n", found.Kind, found.What, found.Schedule)
		if err := explore.WriteLines(w, lines); err != nil {
			return err
		}
	}
	return &statusError{status: 1}
}
