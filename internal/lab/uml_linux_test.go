package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What a guest says last counts, though it has ended when that is read.
func TestAGuestThatEndsIsHeardToTheEnd(t *testing.T) {
	for _, c := range []struct{ file, content, says string }{
		{failureName, "mount.nfs: no\n", "in the guest: mount.nfs: no"},
		{stateName, stateDone, ""},
		{stateName, stateUp, "the guest ended before it was surveying"},
	} {
		g := &guest{dir: t.TempDir(), ended: make(chan error, 1)}
		said := make(chan error, 1)
		time.AfterFunc(20*time.Millisecond, func() { // within the pause between two looks
			said <- os.WriteFile(filepath.Join(g.dir, c.file), []byte(c.content), 0o644)
			g.ended <- nil
		})
		err := g.wait(t.Context(), stateSurveying, 10*time.Second)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says)) {
			t.Errorf("%s %q: %v", c.file, c.content, err)
		}
		if err := <-said; err != nil {
			t.Error(err)
		}
	}
}
