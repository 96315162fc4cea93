package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/calibrate"
	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/museum"
	"github.com/claimbench/claimbench/internal/survey"
)

type calibrateFlags struct {
	dir, format, output, match, keep string
	parts                            []string
	seed                             uint64
	quick                            bool
}

func calibrateCommand() *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Show what a survey finds, how fast, and how often it cries wolf",
		Long: `Plant faults, and look which are found:

  dilution   what contenders race in a plain directory is done wrongly in a few rounds; needs no privilege
  exhibits   filesystems with planted faults, each shown to the probe that must find it; needs root and /dev/fuse
  good       filesystems that keep their promises: whatever is found there is a false alarm; needs root
  engine     claim protocols on the faulty filesystems: none that a survey calls safe may lose work; needs both

Exit status: 0 everything was caught, no false alarm, no escape; 1 something was missed, a false alarm or an escape;
3 a part could not be run, or nothing was measured; 2 usage error, 4 nothing could be run.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "dir", "", "where the part dilution works (default /dev/shm, or else the temporary directory)")
	fl.StringVar(&f.format, "format", "table", strings.Join(calibrate.Formats, ", "))
	fl.StringVar(&f.output, "output", "", "file to write it to, in place of stdout")
	fl.StringSliceVar(&f.parts, "part", nil, "parts to run (default all): "+strings.Join(calibrate.Parts(), ", "))
	fl.StringVar(&f.keep, "keep", "", "an earlier calibration in JSON: what --part leaves out is taken from it")
	fl.StringVar(&f.match, "match", "", "only exhibits of which the probe, the name or the faults contain this")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of everything random; 0 draws one")
	fl.BoolVar(&f.quick, "quick", false, "a selection, once, in less than a minute")
	return cmd
}

func (f *calibrateFlags) run(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	if os.Getenv(ownMounts) == "" {
		sweep(cmd.ErrOrStderr())
	}
	if ran, err := inOwnMounts(cmd, f.args()); ran {
		return err
	}
	var old *calibrate.File
	if f.keep != "" {
		var err error
		if old, err = calibrate.Load(f.keep); err != nil {
			return usage(fmt.Errorf("--keep: %w", err))
		}
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	signal.Ignore(unix.SIGPIPE)  // a closed pipe at stderr must not end it before it has cleaned up
	if f.seed == 0 {
		f.seed = rand.Uint64N(1<<53-1) + 1 // exact in every JSON reader
	}
	file, err := calibrate.Run(ctx, calibrate.Options{
		Tool: survey.Tool(version), Dir: f.dir, Parts: f.parts, Seed: f.seed, Quick: f.quick, Exhibits: f.exhibits(),
		Progress: func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) },
	})
	if file == nil {
		return cannotRun(err)
	}
	if old != nil {
		err = errors.Join(err, keepFrom(file, old, f.parts, f.keep))
	}
	if err := errors.Join(err, f.write(cmd, file)); err != nil {
		return cannotRun(err)
	}
	if status := file.Status(); status != 0 {
		return &statusError{status: status}
	}
	return nil
}

// sweep unmounts what an earlier run that was killed has left, and says so.
func sweep(w io.Writer) {
	swept, err := faultfs.Sweep()
	for _, at := range swept {
		fmt.Fprintln(w, "unmounted, its process is dead: "+at)
	}
	if err != nil {
		fmt.Fprintln(w, err)
	}
}

func keepFrom(file, old *calibrate.File, parts []string, name string) error {
	if err := file.Keep(old, parts); err != nil {
		return fmt.Errorf("--keep %s: %w", name, err)
	}
	return nil
}

// exhibits are those that were asked for. The others are not shown to a probe.
func (f *calibrateFlags) exhibits() (some []museum.Exhibit) {
	for _, x := range slices.Concat(museum.Planted, museum.Reported) {
		if x.Probe != "" && strings.Contains(x.Probe+"\x00"+x.Name+"\x00"+x.Faults, f.match) {
			some = append(some, x)
		}
	}
	return some
}

// args are the command line of these flags.
func (f *calibrateFlags) args() []string {
	args := []string{
		"calibrate", "--dir=" + f.dir, "--format=" + f.format, "--output=" + f.output, "--match=" + f.match, "--keep=" + f.keep,
		"--seed=" + strconv.FormatUint(f.seed, 10), "--quick=" + strconv.FormatBool(f.quick),
	}
	for _, p := range f.parts {
		args = append(args, "--part="+p)
	}
	return args
}

func (f *calibrateFlags) check() error {
	if !slices.Contains(calibrate.Formats, f.format) {
		return unknown("format", f.format, calibrate.Formats)
	}
	if f.dir != "" {
		if info, err := os.Stat(f.dir); err != nil {
			return fmt.Errorf("--dir %s: %w; name a directory that is there", f.dir, errors.Unwrap(err))
		} else if !info.IsDir() {
			return fmt.Errorf("--dir %s: not a directory", f.dir)
		}
	}
	if dir := filepath.Dir(f.output); f.output != "" && unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		return fmt.Errorf("--output %s: nothing can be written in the directory %s", f.output, dir)
	}
	if f.keep != "" && len(f.parts) == 0 {
		return errors.New("--keep without --part: all parts are run, and there is nothing to keep")
	}
	if len(f.exhibits()) == 0 {
		return fmt.Errorf("--match %q: there is no such exhibit", f.match)
	}
	for _, p := range f.parts {
		if !slices.Contains(calibrate.Parts(), p) {
			return unknown("part", p, calibrate.Parts())
		}
	}
	return nil
}

func (f *calibrateFlags) write(cmd *cobra.Command, file *calibrate.File) error {
	w := cmd.OutOrStdout()
	if f.output == "" {
		return file.Write(w, f.format, textOptions(w, false).Width)
	}
	var out bytes.Buffer
	if err := file.Write(&out, f.format, 0); err != nil {
		return err
	}
	return calibrate.Save(f.output, out.Bytes())
}
