package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/explore"
)

// watched does what takes long, shows on a terminal for how long it has been at it, and gives up at once on Ctrl-C:
// an exploration has nothing to clean up.
func watched[T any](cmd *cobra.Command, what string, do func() T) (T, error) {
	p := newProgress(cmd.ErrOrStderr())
	if p.bars != nil {
		p.bar = p.bars.New(0, mpb.SpinnerStyle(), mpb.BarRemoveOnComplete(), mpb.BarWidth(3),
			mpb.PrependDecorators(decor.Name(what+" "), decor.Elapsed(decor.ET_STYLE_GO)))
	}
	return interruptible(cmd.Context(), p, do)
}

func interruptible[T any](parent context.Context, p *progress, do func() T) (result T, err error) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	done := make(chan T, 1)
	go func() { done <- do() }()
	select {
	case result = <-done:
	case <-ctx.Done():
		err = &statusError{3, errors.New("interrupted before the end: unproven; a bound of --preemptions makes it shorter")}
	}
	p.close()
	return result, err
}

// tabulated makes the requirement table, with a bar on a terminal and a line for each cell elsewhere.
func tabulated(cmd *cobra.Command, contenders, preemptions int) (explore.Table, error) {
	stderr := cmd.ErrOrStderr()
	p := newProgress(stderr)
	if p.bars != nil {
		p.bar = p.bars.AddBar(int64(len(engine.Protocols)*len(explore.Weaknesses)), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name("exploring ")), mpb.AppendDecorators(decor.CountersNoUnit(" %d/%d cells "), decor.Elapsed(decor.ET_STYLE_GO)))
	}
	t, err := interruptible(cmd.Context(), p, func() explore.Table {
		return explore.MakeTable(engine.Protocols, contenders, preemptions, func(c explore.Cell) { p.cell(stderr, c) })
	})
	if err == nil {
		fmt.Fprintf(stderr, "%d states that stand for %.2g schedules, %d operations, in %v\n", t.States, t.Schedules, t.Operations, t.Took)
	}
	return t, err
}

func (p *progress) cell(w io.Writer, c explore.Cell) {
	if bar := p.bar; bar != nil {
		bar.Increment()
		return
	}
	fmt.Fprintf(w, "%s, %v: %s, %d states\n", c.Protocol, c.Weakness, c.Verdict(), c.States)
}

// perform runs a schedule in the real directory.
func (f *exploreFlags) perform(cmd *cobra.Command, spec engine.Spec, sc explore.Scenario, schedule explore.Schedule) (*explore.Violation, error) {
	if err := emptyDir(f.dir); err != nil {
		return nil, err
	}
	type outcome struct {
		v   *explore.Violation
		err error
	}
	o, err := watched(cmd, "performing in "+filepath.Base(f.dir), func() outcome {
		v, err := explore.Perform(spec, sc, schedule, f.dir)
		return outcome{v, err}
	})
	if err != nil {
		return nil, err
	}
	if o.err != nil {
		return nil, cannotRun(fmt.Errorf("--dir %s: it went otherwise than on the model: %w", f.dir, o.err))
	}
	return o.v, nil
}
