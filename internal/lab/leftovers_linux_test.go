package lab

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/configs"
	"github.com/claimbench/claimbench/internal/testenv"
)

var (
	leftoverRuns = flag.Int("leftovers", 0, "so many runs of the lab, a fifth of them interrupted, in search of what they leave behind")
	leftoverSeed = flag.Uint64("leftovers-seed", 0, "which of them are interrupted, and when; 0 is another one each time")
)

// aloneVariable is set in a test's own namespaces.
const aloneVariable = "CLAIMBENCH_LAB_ALONE"

// hidden are the directories that a test in namespaces of its own finds empty, and others' mounts in them gone.
var hidden = []string{"/tmp", "/var/tmp", "/dev/shm"}

// alone says that the calling test is in namespaces of its own, for processes, mounts and the network: whatever turns
// up there is the test's doing. Elsewhere it runs the test in such ones, with its own result, and says no. Nothing that
// the test leaves behind outlives it, but a loop device for a moment.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVariable) != "" {
		furnish(t)
		return true
	}
	if os.Geteuid() != 0 {
		testenv.Lacks(t, "not root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell is init: it reaps what others have left.
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `"$0" "$@"; exit $?`, self, "-test.run=^"+t.Name()+"$",
		"-test.v", fmt.Sprint("-leftovers=", *leftoverRuns), fmt.Sprint("-leftovers-seed=", *leftoverSeed))
	cmd.Env = append(os.Environ(), aloneVariable+"=1")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &said), os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		testenv.Lacks(t, fmt.Sprintf("namespaces of its own: %v", err))
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("in namespaces of its own: %v", err)
	}
	if strings.Contains(said.String(), "--- SKIP") {
		testenv.Lacks(t, "in namespaces of its own it was skipped")
	}
	return false
}

// furnish makes new namespaces usable. The copies of others' mounts would keep their devices busy.
func furnish(t *testing.T) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			testenv.Lacks(t, err) // a container's seal, say, on mounts of /proc
		}
	}
	must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	for _, dir := range hidden {
		others, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
		must(err)
		for _, m := range slices.Backward(others) {
			_ = unix.Unmount(m.Mountpoint, unix.MNT_DETACH) // EINVAL: what it was mounted in has gone before
		}
		must(unix.Mount("lab", dir, "tmpfs", 0, "mode=1777"))
	}
	must(unix.Mount("lab", "/proc", "proc", 0, ""))
	must(exec.Command(program("ip"), "link", "set", "lo", "up").Run())
}

// A scene is all there is that a run of the lab could leave behind, a line for each.
type scene map[string]bool

// look needs namespaces of its own, but for loop devices, which have none: of these those count whose image is hidden.
func look() (scene, error) {
	all := scene{}
	var failed []error
	for _, find := range []func(add func(format string, args ...any)) error{
		findProcesses, findMounts, findLoops, findNetworkDevices, findFiles,
	} {
		failed = append(failed, find(func(format string, args ...any) { all[fmt.Sprintf(format, args...)] = true }))
	}
	return all, errors.Join(failed...)
}

func findProcesses(add func(string, ...any)) error {
	_, err := processes(func(pid int) bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			return false // it has ended
		}
		add("process %d: %s", pid, bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '}))
		for _, kind := range []string{"mnt", "net"} {
			if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind)); err == nil {
				add("namespace %s", ns)
			}
		}
		return false
	})
	return err
}

func findMounts(add func(string, ...any)) error {
	mounts, err := mountinfo.GetMounts(nil)
	for _, m := range mounts {
		add("mount %d: %s at %s", m.ID, m.FSType, m.Mountpoint)
	}
	return err
}

func findLoops(add func(string, ...any)) error {
	devices, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, d := range devices {
		image, err := os.ReadFile(d)
		if err == nil && slices.ContainsFunc(hidden, func(dir string) bool { return strings.HasPrefix(string(image), dir+"/") }) {
			add("loop device %s: %s", strings.Split(d, "/")[3], bytes.TrimSpace(image))
		}
	}
	return err
}

func findNetworkDevices(add func(string, ...any)) error {
	devices, err := net.Interfaces()
	for _, d := range devices {
		add("network device %d: %s", d.Index, d.Name)
	}
	return err
}

func findFiles(add func(string, ...any)) error {
	var failed []error
	for _, dir := range hidden {
		failed = append(failed, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				add("file %s", path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it has gone
			}
			return err
		}))
	}
	return errors.Join(failed...)
}

// since is what there is now and was not before.
func (before scene) since() ([]string, error) {
	now, err := look()
	left := slices.Sorted(maps.Keys(now))
	return slices.DeleteFunc(left, func(thing string) bool { return before[thing] }), err
}

// restored waits a moment for everything to be as before; the error says what is there still.
func (before scene) restored() error {
	return until(patience, func() error {
		left, err := before.since()
		if err == nil && len(left) > 0 {
			err = errors.New(strings.Join(left, "\n"))
		}
		return err
	})
}

func TestWhatIsLeftBehindIsFound(t *testing.T) {
	if !alone(t) {
		return
	}
	dir := t.TempDir()
	start := func(args ...string) func() {
		cmd := exec.Command(program(args[0]), args[1:]...)
		if err := cmd.Start(); err != nil {
			testenv.Lacks(t, err)
		}
		return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	}
	for _, c := range []struct {
		want  string
		leave func(t *testing.T) (remove func())
	}{
		{"process ", func(*testing.T) func() { return start("sleep", "1000") }},
		{"namespace net:", func(*testing.T) func() { return start("unshare", "--net", "sleep", "1000") }},
		{"namespace mnt:", func(*testing.T) func() { return start("unshare", "--mount", "sleep", "1000") }},
		{"mount ", func(t *testing.T) func() {
			if err := unix.Mount("left", dir, "tmpfs", 0, ""); err != nil {
				testenv.Lacks(t, err)
			}
			return func() { _ = unix.Unmount(dir, 0) }
		}},
		{"loop device ", func(t *testing.T) func() {
			image := filepath.Join(dir, "image")
			if err := makeImage(image, 1<<20); err != nil {
				t.Fatal(err)
			}
			device, err := attach(image)
			if err != nil {
				testenv.Lacks(t, err)
			}
			return func() { _, _ = device.Close(), os.Remove(image) }
		}},
		{"network device ", func(t *testing.T) func() {
			if err := exec.Command(program("ip"), "link", "add", "left", "type", "bridge").Run(); err != nil {
				testenv.Lacks(t, err)
			}
			return func() { _ = exec.Command(program("ip"), "link", "del", "left").Run() }
		}},
		{"file /tmp/", func(t *testing.T) func() {
			at := filepath.Join(dir, "file")
			write(t, at)
			return func() { _ = os.Remove(at) }
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			before, err := look()
			if err != nil {
				t.Fatal(err)
			}
			remove := c.leave(t)
			if err := until(patience, func() error {
				left, err := before.since()
				if err == nil && !slices.ContainsFunc(left, func(thing string) bool { return strings.HasPrefix(thing, c.want) }) {
					err = fmt.Errorf("not found: %q", left)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
			remove()
			if err := before.restored(); err != nil {
				t.Errorf("removed, and still found: %v", err)
			}
		})
	}
}

// leftoverTargets are of every kind that the lab can make.
var leftoverTargets = []string{
	"tmpfs", "ext4", "overlay-ext4", "overlay-private", "bind", "bindfs", "mergerfs", "sshfs", "nfs3", "nfs42", "kernels2-nfs42",
}

const leftoverSurvey = `budget: 5s
contenders: [2]
rounds: 400
min_contested: 5
probe_time: 3s
cold_rounds: 4
hang_after: 15s
probes: [excl-create]
workloads: []
`

// Runs of the binary that make has built, of which some are interrupted and some killed.
func TestRunsLeaveNothingBehind(t *testing.T) {
	if *leftoverRuns == 0 {
		t.Skip("it takes minutes: make lab-leftovers")
	}
	targets := makeable(t, leftoverTargets)
	if len(targets) == 0 || !alone(t) {
		return
	}
	seed := *leftoverSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-leftovers-seed %d", seed)
	r := newRepeated(t)
	random := rand.New(rand.NewPCG(seed, 0))
	ends := interruptions(random, *leftoverRuns, len(targets))
	lasts := map[string]time.Duration{} // how long a target takes
	for _, target := range targets {
		lasts[target] = 3 * time.Second
	}
	for i, end := range ends {
		target := targets[i%len(targets)]
		for over := true; over; {
			after := time.Duration(random.Int64N(int64(lasts[target])))
			var took time.Duration
			took, over = r.run(t, target, end, after)
			told := fmt.Sprintf("run %d: %s, %v", i, target, took.Round(10*time.Millisecond))
			switch {
			case end == 0:
				lasts[target], over = took, false
			case over:
				told += fmt.Sprintf(", over before it was %v, and so once more", end)
			default:
				told += fmt.Sprintf(", %v after %v", end, after.Round(10*time.Millisecond))
			}
			t.Log(told)
		}
	}
}

// makeable are those targets that can be made here.
func makeable(t *testing.T, names []string) (can []string) {
	t.Helper()
	files, err := fs.Sub(configs.Lab, "lab")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Load(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(t Target) bool { return t.Name == name })
		if i < 0 {
			t.Fatalf("no target %s", name)
		}
		if lacks := all[i].Lacks(); lacks != nil {
			t.Logf("%s: left out: %v", name, lacks)
			continue
		}
		can = append(can, name)
	}
	if len(can) == 0 {
		testenv.Lacks(t, "no target can be made")
	}
	return can
}

// interruptions says of each run what ends it: a signal for a fifth of them, SIGINT and SIGKILL in turn, and none for the
// others. The first run of each target is whole, if there are enough.
func interruptions(random *rand.Rand, runs, targets int) []unix.Signal {
	ends := make([]unix.Signal, runs)
	first := min(targets, runs-runs/5)
	for k, i := range random.Perm(runs - first)[:runs/5] {
		ends[first+i] = []unix.Signal{unix.SIGINT, unix.SIGKILL}[k%2]
	}
	return ends
}

// A repeated lab has one binary, and what it works with.
type repeated struct{ dir string }

func newRepeated(t *testing.T) *repeated {
	t.Helper()
	r := &repeated{t.TempDir()}
	if err := copyFile("../../bin/claimbench", r.at("claimbench"), 0o755); err != nil {
		t.Fatalf("%v; make build", err)
	}
	err := os.WriteFile(r.at("survey.yaml"), []byte(leftoverSurvey), 0o644)
	for _, dir := range []string{"scratch", "ledgers"} {
		err = errors.Join(err, os.Mkdir(r.at(dir), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *repeated) at(name string) string { return filepath.Join(r.dir, name) }

// run runs the lab once, sends it a signal if that is not 0, and compares. It says whether the run was over before.
func (r *repeated) run(t *testing.T, target string, end unix.Signal, after time.Duration) (took time.Duration, over bool) {
	t.Helper()
	before, err := look()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(r.at("claimbench"), "lab", "run", "--scratch", r.at("scratch"), "--ledgers", r.at("ledgers"),
		"--config", r.at("survey.yaml"), "--out", r.at("out"), target)
	cmd.Stderr, cmd.WaitDelay = &said, time.Second // what a killed lab has started keeps its end of the pipe
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	over = true
	if end != 0 {
		select {
		case err := <-ended:
			ended <- err
		case <-time.After(after):
			over = cmd.Process.Signal(end) != nil
		}
	}
	<-ended
	took = time.Since(began)
	if _, err := os.Stat(r.at("out/" + target + ".json")); over && err != nil {
		t.Errorf("%s: no result: %v\n%s", target, err, &said)
	}
	if end == unix.SIGKILL {
		if out, err := exec.Command(r.at("claimbench"), "lab", "clean", "--ledgers", r.at("ledgers")).CombinedOutput(); err != nil {
			t.Errorf("%s: clean after %v: %v\n%s", target, after, err, out)
		}
	}
	if err := os.RemoveAll(r.at("out")); err != nil {
		t.Error(err)
	}
	if err := before.restored(); err != nil {
		t.Errorf("%s (%v after %v) has left behind:\n%v\nIt said:\n%s", target, end, after, err, &said)
	}
	return took, over
}
