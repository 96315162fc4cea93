package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/claimbench/claimbench/internal/report"
	"github.com/claimbench/claimbench/internal/result"
)

func reportCommand() *cobra.Command {
	var format string
	var verbose, anonymize bool
	cmd := &cobra.Command{
		Use:   "report FILE ...",
		Short: "Print result files as a table, Markdown, CSV or JSON",
		Args:  arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := formatNamed(format)
			if err != nil {
				return usage(err)
			}
			var files []*result.File
			for _, path := range args {
				f, err := result.Load(path)
				if err != nil {
					return usage(err)
				}
				if anonymize {
					f.Anonymize()
				}
				files = append(files, f)
			}
			w := cmd.OutOrStdout()
			if err := write(w, files, textOptions(w, verbose)); err != nil {
				return cannotRun(err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "table", strings.Join(formats(), ", "))
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print all figures")
	cmd.Flags().BoolVar(&anonymize, "anonymize", false, "leave host names, paths and addresses out")
	return cmd
}

func formats() []string {
	var names []string
	for _, f := range report.Formats {
		names = append(names, f.Name)
	}
	return names
}

func formatNamed(name string) (func(io.Writer, []*result.File, report.TextOptions) error, error) {
	for _, f := range report.Formats {
		if f.Name == name {
			return f.Write, nil
		}
	}
	return nil, fmt.Errorf("unknown format %q; the formats are %s", name, strings.Join(formats(), ", "))
}

// textOptions follow the terminal. NO_COLOR, when not empty, switches colour off (no-color.org).
func textOptions(w io.Writer, verbose bool) report.TextOptions {
	o := report.TextOptions{Verbose: verbose}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return o
	}
	o.Width, _, _ = term.GetSize(int(f.Fd()))
	o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return o
}
