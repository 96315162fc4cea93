// Package bench holds the numbers: benchmarks of the starting line and of the probes, on whatever machine runs them.
// They print figures and judge none; `make bench` runs them.
package bench_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/bench"
	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
	"github.com/claimbench/claimbench/internal/survey"
	"github.com/claimbench/claimbench/probes"
)

var soak = flag.Bool("soak", false, "run 200 surveys in search of a false alarm, not 2")

// ops is the table of the probes and the loop that they are compared with: exclusive creates of one name, and the
// unlink by whoever succeeded, without any synchronisation.
var ops = append(slices.Concat(probes.Ops(), bench.Ops()), race.Op{Name: "reference", Attempt: func(e *race.Env, ev *race.Event) unix.Errno {
	for range e.Arg {
		fd, errno := race.Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
		if errno == 0 {
			race.Close(fd)
			race.Unlink(e.Dir, e.Name(), 0)
			ev.Saw++
		}
	}
	return 0
}})

func TestMain(m *testing.M) {
	race.Contend(ops)
	bench.SetOps(func() []race.Op { return ops })
	os.Exit(m.Run())
}

// places are tmpfs and the filesystem of the temporary directory.
var places = []string{"/dev/shm", ""}

func directory(t testing.TB, place string) (dir, fstype string) {
	t.Helper()
	if place == "" {
		place = t.TempDir()
	}
	dir, err := os.MkdirTemp(place, "claimbench-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir, fsName(t, dir)
}

func fsName(t testing.TB, dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	switch st.Type {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	}
	return fmt.Sprintf("%#x", st.Type)
}

func newLine(t testing.TB, n int, dir string) *race.Line {
	t.Helper()
	line := startLine(t, n, dir)
	t.Cleanup(func() { line.Close() })
	return line
}

// startLine is for the caller to close.
func startLine(t testing.TB, n int, dir string) *race.Line {
	t.Helper()
	line, err := race.Start(race.Config{Ops: ops, Contenders: n, HangAfter: 10 * time.Second, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := line.Enter(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	return line
}

// BenchmarkContention: contested share, contested rounds per second, and the rates of tries and of successful creates
// in contested rounds as parts of those in the reference loop, which is run in turn with it, one process per CPU.
func BenchmarkContention(b *testing.B) {
	for _, place := range places {
		for _, n := range []int{2, 4, 8, 16, 40} {
			dir, fs := directory(b, place)
			b.Run(fmt.Sprintf("%s/contenders=%d", fs, n), func(b *testing.B) {
				line := newLine(b, n, dir)
				var share, rate, ofTries, ofSuccesses []float64
				for range 7 {
					t, err := line.Race(b.Context(), "open-excl", race.Plan{Contenders: n, Rounds: 1 << 30, Time: 600 * time.Millisecond, ScanShare: 0.25, ColdRounds: 16, ColdPause: time.Millisecond}, func(*race.Round) bool { return true })
					if err != nil {
						b.Fatal(err)
					}
					rounds, contested := t.Total()
					perSecond := float64(contested) / t.Elapsed.Seconds()
					share = append(share, float64(contested)/float64(rounds))
					rate = append(rate, perSecond)
					tries, successes := reference(b, line, contested, n)
					ofTries, ofSuccesses = append(ofTries, perSecond*float64(n)/tries), append(ofSuccesses, perSecond/successes)
				}
				report(b, "contested-share", share)
				report(b, "contested/s", rate)
				report(b, "of-reference-tries", ofTries)
				report(b, "of-reference-successes", ofSuccesses)
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// reference runs the loop, with as many tries as the rounds had, and returns its tries and its successful creates per
// second. Of n tries in a round exactly one succeeds; in the loop it is about every third.
func reference(b *testing.B, line *race.Line, rounds, n int) (tries, successes float64) {
	processes := min(n, line.CPUs())
	began, name := time.Now(), line.Name()
	for c := range processes {
		line.Begin(c, "reference", name, uint64(rounds*n/processes))
	}
	succeeded := uint64(0)
	for c := range processes {
		ev, err := line.Await(b.Context(), c, "reference")
		if err != nil {
			b.Fatal(err)
		}
		succeeded += ev.Saw
	}
	seconds := time.Since(began).Seconds()
	return float64(rounds*n) / seconds, float64(succeeded) / seconds
}

func report(b *testing.B, unit string, xs []float64) {
	med, lo, hi, _ := stat.Median(xs)
	b.ReportMetric(med, unit)
	b.Logf("%s: median %.4g, 95 %% interval %.4g to %.4g, n=%d", unit, med, lo, hi, len(xs))
}

// BenchmarkSensitivity: how many of 100 runs see a violation that is there, and how soon. A run starts its own
// contenders; the time counts from when they are ready.
func BenchmarkSensitivity(b *testing.B) {
	for _, c := range []struct {
		op    string
		limit time.Duration
		n     int
	}{{"stat-then-create", time.Second, 8}, {"no-lock", 100 * time.Millisecond, 8}} {
		for _, place := range places {
			dir, fs := directory(b, place)
			b.Run(c.op+"/"+fs, func(b *testing.B) {
				seen, first := 0, []float64{}
				for range 100 {
					line := startLine(b, c.n, dir)
					if ev, err := line.Do(b.Context(), 0, "make-locks", line.Name(), 0); err != nil || ev.Errno != 0 {
						b.Fatal(ev, err)
					}
					began, at := time.Now(), time.Duration(0)
					_, err := line.Race(b.Context(), c.op, race.Plan{Contenders: c.n, Rounds: 1 << 30, Time: c.limit}, func(r *race.Round) bool {
						if len(r.Winners()) > 1 {
							at = time.Since(began)
						}
						return at == 0
					})
					if err != nil {
						b.Fatal(err)
					}
					if at > 0 && at <= c.limit {
						seen, first = seen+1, append(first, float64(at.Microseconds())/1e3)
					}
					line.Close()
				}
				slices.Sort(first)
				b.ReportMetric(float64(seen), "seen-of-100")
				if len(first) > 0 {
					b.ReportMetric(first[len(first)/2], "ms-median")
					b.ReportMetric(first[len(first)-1], "ms-max")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkQuickSurvey: wall time, contested rounds of excl-create and peak memory of `claimbench survey` with the
// quick configuration, and the size of the binary.
func BenchmarkQuickSurvey(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "claimbench")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "../cmd/claimbench")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(bin)
	if err != nil {
		b.Fatal(err)
	}
	for _, place := range places {
		dir, fs := directory(b, place)
		b.Run(fs, func(b *testing.B) {
			out := filepath.Join(b.TempDir(), "result.json")
			cmd := exec.Command(bin, "survey", "--out", out, dir)
			began := time.Now()
			if text, err := cmd.CombinedOutput(); err != nil {
				b.Logf("%v\n%s", err, text)
			}
			wall := time.Since(began)
			f, err := result.Load(out)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(wall.Seconds(), "s-wall")
			b.ReportMetric(float64(f.Targets[0].Findings[0].Contested), "contested-excl-create")
			b.ReportMetric(float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, "MiB-peak")
			b.ReportMetric(float64(info.Size())/(1<<20), "MiB-binary")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// Surveys of good filesystems must never say broken or hung. Unproven is allowed: a busy machine may not give
// enough contested rounds.
func TestNoFalseAlarm(t *testing.T) {
	surveys := 2
	if *soak {
		surveys = 200
	}
	c, err := config.Named("quick")
	if err != nil {
		t.Fatal(err)
	}
	c.Workloads = nil // the bench has its own tests
	c.ProbeTime, c.Rounds, c.HangAfter, c.Budget = 100*time.Millisecond, 4000, time.Minute, time.Hour
	verdicts, contested := map[result.Verdict]int{}, 0
	for i := range surveys {
		dir, fs := directory(t, places[i%len(places)])
		f, err := survey.Run(t.Context(), survey.Options{Targets: [][]string{{dir}}, Config: c, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range f.Targets[0].Findings {
			verdicts[finding.Verdict]++
			contested += finding.Contested
			if finding.Verdict == result.Broken || finding.Verdict == result.Hung {
				t.Errorf("survey %d, %s on %s: %s: %s", i, finding.Promise, fs, finding.Verdict, finding.Reason)
			}
		}
		os.RemoveAll(dir)
	}
	t.Logf("%d surveys, %d contested rounds, findings: %v", surveys, contested, verdicts)
}
