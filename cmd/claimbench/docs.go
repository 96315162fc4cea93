package main

import (
	"github.com/spf13/cobra"

	"github.com/claimbench/claimbench/probes"
)

func docsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "docs DIR",
		Short:  "Write the pages of the probes",
		Hidden: true,
		Args:   arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := probes.WriteDocs(args[0]); err != nil {
				return cannotRun(err)
			}
			return nil
		},
	}
}
