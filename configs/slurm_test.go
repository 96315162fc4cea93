package configs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The programs that the batch script calls, each of which writes down what it was asked to do. srun runs the command once
// for each node, as Slurm does.
var fakes = map[string]string{
	"scontrol": `[ "$*" = "show hostnames node[1-3]" ] || exit 9
printf 'node1\nnode2\nnode3\n'`,
	"srun": `trap 'kill $(jobs -p); exit 143' TERM
echo "srun $*" >>"$LOG"
while [[ $1 == --* ]]; do shift; done
for n in node1 node2 node3; do SLURMD_NODENAME=$n "$@" & done
wait`,
	"claimbench": `echo "${SLURMD_NODENAME:-batch} claimbench $*" >>"$LOG"
[ -n "$CLAIMBENCH_TOKEN" ] || echo "$1 has no token" >>"$LOG"
case $1 in
serve) until [ "$(grep -c ' join ' "$LOG")" -gt 3 ] || [ "$FAKE_STATUS" = 4 ]; do sleep 0.01; done; exit "$FAKE_STATUS" ;;
join) [ "$FAKE_STATUS" != 4 ] || exec sleep 600 ;;
esac`,
}

// sbatch runs the batch script as Slurm would on the first of three nodes. It returns what was executed, in order.
func sbatch(t *testing.T, status string, args ...string) ([]string, int) {
	t.Helper()
	needBash(t)
	script, err := filepath.Abs("slurm.sbatch")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, body := range fakes {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(log, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{script}, args...)...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "LOG=" + log, "FAKE_STATUS=" + status,
		"SLURM_JOB_ID=4711", "SLURM_JOB_NODELIST=node[1-3]", "SLURM_NNODES=3",
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, out)
	}
	executed, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s%s", executed, out)
	return strings.Split(strings.TrimSpace(string(executed)), "\n"), cmd.ProcessState.ExitCode()
}

func TestSlurmServesOnTheFirstNodeAndJoinsOnEach(t *testing.T) {
	executed, status := sbatch(t, "1", "/shared/my jobs", "probe", "excl-create,flock")
	want := []string{
		"batch claimbench serve --hosts 3 --listen 0.0.0.0:24711 probe excl-create,flock --out claimbench-4711.json",
		"node1 claimbench join --dir /shared/my jobs --name node1 nats://node1:24711",
		"node2 claimbench join --dir /shared/my jobs --name node2 nats://node1:24711",
		"node3 claimbench join --dir /shared/my jobs --name node3 nats://node1:24711",
	}
	got := slices.DeleteFunc(slices.Clone(executed), func(l string) bool { return strings.HasPrefix(l, "srun ") })
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("executed:\n%s", strings.Join(got, "\n"))
	}
	if status != 1 {
		t.Errorf("the job's status is %d", status)
	}
	i := slices.IndexFunc(executed, func(l string) bool { return strings.HasPrefix(l, "srun ") })
	if i < 0 || !strings.HasPrefix(executed[i], "srun --nodes=3 --ntasks=3 --ntasks-per-node=1 ") {
		t.Errorf("%v", executed)
	}
	if secret := regexp.MustCompile(`[0-9a-f]{32}`); secret.MatchString(strings.Join(executed, "\n")) {
		t.Error("the token is in a command line")
	}
}

func TestSlurmSurveysByDefaultAndSaysHowItIsCalled(t *testing.T) {
	executed, status := sbatch(t, "0", "/shared")
	if !slices.ContainsFunc(executed, func(l string) bool { return strings.Contains(l, " survey --budget 10m --max-wait 65s --out ") }) || status != 0 {
		t.Errorf("status %d: %v", status, executed)
	}
	if _, status := sbatch(t, "0"); status != 2 {
		t.Errorf("without a directory the status is %d", status)
	}
}

func TestSlurmEndsTheHostsWhereThereIsNoSurvey(t *testing.T) {
	began := time.Now()
	if _, status := sbatch(t, "4", "/shared"); status != 4 {
		t.Errorf("status %d", status)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}
