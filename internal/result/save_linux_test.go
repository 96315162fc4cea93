package result

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

func TestSyncDirTellsNoSyncFromAFailedOne(t *testing.T) {
	if err := syncDir("/proc"); err != nil { // EINVAL: procfs has no fsync
		t.Errorf("/proc: %v", err)
	}
	if err := syncDir(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}
