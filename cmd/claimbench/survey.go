package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/facts"
	"github.com/claimbench/claimbench/internal/report"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/survey"
	"github.com/claimbench/claimbench/probes"
)

// surveyFlags are the flags that survey and probe share.
type surveyFlags struct {
	config    string
	routes    []string
	budget    time.Duration
	maxWait   time.Duration
	out       string
	json      bool
	require   []string
	seed      uint64
	verbose   bool
	anonymize bool

	workloads []string // of the bench alone; nil is a survey
	protocols []string
	trials    int
	full      bool
	times     bool

	fleet *fleetFlags // many hosts; nil is this one
}

func (f *surveyFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "quick", "quick, full, or a YAML file read over quick")
	fl.StringArrayVar(&f.routes, "route", nil, "DIR=OTHER: another way to the same directory")
	fl.DurationVar(&f.budget, "budget", 0, "the most that the whole run may take (default from --config)")
	fl.DurationVar(&f.maxWait, "max-wait", 0, "how long a change may take to be seen over another route (default from --config)")
	fl.StringVar(&f.out, "out", "", "result file to write (default claimbench-HOST-TIME.json; - for none)")
	fl.BoolVar(&f.json, "json", false, "print the result file instead of the table")
	fl.StringSliceVar(&f.require, "require", nil, "protocols and promises that decide the exit status (default from --config)")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of everything random; 0 draws one")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "print all figures")
	fl.BoolVar(&f.anonymize, "anonymize", false, "leave host names, paths and addresses out of the result")
}

func surveyCommand() *cobra.Command {
	var f surveyFlags
	cmd := &cobra.Command{
		Use:   "survey [DIR ...]",
		Short: "Say which claim protocol may be used in a directory, and why",
		Long: `Test every promise that file claims rest on, in each DIR, run claim protocols under contention there, and say
which of them may be used. Without DIR, on the filesystems of the working directory, /tmp, /dev/shm and $HOME,
each filesystem once.

claimbench works inside one directory of its own in each DIR and removes it again.`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args, nil) },
	}
	f.add(cmd)
	f.addWorkloads(cmd)
	return cmd
}

// addWorkloads adds the flags of a survey that are about its workloads.
func (f *surveyFlags) addWorkloads(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.protocols, "protocol", nil, "protocols and controls that take part in workloads (default: those that each workload is about)")
	cmd.Flags().BoolVar(&f.times, "trial-times", false, "keep in the result when each trial of a workload was")
}

// run surveys the directories, with all probes of the configuration or the given ones.
func (f *surveyFlags) run(cmd *cobra.Command, dirs, names []string) error {
	c, err := f.settings(cmd, names)
	if err != nil {
		return usage(err)
	}
	notes := []string{}
	if len(dirs) == 0 && len(f.routes) == 0 && f.fleet == nil {
		dirs, notes = facts.DefaultTargets()
	}
	targets, err := f.targets(dirs)
	if err != nil {
		return usage(err)
	}
	out, err := f.outFile()
	if err != nil {
		return usage(err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	signal.Ignore(unix.SIGPIPE)  // a closed pipe at stderr must not end the survey before it has cleaned up

	p := newProgress(cmd.ErrOrStderr())
	for _, n := range notes {
		p.note("skipped " + n)
	}
	for _, name := range c.Require {
		if f.workloads == nil && len(c.Probes) > 0 && !slices.Contains(c.Probes, name) {
			p.note("required, but not among the probes to run, so unproven: " + name)
		}
	}
	var there survey.Elsewhere
	missing := ""
	if f.fleet != nil {
		met, late, err := f.fleet.gather(ctx, cmd, p)
		if err != nil {
			return err
		}
		defer met.Close()
		targets, there, missing = [][]string{met.Target()}, met, late
	}
	if len(targets) == 0 {
		return cannotRun(errors.New("no filesystem here can be written; name a directory"))
	}
	file, runErr := survey.Run(ctx, survey.Options{
		Targets: targets, Config: c, Version: version, Progress: p.hooks(),
		Elsewhere: there, BenchOnly: f.workloads != nil, Protocols: f.protocols, Full: f.full, Times: f.times, Draw: drawBeside(out, p),
	})
	p.close()
	if file == nil {
		return explain(runErr)
	}
	file.Incomplete = cmp.Or(file.Incomplete, missing)
	if f.anonymize {
		file.Anonymize()
	}
	if runErr != nil && len(file.Targets) == 0 {
		return explain(runErr)
	}
	if err := errors.Join(explain(runErr), f.write(cmd, file, out)); err != nil {
		return err
	}
	if file.Incomplete != "" {
		p.note(file.Incomplete + ": the result is incomplete")
	}
	if f.workloads != nil {
		return decided(survey.DecideBench(file, c.Require))
	}
	return decided(survey.Decide(file, c.Require))
}

// drawBeside saves the drawing of a history that no sequential order explains beside the result file.
func drawBeside(out string, p *progress) func(workload, protocol string, html []byte) {
	if out == "" {
		return nil
	}
	return func(workload, protocol string, html []byte) {
		name := fmt.Sprintf("%s-%s-%s.html", strings.TrimSuffix(out, ".json"), workload, strings.ReplaceAll(protocol, "/", "-"))
		if err := os.WriteFile(name, html, 0o644); err != nil {
			p.note("drawing of a history: " + err.Error())
			return
		}
		p.note("a history that no sequential order explains: " + name)
	}
}

// settings is the configuration with the flags over it.
func (f *surveyFlags) settings(cmd *cobra.Command, names []string) (config.Config, error) {
	c, err := config.Named(f.config)
	if f.config != "quick" && f.config != "full" {
		c, err = config.Load(f.config)
	}
	if err != nil {
		return c, err
	}
	if f.budget != 0 || cmd.Flags().Changed("budget") {
		c.Budget = f.budget
	}
	if cmd.Flags().Changed("max-wait") {
		c.MaxWait = f.maxWait
	}
	if f.require != nil {
		c.Require = f.require
	}
	if f.seed != 0 {
		c.Seed = f.seed
	}
	if f.workloads != nil {
		c.Workloads, c.Trials = f.workloads, f.trials
		c.DeathsOf = nil
	}
	if names != nil {
		c.Probes, c.Workloads = names, nil
		if f.require == nil {
			c.Require = names
		}
	}
	for _, name := range c.Probes {
		if err := known(name); err != nil {
			return c, err
		}
	}
	for _, name := range c.Require {
		if err := decides(name); err != nil {
			return c, err
		}
	}
	if err := f.benched(&c); err != nil {
		return c, err
	}
	return c, c.Validate()
}

// known objects to the name of a probe that does not exist, and offers the nearest.
func known(name string) error {
	if _, ok := probes.Find(name); ok {
		return nil
	}
	return unknown("probe", name, probeNames())
}

func probeNames() []string {
	var names []string
	for _, p := range probes.All {
		names = append(names, p.Name)
	}
	return names
}

// decides objects to what can decide nothing: the name of neither a protocol nor a promise.
func decides(name string) error {
	var names []string
	for _, s := range engine.Protocols {
		names = append(names, s.Name)
	}
	names = append(names, probeNames()...)
	if slices.Contains(names, name) {
		return nil
	}
	return unknown("protocol or promise", name, names)
}

// targets are the routes of each directory.
func (f *surveyFlags) targets(dirs []string) ([][]string, error) {
	var targets [][]string
	for _, d := range dirs {
		if d == "" {
			return nil, errors.New("an empty name is no directory")
		}
		targets = append(targets, []string{d})
	}
	for _, r := range f.routes {
		dir, other, ok := strings.Cut(r, "=")
		if !ok || dir == "" || other == "" {
			return nil, fmt.Errorf("--route %s: must be DIR=OTHER", r)
		}
		i := slices.IndexFunc(targets, func(t []string) bool { return filepath.Clean(t[0]) == filepath.Clean(dir) })
		if i < 0 {
			i = len(targets)
			targets = append(targets, []string{dir})
		}
		targets[i] = append(targets[i], other)
	}
	return targets, nil
}

// outFile is where the result goes; that it can be written is known before the survey, not after.
func (f *surveyFlags) outFile() (string, error) {
	if f.out == "-" {
		return "", nil
	}
	out := f.out
	if out == "" {
		host, err := os.Hostname()
		if err != nil || f.anonymize {
			host = "host"
		}
		out = fmt.Sprintf("claimbench-%s-%s.json", host, time.Now().UTC().Format("20060102T150405Z"))
	}
	dir := filepath.Dir(out)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return "", fmt.Errorf("result file %s: directory %s: %w; name another with --out, or --out - for none", out, dir, err)
	}
	if info, err := os.Stat(out); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("result file %s: is there and is no file; name another with --out, or --out - for none", out)
	}
	return out, nil
}

func (f *surveyFlags) write(cmd *cobra.Command, file *result.File, out string) error {
	var saved, printed error
	if out != "" {
		saved = file.Save(out)
	}
	w := cmd.OutOrStdout()
	if f.json {
		printed = report.JSON(w, []*result.File{file})
	} else {
		printed = report.Text(w, []*result.File{file}, textOptions(w, f.verbose))
	}
	if saved == nil && out != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "result file:", out)
	}
	if err := errors.Join(saved, printed); err != nil {
		return cannotRun(err)
	}
	return nil
}

// explain says what to do about each target that could not be surveyed. A name that is no directory is usage; what
// the machine refuses is not.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, explain(e))
		}
		return errors.Join(all...)
	}
	var t *survey.TargetError
	if !errors.As(err, &t) {
		if errors.Is(err, unix.EACCES) {
			err = fmt.Errorf("%w; contenders are this program, started again: its file must be executable, and its mount not noexec", err)
		}
		return cannotRun(err)
	}
	switch {
	case errors.Is(t.Err, fs.ErrNotExist) && !t.Entered:
		return usage(fmt.Errorf("%s: no such directory; make it first", t.Path))
	case errors.Is(t.Err, fs.ErrNotExist):
		return cannotRun(fmt.Errorf("%s: what is made there is not there: the directory was removed meanwhile, or its filesystem is not for files; name another", t.Path))
	case errors.Is(t.Err, unix.ENOTDIR) && !t.Entered:
		return usage(fmt.Errorf("%s: not a directory; name the directory that the claims will be in", t.Path))
	case errors.Is(t.Err, unix.EROFS):
		return cannotRun(fmt.Errorf("%s: the filesystem is read-only; remount it, or name another directory", t.Path))
	case errors.Is(t.Err, fs.ErrPermission):
		return cannotRun(fmt.Errorf("%s: not writable by this user; change its mode or owner, or name another directory", t.Path))
	case errors.Is(t.Err, unix.ENOSPC), errors.Is(t.Err, unix.EDQUOT):
		return cannotRun(fmt.Errorf("%s: the filesystem or quota is full; free some space there", t.Path))
	}
	return cannotRun(err)
}
