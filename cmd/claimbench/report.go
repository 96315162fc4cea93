package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/claimbench/claimbench/internal/report"
	"github.com/claimbench/claimbench/internal/result"
)

type reportFlags struct {
	format, table      string
	verbose, anonymize bool
}

func reportCommand() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report FILE ...",
		Short: "Print result files as tables, Markdown, CSV, JSON or Go benchmarks",
		Long: `Print result files: all of each, or with --table one table with the files side by side, a row for each host and
protocol. The tables are protocols, promises, bench (all workloads) and each workload by its name.

The format gobench is for benchstat: claimbench report --format gobench new.json >new.txt; benchstat old.txt new.txt.
Hosts, kernels and filesystems that differ are compared with benchstat -ignore host,kernel,fs,scope,target, or side by
side with benchstat -col fs.`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.OutOrStdout(), args) },
	}
	cmd.Flags().StringVar(&f.format, "format", "table", strings.Join(formats(), ", "))
	cmd.Flags().StringVar(&f.table, "table", "", "one table with the files side by side: protocols, promises, bench or a workload")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "print all figures")
	cmd.Flags().BoolVar(&f.anonymize, "anonymize", false, "leave host names, paths and addresses out")
	return cmd
}

func (f *reportFlags) run(w io.Writer, paths []string) error {
	format, err := formatNamed(f.format)
	if err != nil {
		return usage(err)
	}
	files, err := loadAll(paths)
	if err != nil {
		return usage(err)
	}
	if err := f.checkTable(format, files); err != nil {
		return usage(err)
	}
	if f.anonymize {
		for _, file := range files {
			file.Anonymize()
		}
	}
	o := textOptions(w, f.verbose)
	o.Table = f.table
	if err := format.Write(w, files, o); err != nil {
		return cannotRun(err)
	}
	return nil
}

func (f *reportFlags) checkTable(format report.Format, files []*result.File) error {
	switch tables := report.Tables(files); {
	case f.table == "":
		return nil
	case !slices.Contains(tables, f.table):
		return fmt.Errorf("unknown table %q; the tables are %s", f.table, strings.Join(tables, ", "))
	case !format.Tables:
		return fmt.Errorf("--table: the format %s has no tables; print it as table, markdown or csv", format.Name)
	}
	return nil
}

func loadAll(paths []string) ([]*result.File, error) {
	var files []*result.File
	for _, path := range paths {
		f, err := result.Load(path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func formats() []string {
	var names []string
	for _, f := range report.Formats {
		names = append(names, f.Name)
	}
	return names
}

func formatNamed(name string) (report.Format, error) {
	for _, f := range report.Formats {
		if f.Name == name {
			return f, nil
		}
	}
	return report.Format{}, fmt.Errorf("unknown format %q; the formats are %s", name, strings.Join(formats(), ", "))
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
