package fleet

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/testenv"
)

// BenchmarkPlantedFault: in how many of ten surveys an exclusive create that is a look-up and a create is found, and
// how long the slowest of them took from the first host's start to its result. Two hosts reach the directory over a
// mount each, and say that they are of different kernels; each survey has hosts and mounts of its own.
func BenchmarkPlantedFault(b *testing.B) {
	const surveys = 10
	found, slowest := 0, time.Duration(0)
	for i := range surveys {
		began := time.Now()
		first, second := planted(b, uint64(i), "excl=lookup-create")
		f, _ := serving(b, 2)
		hosts := []*child{
			spawn(b, part{URL: f.point.url, Dir: first, Name: "alpha"}),
			spawn(b, part{URL: f.point.url, Dir: second, Name: "beta", BootID: "another"}),
		}
		if missing, err := f.Gather(b.Context()); err != nil || missing != "" {
			b.Fatalf("%v %s", err, missing)
		}
		c := settings(b, "excl-create")
		c.Rounds, c.ProbeTime, c.Budget = 400, 10*time.Second, 30*time.Second
		file, err := surveyed(b, f, c)
		if err != nil {
			b.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
		target := file.Targets[0]
		if target.Scope != result.ScopeHost || len(target.Findings) != 1 {
			b.Fatalf("scope %s, %d findings", target.Scope, len(target.Findings))
		}
		if target.Findings[0].Verdict == result.Broken && target.Findings[0].Kinds["several-winners"] > 0 {
			found++
		}
		f.Close()
		for _, h := range hosts {
			<-h.done
		}
	}
	b.ReportMetric(float64(found), fmt.Sprintf("found-of-%d", surveys))
	b.ReportMetric(slowest.Seconds(), "s-slowest")
	b.ReportMetric(0, "ns/op")
}

// planted mounts a share with faults twice, for the length of the benchmark.
func planted(b *testing.B, seed uint64, faults string) (first, second string) {
	b.Helper()
	all, err := faultfs.Parse(faults)
	if err != nil {
		b.Fatal(err)
	}
	share, err := faultfs.New(b.TempDir(), seed, all...)
	if err != nil {
		b.Fatal(err)
	}
	first, second = b.TempDir(), b.TempDir()
	b.Cleanup(func() {
		if err := share.Close(); err != nil {
			b.Error(err)
		}
	})
	for _, at := range []string{first, second} {
		if err := share.Mount(at); err != nil {
			testenv.Lacks(b, err)
		}
	}
	return first, second
}

// BenchmarkManyHosts: the coordinator's peak memory, and what becomes of the hosts, when 64 processes join over loopback,
// with one contender each. A round needs all contenders, so that those that were held had every host in them.
func BenchmarkManyHosts(b *testing.B) {
	const hosts = 64
	dir := b.TempDir()
	bin := filepath.Join(dir, "claimbench")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "../../cmd/claimbench")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	shared, config, out := filepath.Join(dir, "shared"), filepath.Join(dir, "survey.yaml"), filepath.Join(dir, "result.json")
	if err := os.Mkdir(shared, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(config, fmt.Appendf(nil, manyHosts, hosts), 0o644); err != nil {
		b.Fatal(err)
	}
	at := freeAddress(b)
	serve := exec.Command(bin, "serve", "--hosts", fmt.Sprint(hosts), "--listen", at, "--no-token", "probe", "excl-create", "--config", config, "--out", out)
	var said bytes.Buffer
	serve.Stdout, serve.Stderr = &said, &said
	began := time.Now()
	if err := serve.Start(); err != nil {
		b.Fatal(err)
	}
	var joined []*exec.Cmd
	for n := range hosts {
		join := exec.Command(bin, "join", "--dir", shared, "--name", fmt.Sprintf("h%d", n), at)
		if err := join.Start(); err != nil {
			b.Fatal(err)
		}
		joined = append(joined, join)
	}
	ended := serve.Wait() // whatever the verdict
	well := 0
	for _, join := range joined {
		kill := time.AfterFunc(20*time.Second, func() { _ = join.Process.Signal(unix.SIGKILL) })
		if join.Wait() == nil {
			well++
		}
		kill.Stop()
	}
	f, err := result.Load(out)
	if err != nil {
		b.Fatalf("%v, %v\n%s", err, ended, &said)
	}
	reported := 0
	for _, h := range f.Hosts {
		if h.Lost == "" {
			reported++
		}
	}
	if f.Incomplete != "" || len(f.Targets) != 1 || len(f.Targets[0].Findings) != 1 {
		b.Fatalf("%s\n%s", f.Incomplete, &said)
	}
	b.ReportMetric(float64(serve.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, "MiB-peak")
	b.ReportMetric(float64(reported), "hosts-reported")
	b.ReportMetric(float64(well), "hosts-ended-well")
	b.ReportMetric(float64(f.Targets[0].Findings[0].Rounds), "rounds")
	b.ReportMetric(time.Since(began).Seconds(), "s-wall")
	b.ReportMetric(0, "ns/op")
}

const manyHosts = `budget: 4m
contenders: [%d]
rounds: 100
min_contested: 1
probe_time: 30s
cold_rounds: 4
hang_after: 60s
`

// freeAddress is one on loopback that nobody listens on.
func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
