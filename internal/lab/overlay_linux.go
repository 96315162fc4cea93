package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The kinds of overlay targets.
const (
	overlayOne     = "one"             // one overlay, surveyed in a directory of its upper layer
	overlayLower   = "lower-directory" // one overlay, surveyed in a directory that comes from the lower layer
	overlayShared  = "shared-upper"    // two overlays with one upper directory
	overlayPrivate = "private"         // two overlays with one lower and an upper directory each
)

var overlayKinds = []string{overlayOne, overlayLower, overlayShared, overlayPrivate}

// makeOverlay mounts overlays of directories on the disk. The kernel wants a work directory for each mount.
func (s *Stand) makeOverlay(o *Overlay) error {
	dirs := []string{"lower/jobs", "upper1", "work1", "upper2", "work2"}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(s.disk, d), 0o755); err != nil {
			return err
		}
	}
	uppers := map[string][]int{overlayOne: {1}, overlayLower: {1}, overlayShared: {1, 1}, overlayPrivate: {1, 2}}[o.Kind]
	for i, upper := range uppers {
		at := filepath.Join(s.Dir, fmt.Sprintf("at%d", i+1))
		options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper%d,workdir=%s/work%d", s.disk, s.disk, upper, s.disk, i+1)
		if err := s.mount(at, "overlay", "overlay", 0, options); err != nil {
			return err
		}
		s.Routes = append(s.Routes, filepath.Join(at, s.jobs()))
	}
	return nil
}

// jobs is the directory that is surveyed, within a mount.
func (s *Stand) jobs() string {
	if s.Target.Overlay.Kind == overlayLower {
		return "jobs"
	}
	return ""
}

func (s *Stand) makeBind() error {
	for _, name := range []string{"at1", "at2"} {
		at := filepath.Join(s.Dir, name)
		if err := s.mount(at, s.disk, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		s.Routes = append(s.Routes, at)
	}
	return nil
}
