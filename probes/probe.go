// Package probes tests, one promise at a time, whether a filesystem keeps what file claims rest on.
//
// A probe runs operations on a race.Line and turns the raw events into a finding. Measuring and judging are
// apart: what judges (evidence.go and each probe's judge function) sees only recorded rounds. Every probe runs a
// positive control, a variant known to be wrong, on the same line and target; where the control did not fire,
// the finding is unproven.
package probes

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// A Probe tests one promise. The texts are also its page in the documentation.
type Probe struct {
	Name    string // stable: appears in result files and tables
	Promise string // one sentence: what the filesystem must do
	Why     string // why a claim needs it, and what its absence has cost
	How     string // what is run, and what is compared
	Control string // what is wrong with the positive control
	Broken  string // what to do when the promise is broken
	Refused string // what to do when the filesystem refuses the operation
	Weight  int    // multiple of the time that a probe gets

	Alone      bool // nobody races: a round is one thing that is done, or one script of steps, and each is evidence
	Disposable bool // it harms the target, and is run only on one that may be harmed
	Hosts      bool // it is about several kernels, and a survey of one leaves it out

	Ops []race.Op
	Run func(context.Context, *Bench, *result.Finding)
}

// Suits says that the probe is run on a target of that scope without being named.
func (p *Probe) Suits(scope result.Scope, disposable bool) bool {
	return (disposable || !p.Disposable) && (scope == result.ScopeHost || !p.Hosts)
}

// All is every probe, in the order of tables and documentation.
var All = []Probe{
	exclCreate,
	exclCreateClones,
	mkdir,
	symlink,
	link,
	renameNoreplace,
	renameDirOccupied,
	renameAway,
	renameReplace,
	publish,

	visibility,
	pathAgreement,
	unlinkRace,
	timestamps,
	clockSkew,
	inodeReuse,
	durability,
	names,
	errnoTable,

	// A server that lets contenders wait for locks may take a survey's whole time.
	flock,
	posixLock,
	ofdLock,
	lockRelease,
	lockCoherence,
	lockRules,

	fullDisk,
}

// Ops is the table of operations that contenders must be given: those of all probes.
func Ops() []race.Op {
	var ops []race.Op
	for _, p := range All {
		ops = append(ops, p.Ops...)
	}
	return ops
}

// Find returns the probe of that name.
func Find(name string) (Probe, bool) {
	for _, p := range All {
		if p.Name == name {
			return p, true
		}
	}
	return Probe{}, false
}

// A Bench is what a probe has at hand: the contenders, in a fresh directory of the target, and how much to do.
type Bench struct {
	Line       race.Field
	Routes     int
	Scope      result.Scope
	Contenders []int         // how many race, in turn
	Rounds     int           // contested rounds wanted
	Time       time.Duration // for the whole probe
	Spare      time.Duration // more, for a slow filesystem or a busy machine, where Time is not enough to prove anything
	ScanShare  float64
	ColdRounds int
	ColdPause  time.Duration
	MinProof   int           // fewer contested rounds than this prove nothing
	HoldWait   time.Duration // how long a lock may take to be released
	MaxWait    time.Duration // how long a change may take to be seen; 0 is 5 s
	Disposable bool          // the target may be filled up

	// For calibration only.
	Dilution Dilution                                                  // of what is raced
	Watch    func(r *race.Round, contested, violated bool) (more bool) // sees each raced round; nil watches nothing
}

// Run runs one probe and judges it. The finding always has a verdict.
func Run(ctx context.Context, p Probe, b Bench) result.Finding {
	f := result.Finding{Promise: p.Name, Scope: b.Scope, Figures: map[string]float64{}}
	b.Time *= time.Duration(max(1, p.Weight))
	if p.Disposable && !b.Disposable {
		f.Verdict, f.Reason = result.Unproven, "not run: it harms the target, and the configuration does not name this one under disposable"
		f.Advice = "Name the directory under disposable in a file given with --config, if everything on its filesystem may suffer."
		return f
	}
	if p.Hosts && b.Scope != result.ScopeHost {
		f.Verdict, f.Reason = result.Unproven, "not run: it takes several kernels"
		f.Advice = "Survey several hosts: claimbench serve, and join on each."
		return f
	}
	began := time.Now()
	p.Run(ctx, &b, &f)
	if f.Control != nil {
		f.Control.Name = p.Control
	}
	f.DurationS = time.Since(began).Seconds()
	f.Advice = cmp.Or(f.Advice, advice(&p, &f))
	return f
}

func advice(p *Probe, f *result.Finding) string {
	switch f.Verdict {
	case result.Broken:
		return p.Broken
	case result.Unsupported:
		return p.Refused
	case result.Hung:
		return "An operation did not come back: look at the server, at the mount (is it hard?), and at dmesg. A claim here can wait for ever."
	case result.Unproven:
		if strings.HasPrefix(f.Reason, interrupted) {
			return "Run the survey to its end."
		}
		if p.Alone {
			return upperFirst(againAlone) + "."
		}
		return "Repeat with a larger --budget, on an idle machine, and with at least two CPUs."
	}
	return ""
}
