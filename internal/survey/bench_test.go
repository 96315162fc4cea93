package survey

import (
	"testing"

	"github.com/claimbench/claimbench/internal/result"
)

func TestARowWithoutAJudgedTrialIsUnproven(t *testing.T) {
	good, void := result.Bench{Protocol: "generations", Trials: 4}, result.Bench{Protocol: "generations", Void: 4}
	bad := result.Bench{Protocol: "generations", Trials: 1, Missed: 1}
	for _, c := range []struct {
		rows []result.Bench
		want Decision
	}{
		{[]result.Bench{good}, Safe},
		{[]result.Bench{good, void}, Unproven},
		{[]result.Bench{void, bad}, Unsafe},
		{nil, Unproven},
	} {
		f := &result.File{Targets: []result.Target{{Bench: c.rows}}}
		if got := DecideBench(f, []string{"generations"}); got != c.want {
			t.Errorf("%+v: %v, want %v", c.rows, got, c.want)
		}
	}
}
