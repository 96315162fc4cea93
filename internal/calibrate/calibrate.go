// Package calibrate shows what the probes find, how fast, and how often they cry wolf: it plants faults and looks who
// sees them.
//
// It has four parts. Diluted operations need no privilege: what contenders race is done wrongly in a few rounds.
// Exhibits are filesystems with faults; good filesystems have none that anybody knows of, so that whatever is found on
// them is a false alarm; and the engine's protocols run on the faulty ones, where none that was called safe may lose
// work. The judging (judge.go) is pure: it sees what a file holds, and nothing else.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/claimbench/claimbench/internal/facts"
	"github.com/claimbench/claimbench/internal/museum"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/survey"
	"github.com/claimbench/claimbench/probes"
)

// Options say what to calibrate, and how thoroughly.
type Options struct {
	Tool     result.Tool
	Dir      string   // where the in-process part works; "" is /dev/shm, or else the temporary directory
	Parts    []string // none is all
	Seed     uint64   // not 0
	Quick    bool
	Sizes    *Sizes // nil is those of Quick
	Exhibits []museum.Exhibit
	Progress func(line string)
}

// Ops is the table of operations that contenders must be given. It begins with that of a survey.
func Ops() []race.Op { return append(survey.Ops(), probes.DilutedOps()...) }

// contenders is how many processes stand ready: storm needs them.
const contenders = 16

// hangAfter is longer than a survey's: a filesystem served by this process answers late on a busy machine.
const hangAfter = 5 * time.Second

// Run calibrates. The file holds what was measured until then, whatever the error; an interruption is none.
func Run(ctx context.Context, o Options) (f *File, err error) {
	host, err := facts.ReadHost()
	if err != nil {
		return nil, err
	}
	s := fullSizes
	switch {
	case o.Sizes != nil:
		s = *o.Sizes
	case o.Quick:
		s = quickSizes
	}
	f = &File{
		Schema: Schema, Tool: o.Tool, Started: time.Now().UTC(), Seed: o.Seed, Quick: o.Quick, Host: host, Sizes: s,
	}
	r := &run{Options: o, file: f, ctx: ctx, size: s}
	err = r.all()
	f.DurationS = time.Since(f.Started).Seconds()
	if ctx.Err() != nil {
		f.Incomplete, err = "interrupted", nil
	}
	return f, err
}

// A run is a calibration under way.
type run struct {
	Options
	file  *File
	ctx   context.Context
	size  Sizes
	line  *race.Line
	place string // a directory of its own, in which mounts are made
	seeds uint32
	rooms int
}

// A part of a calibration.
type part struct {
	name  string
	needs func() string // what is missing; "" is nothing
	run   func(*run) error
}

func parts() []part {
	return []part{
		{"dilution", missingForContention, (*run).dilutions},
		{"exhibits", missingForFUSE, (*run).exhibits},
		{"good", missingForMounts, (*run).goodOnes},
		{"engine", missingForFUSE, (*run).engine},
	}
}

// Parts are the names of the parts, in their order.
func Parts() (names []string) {
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

func (r *run) all() (err error) {
	place, remove, err := r.workdir(os.TempDir())
	if err != nil {
		return err
	}
	r.place = place
	defer func() { err = errors.Join(err, remove()) }()
	if r.line, err = race.Start(race.Config{Ops: Ops(), Contenders: contenders, HangAfter: hangAfter, Seed: r.Seed}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.line.Close()) }()
	for _, p := range parts() {
		if r.ctx.Err() != nil {
			return nil
		}
		if !r.chosen(p.name) {
			continue
		}
		if why := p.needs(); why != "" {
			r.lack(p.name, why)
			continue
		}
		if err := p.run(r); err != nil && r.ctx.Err() == nil {
			r.lack(p.name, firstLine(err.Error())) // what it has measured stays
		}
	}
	return nil
}

// workdir is a directory of claimbench's own.
func (r *run) workdir(in string) (dir string, remove func() error, err error) {
	dir, remove, notes, err := survey.Workdir(in)
	for _, n := range notes {
		r.say("%s", n)
	}
	return dir, remove, err
}

func (r *run) chosen(part string) bool {
	return len(r.Parts) == 0 || slices.Contains(r.Parts, part)
}

// lack notes what could not be run, and why.
func (r *run) lack(what, why string) {
	r.file.Missing = append(r.file.Missing, Missing{what, why})
	r.say("%s: not run: %s", what, why)
}

func (r *run) say(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}

// nextSeed is another for each planting.
func (r *run) nextSeed() uint32 {
	r.seeds++
	return uint32(r.Seed)*2654435761 + r.seeds
}

// missingForMounts says what a machine lacks on which nothing can be mounted.
func missingForMounts() string {
	switch why := missingForContention(); {
	case os.Geteuid() != 0:
		return "this user is not root, and filesystems cannot be mounted"
	case why != "":
		return why
	}
	return mountRefused()
}

// missingForContention says what a machine lacks on which nobody can race.
func missingForContention() string {
	if runtime.NumCPU() < 2 {
		return "contention needs two CPUs"
	}
	return ""
}

// missingForFUSE says what a machine lacks on which faulty filesystems cannot be mounted.
func missingForFUSE() string {
	if why := missingForMounts(); why != "" {
		return why
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0) // a container may have the name without the device
	if err != nil {
		return err.Error() + " (modprobe fuse; a container must be given the device)"
	}
	_ = f.Close()
	return ""
}
