package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimbench/claimbench/internal/report"
)

func compareCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "compare FILE FILE ...",
		Short: "Print result files side by side, with their differences marked",
		Long: `Print result files side by side: the verdicts of promises and protocols, the counts of the bench, and its times.
The first file is what the others are compared to. A change in time is given in percent only where the medians of the
trials differ significantly: p at most 0.05 by the two-sided Mann-Whitney U test. ~ is no significant difference. Rows
of another scope, or with other contenders, keys, trials or settings, are not compared, and say so.`,
		Args: arguments(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error { return compare(cmd.OutOrStdout(), format, args) },
	}
	cmd.Flags().StringVar(&format, "format", "table", strings.Join(compareFormats(), ", "))
	return cmd
}

func compare(w io.Writer, format string, paths []string) error {
	write, err := compareFormatNamed(format)
	if err != nil {
		return usage(err)
	}
	files, err := loadAll(paths)
	if err != nil {
		return usage(err)
	}
	named := make([]report.Named, len(files))
	for i, f := range files {
		named[i] = report.Named{Name: paths[i], File: f}
	}
	if err := write(w, named, textOptions(w, false)); err != nil {
		return cannotRun(err)
	}
	return nil
}

func compareFormats() []string {
	var names []string
	for _, f := range report.CompareFormats {
		names = append(names, f.Name)
	}
	return names
}

func compareFormatNamed(name string) (func(io.Writer, []report.Named, report.TextOptions) error, error) {
	for _, f := range report.CompareFormats {
		if f.Name == name {
			return f.Write, nil
		}
	}
	return nil, fmt.Errorf("unknown format %q; the formats are %s", name, strings.Join(compareFormats(), ", "))
}
