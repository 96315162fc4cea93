package explore

import (
	"fmt"
	"testing"

	"github.com/claimbench/claimbench/internal/faultfs/faultfstest"
)

// TestModelDoesWhatAShareWithoutFaultsDoes has the same sequences on a share without faults: over one mount, and with
// each contender, and each second look, on a mount of its own.
func TestModelDoesWhatAShareWithoutFaultsDoes(t *testing.T) {
	for _, mounts := range []int{1, 2} {
		for _, about := range themes {
			t.Run(fmt.Sprintf("%d %s", mounts, about.name), func(t *testing.T) {
				t.Parallel()
				about.check(t, faultless(t, mounts))
			})
		}
	}
}

// faultless mounts a share of a tmpfs, for each of two contenders.
func faultless(t *testing.T, mounts int) (routes [2]string) {
	t.Helper()
	at := faultfstest.Mount(t, "mode=0755", mounts)
	return [2]string{at[0], at[mounts-1]}
}
