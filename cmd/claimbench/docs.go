package main

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/claimbench/claimbench/internal/museum"
	"github.com/claimbench/claimbench/probes"
)

func docsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "docs DIR",
		Short:  "Write the pages of the probes, and beside their directory the museum's",
		Hidden: true,
		Args:   arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			err := errors.Join(probes.WriteDocs(args[0]), museum.WritePage(filepath.Join(args[0], "../museum.md")))
			if err != nil {
				return cannotRun(err)
			}
			return nil
		},
	}
}
