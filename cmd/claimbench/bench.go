package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimbench/claimbench/bench"
	"github.com/claimbench/claimbench/internal/config"
)

func benchCommand() *cobra.Command {
	var f surveyFlags
	cmd := &cobra.Command{
		Use:   "bench WORKLOAD[,WORKLOAD] DIR ...",
		Short: "Run claim protocols under contention in a directory",
		Long:  "Run claim protocols under contention: real processes, real deaths, the real directory. The workloads:\n\n" + workloads(),
		Args:  arguments(cobra.MinimumNArgs(2)),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			var names []string
			for _, w := range bench.All {
				names = append(names, w.Name+"\t"+w.Shows)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("out") {
				f.out = "-"
			}
			if !cmd.Flags().Changed("budget") {
				f.budget = benchBudget
			}
			f.workloads = strings.Split(args[0], ",")
			return f.run(cmd, args[1:], nil)
		},
	}
	f.add(cmd)
	f.addBench(cmd)
	return cmd
}

// addBench adds the flags that are about workloads.
func (f *surveyFlags) addBench(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.protocols, "protocol", nil, "protocols, controls or peers that take part (default: those that the workload is about)")
	cmd.Flags().IntVar(&f.trials, "trials", 0, "trials of each protocol (default: the workload's own number)")
	cmd.Flags().BoolVar(&f.full, "full", false, "the sizes that take many minutes: scale up to 10 000 000 keys")
}

// benchBudget is more than any workload of the usual size takes.
const benchBudget = 30 * time.Minute

func workloads() string {
	var b strings.Builder
	for _, w := range bench.All {
		b.WriteString("  " + w.Name + strings.Repeat(" ", 11-len(w.Name)) + w.Shows + "\n")
	}
	return b.String()
}

// benched objects to names of the bench that do not exist, and offers the nearest.
func (f *surveyFlags) benched(c *config.Config) error {
	for _, name := range c.Workloads {
		if _, ok := bench.Find(name); !ok {
			return unknown("workload", name, workloadNames())
		}
	}
	for _, name := range append(append([]string{}, f.protocols...), c.DeathsOf...) {
		if !bench.Known(name) {
			return unknown("protocol", name, bench.Names())
		}
	}
	return nil
}

func workloadNames() []string {
	var names []string
	for _, w := range bench.All {
		names = append(names, w.Name)
	}
	return names
}

func unknown(kind, name string, names []string) error {
	if near, ok := config.Nearest(name, names); ok {
		return fmt.Errorf("unknown %s %q; did you mean %q?", kind, name, near)
	}
	return fmt.Errorf("unknown %s %q; there are %s", kind, name, strings.Join(names, ", "))
}
