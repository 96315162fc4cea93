package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimbench/claimbench/probes"
)

func probeCommand() *cobra.Command {
	var f surveyFlags
	cmd := &cobra.Command{
		Use:   "probe NAME[,NAME] DIR",
		Short: "Test one promise, or several, with all the evidence",
		Long:  "Test one promise, or several, with all the evidence. The promises:\n\n" + promises(),
		Args:  arguments(cobra.ExactArgs(2)),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			var names []string
			for _, p := range probes.All {
				names = append(names, p.Name+"\t"+p.Promise)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("out") {
				f.out = "-"
			}
			f.verbose = true
			return f.run(cmd, args[1:], strings.Split(args[0], ","))
		},
	}
	f.add(cmd)
	return cmd
}

func promises() string {
	var b strings.Builder
	for _, p := range probes.All {
		b.WriteString("  " + p.Name + strings.Repeat(" ", 21-len(p.Name)) + p.Promise + "\n")
	}
	return b.String()
}
