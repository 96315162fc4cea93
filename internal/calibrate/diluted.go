package calibrate

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/facts"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// badShare is planted to learn how often a bad round is seen: seldom enough for a probe to go through all that it does,
// and for the start offsets to stay those of good rounds. Slow probes have few rounds.
const (
	badShare     = 0.01
	badShareSlow = 0.05
)

// enoughBad are for the share that is seen; a slow probe is run up to badRuns times to have them.
const (
	enoughBad = 150
	badRuns   = 6
)

// slow are the probes whose contenders read and write, or wait for each other.
var slow = []string{"rename-replace", "publish", "lock-coherence"}

// budgetRuns are with nothing planted. The one with the fewest contested rounds counts.
const budgetRuns = 3

// dilutions plants rare violations in what is raced, in a plain directory.
func (r *run) dilutions() (err error) {
	dir, remove, err := r.workdir(r.plainDir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	fs := "unknown"
	if route, err := facts.ReadRoute(dir); err == nil {
		fs = route.FSType
	}
	survey, err := config.Named("quick")
	if err != nil {
		return err
	}
	names, wrongs := probes.Dilutable()
	for i, name := range names[:min(len(names), r.size.RareProbes)] {
		p, _ := probes.Find(name)
		d := Diluted{Probe: name, Wrong: wrongs[i], Filesystem: fs, P: r.size.RareP}
		if contains(slow, name) {
			d.P = r.size.SlowP
		}
		if err := r.dilute(dir, p, &d, &survey); err != nil || r.ctx.Err() != nil {
			return err
		}
		r.file.Diluted = append(r.file.Diluted, d)
		r.say("dilution: %s: %d of %d caught at %g per round; least %.2g, of which %d of %d caught", name, d.Rare.Caught, d.Rare.Runs, d.P, d.LeastP, d.Least.Caught, d.Least.Runs)
	}
	return nil
}

// plainDir is where nothing needs to be mounted.
func (r *run) plainDir() string {
	if r.Dir != "" {
		return r.Dir
	}
	if unix.Access("/dev/shm", unix.W_OK|unix.X_OK) == nil {
		return "/dev/shm"
	}
	return os.TempDir()
}

// dilute measures one probe.
func (r *run) dilute(dir string, p probes.Probe, d *Diluted, survey *config.Config) error {
	once := p
	once.Weight = 1 // the time is that of Sizes
	for range r.size.RareRuns {
		w := &watcher{dilution: probes.Dilution{P: d.P, Seed: r.nextSeed()}, stop: true}
		if _, err := r.watched(dir, once, w, r.rareBench()); err != nil || r.ctx.Err() != nil {
			return err
		}
		d.Rare.add(w.seen > 0, w.contested, w.took.Seconds())
	}
	usual := surveyBench(survey)
	for range min(budgetRuns, r.size.PowerRuns) {
		w := new(watcher)
		f, err := r.watched(dir, p, w, usual)
		if err != nil || r.ctx.Err() != nil {
			return err
		}
		d.Contested = append(d.Contested, w.contested)
		if f.Verdict == result.Broken {
			d.Alarms++
		}
	}
	share := badShare
	if contains(slow, p.Name) {
		share = badShareSlow
	}
	for i := 0; i < badRuns && d.Bad < min(enoughBad, enoughBad*r.size.PowerRuns/10); i++ {
		w := &watcher{dilution: probes.Dilution{P: share, Seed: r.nextSeed()}}
		if _, err := r.watched(dir, p, w, usual); err != nil || r.ctx.Err() != nil {
			return err
		}
		d.Bad, d.BadSeen = d.Bad+w.bad, d.BadSeen+w.badSeen
	}
	if d.Bad > 0 {
		d.LeastP = leastP(d.rounds(), float64(d.BadSeen)/float64(d.Bad))
	}
	return r.verify(dir, p, d, usual)
}

// rounds are the contested rounds that a survey's budget amounts to, at least.
func (d *Diluted) rounds() int {
	if len(d.Contested) == 0 {
		return 0
	}
	return slices.Min(d.Contested)
}

// verify plants the smallest probability that is said to be found.
func (r *run) verify(dir string, p probes.Probe, d *Diluted, usual probes.Bench) error {
	if d.LeastP == 0 {
		return nil
	}
	for range r.size.PowerRuns {
		w := &watcher{dilution: probes.Dilution{P: d.LeastP, Seed: r.nextSeed()}, stop: true}
		if _, err := r.watched(dir, p, w, usual); err != nil || r.ctx.Err() != nil {
			return err
		}
		d.Least.add(w.seen > 0, w.contested, w.took.Seconds())
	}
	return nil
}

// rareBench has eight contenders go on until they see something.
func (r *run) rareBench() probes.Bench {
	b := smallBench(8)
	b.Rounds, b.Time, b.Spare = 1<<30, time.Duration(r.size.RareWithinS*float64(time.Second)), 0
	return b
}

// surveyBench is a probe's share of a survey.
func surveyBench(c *config.Config) probes.Bench {
	return probes.Bench{
		Scope: result.ScopeProcess, Contenders: c.Contenders, Rounds: c.Rounds, Time: c.ProbeTime,
		ScanShare: c.ScanShare, ColdRounds: c.ColdRounds, ColdPause: c.ColdPause, MinProof: c.MinContested,
		HoldWait: c.ReleaseWait, MaxWait: c.MaxWait,
	}
}

// watched runs a probe with something planted.
func (r *run) watched(dir string, p probes.Probe, w *watcher, b probes.Bench) (f result.Finding, err error) {
	err = r.inside(p.Name, []string{dir}, func() {
		b.Line, b.Routes = r.line, 1
		b.Dilution, b.Watch = w.dilution, w.watch
		w.began = time.Now()
		f = probes.Run(r.ctx, p, b)
	})
	if err == nil && f.Verdict == result.Unproven && r.ctx.Err() == nil && len(f.Errnos) > 0 && f.Rounds == 0 {
		err = fmt.Errorf("%s: %s", p.Name, f.Reason)
	}
	return f, err
}

// A watcher counts what a probe races.
type watcher struct {
	dilution  probes.Dilution
	stop      bool // at the first violation
	began     time.Time
	contested int           // until the first violation where it stops there
	bad       int           // contested rounds that were done wrongly
	badSeen   int           // of them, violated
	seen      int           // violated, contested or not
	took      time.Duration // to the first violation
}

func (w *watcher) watch(round *race.Round, contested, violated bool) (more bool) {
	if w.stop && w.seen > 0 {
		return false
	}
	wrong := w.dilution.Wrong(round.Number)
	if contested {
		w.contested++
	}
	if contested && wrong {
		w.bad++
	}
	if contested && wrong && violated {
		w.badSeen++
	}
	if violated {
		if w.seen++; w.seen == 1 {
			w.took = time.Since(w.began)
		}
	}
	return !w.stop || w.seen == 0
}
