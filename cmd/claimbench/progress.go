package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/survey"
)

// A progress shows how far a survey is: bars on a terminal, a line per finding elsewhere.
type progress struct {
	w       io.Writer
	bars    *mpb.Progress // nil where there is no terminal
	bar     *mpb.Bar
	current atomic.Value // string: the probe that runs; the bars are drawn by another goroutine
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w}
	p.current.Store("")
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(30))
	}
	return p
}

func (p *progress) hooks() survey.Progress {
	return survey.Progress{Target: p.target, Probe: p.probe, Found: p.found, Benched: p.benched, Note: p.note, Ended: p.ended}
}

func (p *progress) target(name string, n int) {
	if p.bars == nil {
		fmt.Fprintf(p.w, "%s: %d steps\n", name, n)
		return
	}
	p.bar = p.bars.New(int64(n), mpb.BarStyle(),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(filepath.Base(name)+" ")),
		mpb.AppendDecorators(decor.CountersNoUnit(" %d/%d "), decor.Any(func(decor.Statistics) string { return p.current.Load().(string) })))
}

func (p *progress) probe(_, probe string) { p.current.Store(probe) }

func (p *progress) found(name string, f *result.Finding) {
	if p.bar == nil {
		fmt.Fprintf(p.w, "%s: %s: %s\n", name, f.Promise, f.Verdict)
		return
	}
	p.bar.Increment()
}

func (p *progress) benched(name string, rows []result.Bench) {
	if p.bar != nil {
		p.bar.Increment()
		return
	}
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(p.w, "%s: %s: %s: %d trials, %d duplicates, %d missed\n", name, r.Workload, r.Protocol, r.Trials, r.Duplicates, r.Missed)
	}
}

func (p *progress) note(message string) {
	if p.bars == nil {
		fmt.Fprintln(p.w, message)
		return
	}
	fmt.Fprintln(p.bars, message)
}

func (p *progress) ended(string, *result.Target) {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bar = nil
	}
}

// close leaves the terminal clean.
func (p *progress) close() {
	if p.bars == nil {
		return
	}
	p.ended("", nil)
	p.bars.Wait()
}
