package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/configs"
	"github.com/claimbench/claimbench/internal/lab"
	"github.com/claimbench/claimbench/internal/survey"
)

// labFlags are the flags of all lab commands.
type labFlags struct {
	targets string
	scratch string
	ledgers string
	config  string
	out     string
	quick   bool
	hide    bool
	jobs    int
}

func labCommand() *cobra.Command {
	f := &labFlags{}
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Make real filesystems, NFS and SMB included, and survey them",
		Long: `Make real filesystems on this machine, survey each, and take it down again: local ones on loop devices, FUSE
programs, and NFS, SMB and 9p shares within one User-mode Linux kernel or several. It needs root, and for each
target the packages that "lab list" names.

Everything that is made is written down before, in ` + lab.LedgerDir + `. It is removed at the end and after Ctrl-C;
after a SIGKILL by "lab clean".

Exit status of run: 0 everything is as expected, 1 something deviates, 3 a target could not be made or surveyed, or the
evidence is too thin to tell.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&f.targets, "targets", "", "directory of target files to use instead of the built-in ones")
	cmd.PersistentFlags().StringVar(&f.scratch, "scratch", "/var/tmp", "directory for images and mount points")
	cmd.PersistentFlags().StringVar(&f.ledgers, "ledgers", lab.LedgerDir, "directory of the ledgers, which say what to remove")
	cmd.AddCommand(f.listCommand(), f.runCommand(), f.shellCommand(), f.cleanCommand(), guestCommand())
	return cmd
}

func (f *labFlags) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the targets: whether each can be made here, and if not, why",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := f.load()
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, t := range all {
				can := "can be made here"
				if lacks := t.Lacks(); lacks != nil {
					can = lacks.Error()
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, t.About, can)
			}
			return errors.Join(w.Flush(), usageIf(err))
		},
	}
}

func usageIf(err error) error {
	if err == nil {
		return nil
	}
	return usage(err)
}

func (f *labFlags) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [TARGET ...]",
		Short: "Make each target, survey it, compare with what is expected, take it down",
		Long: `Make each target, survey it, compare with what is expected, and take it down. A target is named, or several by a
pattern: 'nfs*'. Without a name it is all of them.`,
		RunE: func(cmd *cobra.Command, names []string) error { return f.run(cmd, names) },
	}
	cmd.Flags().StringVar(&f.out, "out", "lab-results", "directory of the result files and logs")
	cmd.Flags().StringVar(&f.config, "config", "", "a YAML file of settings for the surveys, instead of each target's own")
	cmd.Flags().IntVar(&f.jobs, "jobs", runtime.NumCPU()+1, "FUSE filesystems and User-mode Linux machines at the same time; each keeps a CPU busy for two thirds of its survey")
	cmd.Flags().BoolVar(&f.hide, "anonymize", false, "leave host names, paths and addresses out of the results")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "the selection for every day; a target that a busy machine showed too little of is surveyed once more")
	return cmd
}

func (f *labFlags) run(cmd *cobra.Command, names []string) error {
	chosen, broken := f.choose(names)
	if len(chosen) == 0 {
		return usage(cmpErr(broken, errors.New("no target")))
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return cannotRun(err)
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	failed, deviating := broken != nil, false
	w := cmd.ErrOrStderr()
	r := lab.Run{
		Targets: chosen, Where: f.where(), Jobs: f.jobs, Out: f.out, Again: f.quick, Settings: f.settings,
		Tool: survey.Tool(version), BuiltIn: f.targets == "" && f.config == "", Hide: f.hide,
		Begin: func(t lab.Target) { fmt.Fprintf(w, "%s: %s\n", t.Name, t.About) },
		End: func(t lab.Target, o lab.Outcome) {
			for _, u := range o.AtFirst {
				fmt.Fprintln(w, "UNPROVEN AT FIRST", u)
			}
			for _, u := range o.Unproven {
				fmt.Fprintln(w, "UNPROVEN", u)
			}
			for _, d := range o.Deviations {
				fmt.Fprintln(w, "DEVIATES", d)
			}
			if o.Err != nil && ctx.Err() != nil {
				fmt.Fprintf(w, "%s: interrupted\n", t.Name)
			} else if o.Err != nil {
				fmt.Fprintf(w, "FAILED %s: %v\n", t.Name, o.Err)
			} else {
				fmt.Fprintf(w, "%s: %s (%v)\n", t.Name, outcome(o), o.Took.Round(time.Second))
			}
			failed, deviating = failed || o.Err != nil || len(o.Unproven) > 0, deviating || len(o.Deviations) > 0
		},
	}
	err := r.All(ctx)
	switch {
	case err != nil:
		return cannotRun(errors.New("interrupted"))
	case deviating:
		return &statusError{status: 1, err: broken}
	case failed:
		return &statusError{status: 3, err: broken}
	}
	return nil
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func outcome(o lab.Outcome) string {
	if len(o.File.Targets) == 0 {
		return "refused, as expected"
	}
	return o.File.Targets[0].Sentence
}

// choose finds the targets by their names, which may be patterns; without names it is all, or the quick ones. Files with
// errors do not stand in the way of the others.
func (f *labFlags) choose(names []string) ([]lab.Target, error) {
	all, broken := f.load()
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(t lab.Target) bool { return f.quick && !t.Quick }), broken
	}
	var chosen []lab.Target
	for _, name := range names {
		found := 0
		for _, t := range all {
			if match, _ := path.Match(name, t.Name); !match {
				continue
			}
			if found++; !slices.Contains(targetNames(chosen), t.Name) {
				chosen = append(chosen, t)
			}
		}
		if found == 0 {
			broken = errors.Join(broken, unknown("target", name, targetNames(all)))
		}
	}
	return chosen, broken
}

func targetNames(all []lab.Target) []string {
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	return names
}

func (f *labFlags) files() (fs.FS, error) {
	if f.targets != "" {
		if info, err := os.Stat(f.targets); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("--targets %s: no such directory", f.targets)
		}
		return os.DirFS(f.targets), nil
	}
	return fs.Sub(configs.Lab, "lab")
}

func (f *labFlags) load() ([]lab.Target, error) {
	files, err := f.files()
	if err != nil {
		return nil, err
	}
	return lab.Load(files)
}

// settings are those of --config, or of a file in surveys: in the directory of the targets, or else a built-in one.
func (f *labFlags) settings(name string) ([]byte, error) {
	if f.config != "" {
		return os.ReadFile(f.config)
	}
	if f.targets != "" {
		if data, err := os.ReadFile(filepath.Join(f.targets, "surveys", name+".yaml")); err == nil {
			return data, nil
		}
	}
	data, err := configs.Lab.ReadFile("lab/surveys/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("survey %q: there is no surveys/%s.yaml beside the targets", name, name)
	}
	return data, nil
}

func (f *labFlags) where() lab.Where {
	scratch, err := filepath.Abs(f.scratch)
	if err != nil {
		scratch = f.scratch
	}
	return lab.Where{Scratch: scratch, Ledgers: f.ledgers}
}

func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
}

func (f *labFlags) shellCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shell TARGET",
		Short: "Make a target and start a shell in it; it is taken down when the shell ends",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			chosen, err := f.choose(names)
			if len(chosen) == 0 {
				return usage(err)
			}
			if err := chosen[0].Lacks(); err != nil {
				return &statusError{3, fmt.Errorf("%s: %w", names[0], err)}
			}
			signal.Ignore(os.Interrupt, unix.SIGTTOU) // meant for what runs in the shell; and it has the terminal
			ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGHUP)
			defer stop()
			s, err := lab.Make(ctx, chosen[0], f.where())
			if err != nil {
				return &statusError{3, err}
			}
			if err := errors.Join(s.Shell(ctx), s.TakeDown()); err != nil {
				return cannotRun(err)
			}
			return nil
		},
	}
}

func (f *labFlags) cleanCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "Remove what killed lab runs have left behind, and nothing else",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			notes, err := lab.Clean(f.ledgers)
			for _, n := range notes {
				fmt.Fprintln(cmd.ErrOrStderr(), n)
			}
			if err != nil {
				return cannotRun(err)
			}
			return nil
		},
	}
}

func guestCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "guest",
		Short:  "Init of a machine that the lab has started",
		Hidden: true,
		Args:   cobra.NoArgs,
		Run:    func(*cobra.Command, []string) { lab.Guest() },
	}
}
