package report

import (
	"bytes"
	"strings"
	"testing"
)

func overview(t *testing.T, names ...string) string {
	t.Helper()
	var files []Named
	for i, f := range load(t, names...) {
		files = append(files, Named{names[i], f})
	}
	var out bytes.Buffer
	if err := Overview(&out, files); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestOverview(t *testing.T) {
	golden(t, "overview.md", []byte(overview(t, "bench-ext4", "bench-nfs", "bench-odd", "ext4", "empty")))
}

func TestTheOverviewOfResultsWithoutABenchSaysSo(t *testing.T) {
	out := overview(t, "ext4", "nfs")
	for _, want := range []string{"No result here has this workload yet.", "No result here judges protocols yet.", "[nfs](nfs.md) **INCOMPLETE**"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestAVerdictOfAnotherScopeThanTheTargetsNamesIt(t *testing.T) {
	target := &load(t, "bench-ext4")[0].Targets[0]
	if got := verdictOf(target, "generations"); got != "safe" {
		t.Errorf("%q", got)
	}
	target.Scope = "client"
	if got := verdictOf(target, "generations"); got != "safe (process)" {
		t.Errorf("%q", got)
	}
	if got := verdictOf(target, "unknown"); got != "-" {
		t.Errorf("%q", got)
	}
}
