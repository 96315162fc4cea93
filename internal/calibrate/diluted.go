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
	all := probes.Dilutables()
	for _, x := range all[:min(len(all), r.size.RareProbes)] {
		d := Diluted{Probe: x.Probe, Wrong: x.Wrong, Filesystem: fs, P: r.size.RareP}
		if slices.Contains(slow, x.Probe) {
			d.P = r.size.SlowP
		}
		err := newPlanter(r, dir, x, &d).all(&survey)
		if d.Rare.Runs > 0 {
			r.file.Diluted = append(r.file.Diluted, d)
		}
		if err != nil || r.ctx.Err() != nil {
			return err
		}
		r.say("dilution: %s: %d of %d caught at %g per round; least %.2g, of which %d of %d caught", d.Probe, d.Rare.Caught, d.Rare.Runs, d.P, d.LeastP, d.Least.Caught, d.Least.Runs)
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

// A planter dilutes what one probe races.
type planter struct {
	*run
	dir    string
	p      probes.Probe // without its weight: the time of a bench is all it has
	weight int
	races  int // that a bench's rounds are wanted of
	d      *Diluted
}

func newPlanter(r *run, dir string, x probes.Dilutable, d *Diluted) *planter {
	p, _ := probes.Find(x.Probe)
	weight := max(1, p.Weight)
	p.Weight = 1
	return &planter{run: r, dir: dir, p: p, weight: weight, races: x.Races, d: d}
}

// all measures the probe: with a rare violation, with none, with enough to learn how often one is seen, and with as few
// as should still be found.
func (l *planter) all(survey *config.Config) error {
	usual := surveyBench(survey)
	usual.Time *= time.Duration(l.weight)
	err := l.plant(l.size.RareRuns, l.d.P, rareBench(l.size.RareWithinS), &l.d.Rare)
	if err == nil {
		err = l.plain(usual)
	}
	if err == nil {
		err = l.learn(usual)
	}
	if l.d.Bad > 0 {
		l.d.LeastP = leastP(l.d.rounds(), float64(l.d.BadSeen)/float64(l.d.Bad))
	}
	if err == nil && l.d.LeastP > 0 {
		err = l.verify(usual)
	}
	return err
}

// verify plants what is claimed to be found: in as many contested rounds as are claimed to be enough, however long they
// take on a machine that is busy meanwhile. What is done wrongly takes longer, and is contested more often, than what is
// not: fewer rounds are planted, so that the contested ones among them are as many as is claimed.
func (l *planter) verify(b probes.Bench) error {
	b.Rounds, b.Time = max(1, l.d.rounds()/l.races), 5*b.Time
	return l.plant(l.size.PowerRuns, l.d.LeastP*l.d.thinned(), b, &l.d.Least)
}

// plant counts in how many of some runs a violation is caught within the time.
func (l *planter) plant(runs int, rare float64, b probes.Bench, s *Seen) error {
	for range runs {
		w := &watcher{dilution: probes.Dilution{P: rare, Seed: l.nextSeed()}, stop: true}
		f, err := l.watched(w, b)
		if err != nil || l.ctx.Err() != nil {
			return err
		}
		s.add(w.seen > 0 && w.took <= b.Time && f.Verdict == result.Broken, w.contested, w.took.Seconds())
	}
	return nil
}

// plain plants nothing.
func (l *planter) plain(b probes.Bench) error {
	for range min(budgetRuns, l.size.PowerRuns) {
		w := new(watcher)
		f, err := l.watched(w, b)
		if err != nil || l.ctx.Err() != nil {
			return err
		}
		l.d.Contested = append(l.d.Contested, w.contested)
		if accuses(f.Verdict) {
			l.d.Alarms++
		}
	}
	return nil
}

// learn plants violations until enough of the bad rounds are known.
func (l *planter) learn(b probes.Bench) error {
	share := badShare
	if slices.Contains(slow, l.p.Name) {
		share = badShareSlow
	}
	for i := 0; i < min(badRuns, l.size.PowerRuns) && l.d.Bad < enoughBad; i++ {
		w := &watcher{dilution: probes.Dilution{P: share, Seed: l.nextSeed()}}
		if _, err := l.watched(w, b); err != nil || l.ctx.Err() != nil {
			return err
		}
		l.d.Bad, l.d.BadSeen, l.d.BadDue = l.d.Bad+w.bad, l.d.BadSeen+w.badSeen, l.d.BadDue+share*float64(w.contested)
	}
	return nil
}

// thinned is the part of the rounds to plant for each contested one to be bad with the probability that was meant. It is
// never above 1.
func (d *Diluted) thinned() float64 {
	if d.Bad == 0 {
		return 1
	}
	return min(1, d.BadDue/float64(d.Bad))
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

// watched runs the probe with something planted.
func (l *planter) watched(w *watcher, b probes.Bench) (f result.Finding, err error) {
	w.late = l.p.Name == "lock-coherence"
	err = l.inside(l.p.Name, []string{l.dir}, func() {
		b.Line, b.Routes = l.line, 1
		b.Dilution, b.Watch = w.dilution, w.watch
		w.began = time.Now()
		f = probes.Run(l.ctx, l.p, b)
	})
	if w.dilution.P > 0 {
		l.d.Stray += w.stray
	}
	return f, err
}

// A watcher counts what a probe races.
type watcher struct {
	dilution  probes.Dilution
	stop      bool // at the first violation that was planted
	late      bool // a round that was done wrongly can show in the next one: an update that was lost
	before    bool // the last round was done wrongly
	began     time.Time
	contested int           // until the first violation where it stops there
	bad       int           // contested rounds that were done wrongly
	badSeen   int           // of them, violated
	seen      int           // violated as planted, contested or not
	stray     int           // violated where nothing was planted
	took      time.Duration // to the first violation that was planted
}

func (w *watcher) watch(round *race.Round, contested, violated bool) (more bool) {
	if w.stop && w.seen > 0 {
		return false
	}
	wrong := w.dilution.Wrong(round.Number)
	planted := wrong || w.late && w.before
	w.before = wrong
	if contested {
		w.contested++
	}
	if contested && wrong {
		w.bad++
	}
	if contested && wrong && violated {
		w.badSeen++
	}
	switch {
	case !violated:
	case !planted:
		w.stray++
	default:
		if w.seen++; w.seen == 1 {
			w.took = time.Since(w.began)
		}
	}
	return !w.stop || w.seen == 0
}
