package calibrate

import (
	"errors"
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
		if slices.Contains(slow, name) {
			d.P = r.size.SlowP
		}
		err := r.dilute(dir, p, &d, &survey)
		if d.Rare.Runs > 0 {
			r.file.Diluted = append(r.file.Diluted, d)
		}
		if err != nil || r.ctx.Err() != nil {
			return err
		}
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

// dilute measures one probe: with a rare violation, with none, with enough to learn how often one is seen, and with as
// few as should still be found.
func (r *run) dilute(dir string, p probes.Probe, d *Diluted, survey *config.Config) error {
	once := p
	once.Weight = 1 // the time is that of Sizes
	usual := surveyBench(survey)
	err := r.plant(r.size.RareRuns, dir, once, d.P, rareBench(r.size.RareWithinS), &d.Rare)
	if err == nil {
		err = r.plain(dir, p, usual, d)
	}
	if err == nil {
		err = r.learn(dir, p, usual, d)
	}
	if d.Bad > 0 {
		d.LeastP = leastP(d.rounds(), float64(d.BadSeen)/float64(d.Bad))
	}
	if err == nil && d.LeastP > 0 {
		// As many rounds as are claimed to be enough, however long they take on a machine that is busy meanwhile.
		usual.Rounds, usual.Time = d.rounds(), 5*usual.Time
		err = r.plant(r.size.PowerRuns, dir, p, d.LeastP, usual, &d.Least)
	}
	return err
}

// plant counts in how many of some runs a violation is caught.
func (r *run) plant(runs int, dir string, p probes.Probe, rare float64, b probes.Bench, s *Seen) error {
	for range runs {
		w := &watcher{dilution: probes.Dilution{P: rare, Seed: r.nextSeed()}, stop: true}
		f, err := r.watched(dir, p, w, b)
		if err != nil || r.ctx.Err() != nil {
			return err
		}
		s.add(w.seen > 0 && f.Verdict == result.Broken, w.contested, w.took.Seconds())
	}
	return nil
}

// plain plants nothing.
func (r *run) plain(dir string, p probes.Probe, b probes.Bench, d *Diluted) error {
	for range min(budgetRuns, r.size.PowerRuns) {
		w := new(watcher)
		f, err := r.watched(dir, p, w, b)
		if err != nil || r.ctx.Err() != nil {
			return err
		}
		d.Contested = append(d.Contested, w.contested)
		if f.Verdict == result.Broken {
			d.Alarms++
		}
	}
	return nil
}

// learn plants violations until enough of the bad rounds are known.
func (r *run) learn(dir string, p probes.Probe, b probes.Bench, d *Diluted) error {
	share := badShare
	if slices.Contains(slow, p.Name) {
		share = badShareSlow
	}
	for i := 0; i < min(badRuns, r.size.PowerRuns) && d.Bad < enoughBad; i++ {
		w := &watcher{dilution: probes.Dilution{P: share, Seed: r.nextSeed()}}
		if _, err := r.watched(dir, p, w, b); err != nil || r.ctx.Err() != nil {
			return err
		}
		d.Bad, d.BadSeen = d.Bad+w.bad, d.BadSeen+w.badSeen
	}
	return nil
}

// rounds are the contested rounds that a survey's budget amounts to, at least.
func (d *Diluted) rounds() int {
	if len(d.Contested) == 0 {
		return 0
	}
	return slices.Min(d.Contested)
}

// rareBench has eight contenders go on until they see something.
func rareBench(withinS float64) probes.Bench {
	b := smallBench(8)
	b.Rounds, b.Time, b.Spare = 1<<30, time.Duration(withinS*float64(time.Second)), 0
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
