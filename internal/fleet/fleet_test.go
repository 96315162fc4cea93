package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/survey"
)

// asHost is how this binary is told to be a joined host.
const asHost = "CLAIMBENCH_TEST_JOIN"

// A part is what such a host is like.
type part struct {
	URL, Token, Meeting, CA, Creds, Dir, Name, BootID string
	Ahead                                             int64
}

func TestMain(m *testing.M) {
	race.Contend(survey.Ops())
	if data := os.Getenv(asHost); data != "" {
		os.Exit(joinAs(data))
	}
	os.Exit(m.Run())
}

func joinAs(data string) int {
	var p part
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	err := Join(context.Background(), Joining{
		URL: p.URL, Token: p.Token, Meeting: p.Meeting, CA: p.CA, Creds: p.Creds, Dirs: []string{p.Dir}, Name: p.Name, Version: "test", Ops: survey.Ops(), Wait: 5 * time.Second, Away: time.Second,
		Log:     func(s string) { fmt.Fprintln(os.Stderr, s) },
		pretend: pretence{bootID: p.BootID, ahead: p.Ahead},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	return 0
}

// A child is a joined host in a process of its own.
type child struct {
	*exec.Cmd
	out  *safe
	done chan error
}

// safe is a buffer that may be read while it is written.
type safe struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *safe) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *safe) add(line string) { fmt.Fprintln(s, line) }

func spawn(t testing.TB, p part) *child {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command("/proc/self/exe"), out: &safe{}, done: make(chan error, 1)}
	c.Env = append(os.Environ(), asHost+"="+string(data))
	c.Stderr = c.out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.done <- c.Wait() }()
	t.Cleanup(func() {
		c.Process.Signal(unix.SIGCONT)
		c.Process.Kill()
	})
	return c
}

// ends waits for the host's process to end by itself.
func (c *child) ends(t *testing.T, within time.Duration) error {
	t.Helper()
	select {
	case err := <-c.done:
		return err
	case <-time.After(within):
		t.Fatalf("the host did not end within %v:\n%s", within, c.out)
		return nil
	}
}

// serving starts a coordinator; its log is returned.
func serving(t testing.TB, hosts int) (*Fleet, *safe) {
	t.Helper()
	log := &safe{}
	f, err := Serve(Serving{
		Meeting: Meeting{Listen: "127.0.0.1:0"}, Hosts: hosts, Wait: 15 * time.Second, Version: "test", Ops: survey.Ops(), Log: log.add,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, log
}

// together starts hosts on one directory, and waits for them to have joined.
func together(t testing.TB, parts ...part) (*Fleet, []*child, string) {
	t.Helper()
	f, _ := serving(t, len(parts))
	dir := t.TempDir()
	var hosts []*child
	for _, p := range parts {
		p.URL, p.Dir = f.point.url, dir
		hosts = append(hosts, spawn(t, p))
	}
	if missing, err := f.Gather(t.Context()); err != nil || missing != "" {
		t.Fatalf("%v %s", err, missing)
	}
	return f, hosts, dir
}

// settings are for an answer in seconds.
func settings(t testing.TB, names ...string) config.Config {
	t.Helper()
	c, err := config.Named("quick")
	if err != nil {
		t.Fatal(err)
	}
	c.Probes, c.Workloads, c.Contenders, c.Rounds, c.ProbeTime = names, nil, []int{4}, 60, 2*time.Second
	c.MinContested, c.ColdRounds, c.HangAfter = 10, 8, 5*time.Second
	return c
}

func surveyed(t testing.TB, f *Fleet, c config.Config) (*result.File, error) {
	t.Helper()
	file, err := survey.Run(t.Context(), survey.Options{Targets: [][]string{f.Target()}, Config: c, Version: "test", Elsewhere: f})
	if file == nil {
		t.Fatal(err)
	}
	return file, err
}

// nothingLeft objects to anything in the directory.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	until := time.Now().Add(5 * time.Second)
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("left behind: %v", entries)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// whenTheyRace does something as soon as there is something of a probe's in the work directory.
func whenTheyRace(t *testing.T, dir string, do func()) {
	t.Helper()
	ctx := t.Context()
	go func() {
		for pause(ctx, 20*time.Millisecond) == nil {
			there, _ := filepath.Glob(filepath.Join(dir, dirPrefix+"*", "*", "*"))
			if slices.ContainsFunc(there, func(p string) bool { return filepath.Base(filepath.Dir(p)) != vigilDir }) {
				do()
				return
			}
		}
	}()
}

func TestTwoHostsRaceAndTheControlFires(t *testing.T) {
	f, hosts, dir := together(t, part{Name: "alpha"}, part{Name: "beta"})
	file, err := surveyed(t, f, settings(t, "excl-create", "flock", "lock-release", "visibility"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for _, h := range hosts {
		if err := h.ends(t, 5*time.Second); err != nil {
			t.Errorf("%v\n%s", err, h.out)
		}
	}
	target := file.Targets[0]
	for _, f := range target.Findings {
		if f.Violations > 0 || f.Verdict == result.Broken || f.Verdict == result.Hung {
			t.Errorf("%s: %s: %s", f.Promise, f.Verdict, f.Reason)
		}
		if f.Control == nil || f.Control.Violations == 0 {
			t.Errorf("%s: the control did not fire: %+v: %s", f.Promise, f.Control, f.Reason)
		}
	}
	if len(target.Findings) != 4 || len(file.Hosts) != 2 || file.Incomplete != "" {
		t.Errorf("%d findings, %d hosts, %q", len(target.Findings), len(file.Hosts), file.Incomplete)
	}
	if target.Scope != result.ScopeProcess || target.Routes[1].Host != "beta" {
		t.Errorf("two hosts of one kernel on one mount: %s, %+v", target.Scope, target.Routes)
	}
	nothingLeft(t, dir)
}

func TestWorkloadsRunOverHosts(t *testing.T) {
	f, _, dir := together(t, part{Name: "alpha"}, part{Name: "beta"})
	c := settings(t)
	c.Workloads, c.Trials, c.Budget = []string{"storm", "deaths"}, 4, 20*time.Second
	file, err := survey.Run(t.Context(), survey.Options{
		Targets: [][]string{f.Target()}, Config: c, Version: "test", Elsewhere: f, BenchOnly: true,
		Protocols: []string{"unguarded", "excl", "generations"},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	caught := map[string]bool{}
	for _, r := range file.Targets[0].Bench {
		caught[r.Workload] = caught[r.Workload] || r.Control && r.Violations() > 0
		if r.Protocol == "generations" && (r.Violations() > 0 || r.Trials == 0) {
			t.Errorf("%s %s: %d trials, %d violations: %+v", r.Workload, r.Variant, r.Trials, r.Violations(), r.Counterexample)
		}
	}
	if !caught["storm"] || !caught["deaths"] {
		t.Errorf("controls that fired: %v", caught)
	}
	nothingLeft(t, dir)
}

func TestClocksOfTwoKernelsAreOne(t *testing.T) {
	const ahead = 3_700_000_000
	f, _, _ := together(t, part{Name: "alpha"}, part{Name: "beta", BootID: "another", Ahead: ahead})
	defer f.Close()
	c := settings(t, "clock-skew")
	file, err := surveyed(t, f, c)
	if err != nil {
		t.Fatal(err)
	}
	beta := file.Hosts[1]
	if beta.OwnKernel || beta.UnsureUS == nil || *beta.UnsureUS > 20e3 {
		t.Fatalf("%+v", beta)
	}
	if off := (beta.OffsetS + ahead/1e9) * 1e6; off > *beta.UnsureUS || -off > *beta.UnsureUS {
		t.Errorf("the clock is corrected wrongly by %v µs, and sure to %v", off, *beta.UnsureUS)
	}
	if file.Targets[0].Scope != result.ScopeHost {
		t.Errorf("scope %s: %s", file.Targets[0].Scope, file.Targets[0].ScopeWhy)
	}
}

func TestAnAttemptAfterAnotherIsLaterOnAnyClock(t *testing.T) {
	f, _, _ := together(t, part{Name: "alpha"}, part{Name: "beta", BootID: "another", Ahead: -9e9})
	defer f.Close()
	d, err := f.Start(t.Context(), race.Config{Ops: survey.Ops(), Contenders: 2, HangAfter: 5 * time.Second, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Enter(t.Context(), f.Target()...); err != nil {
		t.Fatal(err)
	}
	last, unsure := race.Now(), int64(0)
	for i := range 6 {
		ev, err := d.Do(t.Context(), i%2, "link-count", d.Name(), 0)
		if err != nil {
			t.Fatal(err)
		}
		fit := f.hosts[1].kernel.current()
		unsure = fit.unsure(race.Now() - fit.clock.Offset)
		if ev.Invoke < last-unsure || ev.Return < ev.Invoke {
			t.Errorf("attempt %d began %d ns before the one before it was over, and the clocks are sure to %d", i, last-ev.Invoke, unsure)
		}
		last = ev.Return
	}
	if now := race.Now(); last > now+unsure {
		t.Errorf("an attempt ended %d ns after now", last-now)
	}
}

func TestAHostThatIsKilledEndsTheSurvey(t *testing.T) {
	f, hosts, dir := together(t, part{Name: "alpha"}, part{Name: "beta"})
	defer f.Close()
	f.askFor = time.Second
	c := settings(t, "excl-create", "mkdir")
	c.Rounds, c.ProbeTime = 1<<30, 20*time.Second
	whenTheyRace(t, dir, func() { hosts[1].Process.Kill() })
	began := time.Now()
	file, _ := surveyed(t, f, c)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	if !strings.Contains(file.Incomplete, "beta is lost") || !strings.Contains(file.Hosts[1].Lost, "beta") {
		t.Errorf("%q %q", file.Incomplete, file.Hosts[1].Lost)
	}
	if len(file.Targets) != 1 || len(file.Targets[0].Findings) != 1 || file.Targets[0].Findings[0].Verdict != result.Unproven {
		t.Fatalf("%+v", file.Targets)
	}
	if len(file.Targets[0].Bench) != len(keptClaims) {
		t.Errorf("%+v", file.Targets[0].Bench)
	}
	for _, r := range file.Targets[0].Bench { // it was not asked for long enough
		if r.Violations() > 0 || r.Void != 1 && r.Protocol != "flock-held" {
			t.Errorf("%+v", r)
		}
	}
	nothingLeft(t, dir)
}

// Of three hosts one is killed. The kernel, which lives, has its locks free at once, and its claims expire. The others are
// given each, one of them, and survey on.
func TestTheSurveyGoesOnWithoutAHostThatIsKilled(t *testing.T) {
	f, hosts, dir := together(t, part{Name: "alpha"}, part{Name: "beta"}, part{Name: "gamma"})
	defer f.Close()
	c := settings(t, "excl-create", "mkdir")
	c.Rounds, c.ProbeTime = 400, 3*time.Second
	whenTheyRace(t, dir, func() { hosts[0].Process.Kill() })
	file, err := surveyed(t, f, c)
	if err != nil || len(file.Targets) != 1 || len(file.Targets[0].Findings) != 2 {
		t.Fatalf("%v: %+v", err, file.Targets)
	}
	target, alpha := file.Targets[0], file.Hosts[0]
	if first, second := target.Findings[0], target.Findings[1]; first.Verdict != result.Unproven || second.Verdict != result.Holds || second.Contested < 10 {
		t.Errorf("%+v\n%+v", first, second)
	}
	if !strings.Contains(file.Incomplete, "alpha is lost") || !slices.ContainsFunc(target.Warnings, func(w string) bool { return strings.Contains(w, "from mkdir on the others are alone") }) {
		t.Errorf("%q %q", file.Incomplete, target.Warnings)
	}
	if len(alpha.Held) != len(keptLocks)+len(keptClaims) {
		t.Errorf("held: %+v", alpha.Held)
	}
	for _, h := range alpha.Held {
		if lock := keptLocks[h.What] != nil; h.GivenS == 0 || lock != (h.GivenS < keptTTL.Seconds()/2) && h.What != "flock-held" {
			t.Errorf("%+v", h)
		}
	}
	if len(target.Bench) != len(keptClaims) {
		t.Fatalf("%+v", target.Bench)
	}
	for _, r := range target.Bench {
		if r.Trials != 1 || r.Executed != 1 || r.Violations() != 0 || r.Contenders != 2 || r.TakeoverMS == nil {
			t.Errorf("%+v", r)
		}
	}
	nothingLeft(t, dir)
}

// A host whose connection is cut is lost to the others, and lives. It takes the coordinator for gone after a while, and must
// not remove the work directory then, in which the others survey on.
func TestAHostThatIsCutOffLeavesTheDirectoryToTheOthers(t *testing.T) {
	f, _ := serving(t, 3)
	defer f.Close()
	dir := t.TempDir()
	at, cut := detour(t, f.point.url)
	alpha := spawn(t, part{URL: at, Dir: dir, Name: "alpha"})
	spawn(t, part{URL: f.point.url, Dir: dir, Name: "beta"})
	spawn(t, part{URL: f.point.url, Dir: dir, Name: "gamma"})
	if missing, err := f.Gather(t.Context()); err != nil || missing != "" {
		t.Fatalf("%v %s\n%s", err, missing, alpha.out)
	}
	c := settings(t, "excl-create", "mkdir", "symlink")
	c.Rounds, c.ProbeTime = 1<<30, 4*time.Second
	whenTheyRace(t, dir, cut)
	file, err := surveyed(t, f, c)
	if err != nil || len(file.Targets) != 1 || len(file.Targets[0].Findings) != 3 {
		t.Fatalf("%v: %+v", err, file.Targets)
	}
	for _, finding := range file.Targets[0].Findings[1:] {
		if finding.Verdict != result.Holds {
			t.Errorf("%+v", finding)
		}
	}
	if len(file.Targets[0].Bench) != len(keptClaims) {
		t.Errorf("%+v", file.Targets[0].Bench)
	}
	for _, r := range file.Targets[0].Bench {
		if r.Violations() > 0 {
			t.Errorf("%+v", r)
		}
	}
	if err := alpha.ends(t, 30*time.Second); err == nil || !strings.Contains(alpha.out.String(), "out of reach") {
		t.Errorf("%v:\n%s", err, alpha.out)
	}
	nothingLeft(t, dir)
}

// detour is another address of a server, and cuts all who use it off, for good.
func detour(t *testing.T, to string) (at string, cut func()) {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	var mu sync.Mutex
	var open []net.Conn
	cut = func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
	}
	t.Cleanup(cut)
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", server)
			if err != nil {
				a.Close()
				return
			}
			mu.Lock()
			open = append(open, a, b)
			mu.Unlock()
			go io.Copy(a, b)
			go io.Copy(b, a)
		}
	}()
	u.Host = l.Addr().String()
	return u.String(), cut
}

func TestAHostThatHangsIsGivenUp(t *testing.T) {
	f, hosts, dir := together(t, part{Name: "alpha"}, part{Name: "beta"})
	defer f.Close()
	f.askFor = time.Second
	c := settings(t, "excl-create", "mkdir")
	c.Rounds, c.ProbeTime = 1<<30, 30*time.Second
	whenTheyRace(t, dir, func() { hosts[1].Process.Signal(unix.SIGSTOP) })
	began := time.Now()
	file, _ := surveyed(t, f, c)
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("it took %v", took)
	}
	if !strings.Contains(file.Incomplete, "beta is lost: no sign of it") {
		t.Errorf("%q", file.Incomplete)
	}
	hosts[1].Process.Signal(unix.SIGCONT) // it was told to leave, and hears of it now
	if err := hosts[1].ends(t, 10*time.Second); err != nil {
		t.Errorf("%v:\n%s", err, hosts[1].out)
	}
}

func TestAServerThatGoesAwayLeavesNothingBehind(t *testing.T) {
	f, hosts, dir := together(t, part{Name: "alpha"}, part{Name: "beta"})
	whenTheyRace(t, dir, f.point.close) // as if the coordinator's machine were gone
	c := settings(t, "excl-create")
	c.Rounds, c.ProbeTime = 1<<30, 20*time.Second
	surveyed(t, f, c)
	for _, h := range hosts {
		err := h.ends(t, 20*time.Second)
		if err == nil || !strings.Contains(h.out.String(), "out of reach") {
			t.Errorf("%v:\n%s", err, h.out)
		}
	}
	nothingLeft(t, dir)
}

func TestHostsOfDifferentDirectoriesAreFoundOut(t *testing.T) {
	f, _ := serving(t, 2)
	defer f.Close()
	a, b := t.TempDir(), t.TempDir()
	spawn(t, part{URL: f.point.url, Dir: a, Name: "alpha"})
	spawn(t, part{URL: f.point.url, Dir: b, Name: "beta"})
	if _, err := f.Gather(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := settings(t, "excl-create")
	c.HangAfter = time.Second
	_, err := surveyed(t, f, c)
	if err == nil || !strings.Contains(err.Error(), "does not reach the directory") {
		t.Errorf("%v", err)
	}
	for _, dir := range []string{a, b} {
		nothingLeft(t, dir)
	}
}

// abroad starts a NATS server that is nobody's, as a cluster would be.
func abroad(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoLog, o.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("no NATS server")
	}
	t.Cleanup(s.Shutdown)
	return s
}

// visiting has a coordinator and two hosts meet at another's server.
func visiting(t *testing.T, m Meeting) (*Fleet, []*child, string) {
	t.Helper()
	f, err := Serve(Serving{Meeting: m, Hosts: 2, Wait: 15 * time.Second, Version: "test", Ops: survey.Ops(), Log: (&safe{}).add})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := part{URL: m.URL, Token: m.Token, Meeting: m.Name, CA: m.CA, Creds: m.Creds, Dir: dir, Name: "alpha"}
	hosts := []*child{spawn(t, at)}
	at.Name = "beta"
	hosts = append(hosts, spawn(t, at))
	if missing, err := f.Gather(t.Context()); err != nil || missing != "" {
		t.Fatalf("%v %s", err, missing)
	}
	return f, hosts, dir
}

// The others may still race in the work directory: the coordinator removes it, when they are told to stop.
func TestAHostThatIsInterruptedLeavesTheWorkDirectoryToTheCoordinator(t *testing.T) {
	f, _ := serving(t, 2)
	defer f.Close()
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		ended <- Join(ctx, Joining{
			URL: f.point.url, Dirs: []string{dir}, Name: "alpha", Version: "test", Ops: survey.Ops(), Wait: 5 * time.Second, Log: (&safe{}).add,
		})
	}()
	spawn(t, part{URL: f.point.url, Dir: dir, Name: "beta"})
	if missing, err := f.Gather(t.Context()); err != nil || missing != "" {
		t.Fatalf("%v %s", err, missing)
	}
	site, _, err := f.Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := site.SameEverywhere(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if there, _ := filepath.Glob(filepath.Join(dir, dirPrefix+"*")); len(there) != 1 {
		t.Errorf("of the work directory there is: %v", there)
	}
	for until := time.Now().Add(20 * time.Second); f.hosts[0].lost() == nil && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
	}
	if err := site.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, dir)
}

// The server stays, so that no connection of a host breaks when the coordinator is killed.
func TestACoordinatorThatIsGoneBesideItsServerLeavesNothingBehind(t *testing.T) {
	s := abroad(t, server.Options{})
	f, hosts, dir := visiting(t, Meeting{URL: s.ClientURL()})
	if _, _, err := f.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.point.nc.Close()
	for _, h := range hosts {
		if err := h.ends(t, 15*time.Second); err == nil || !strings.Contains(h.out.String(), "out of reach") {
			t.Errorf("%v:\n%s", err, h.out)
		}
	}
	nothingLeft(t, dir)
}

func TestAHostThatEndsBeforeTheSurveyMakesRoomForItsRestart(t *testing.T) {
	f, log := serving(t, 2)
	defer f.Close()
	alpha := part{URL: f.point.url, Dir: t.TempDir(), Name: "alpha"}
	c := spawn(t, alpha)
	for until := time.Now().Add(30 * time.Second); !strings.Contains(c.out.String(), "joined as host"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not joined: %s", c.out)
		}
	}
	c.Process.Kill()
	<-c.done
	f.mu.Lock()
	f.hosts[0].met = time.Now().Add(-patience) // it was heard of long enough ago to listen
	f.mu.Unlock()
	hosts := []*child{spawn(t, alpha), spawn(t, part{URL: f.point.url, Dir: alpha.Dir, Name: "beta"})}
	missing, err := f.Gather(t.Context())
	if err != nil || missing != "" {
		t.Fatalf("%v %s\n%s", err, missing, log)
	}
	if a, b := f.hosts[0], f.hosts[1]; a.name() != "alpha" || b.name() != "beta" || a.index == b.index || f.Lost() != "" {
		t.Errorf("%d %s, %d %s, %q", a.index, a.name(), b.index, b.name(), f.Lost())
	}
	for _, h := range hosts {
		if s := h.out.String(); strings.Contains(s, "refuses") {
			t.Error(s)
		}
	}
}

func TestAHostThatEndsBeforeTheSurveyDoesNotCount(t *testing.T) {
	f, log := serving(t, 2)
	defer f.Close()
	f.Wait = time.Second
	for _, name := range []string{"alpha", "beta"} {
		f.hosts = append(f.hosts, newHost(place(f.hosts), name, hello{Name: name}))
		f.hosts[len(f.hosts)-1].met = time.Now().Add(-patience)
	}
	f.full <- struct{}{}
	if _, err := f.Gather(t.Context()); err == nil || !strings.Contains(err.Error(), "0 of the hosts joined") {
		t.Errorf("%v\n%s", err, log)
	}
}

func TestHostsThatWaitForOthersStay(t *testing.T) {
	f, _ := serving(t, 2)
	defer f.Close()
	c := spawn(t, part{URL: f.point.url, Dir: t.TempDir(), Name: "alpha"})
	select {
	case err := <-c.done:
		t.Errorf("it did not wait: %v\n%s", err, c.out)
	case <-time.After(4 * time.Second): // Away is one second
	}
}
