package facts

import (
	"strings"

	"github.com/moby/sys/mountinfo"
)

func mountByID(mounts []*mountinfo.Info, id uint64) *mountinfo.Info {
	for _, m := range mounts {
		if uint64(m.ID) == id {
			return m
		}
	}
	return nil
}

// mountByPath walks the mount tree as path lookup does: from the root, and at each step over to the mount that
// covers the nearest directory on the way. The longest mount point is not always the answer, since a later mount
// on a parent directory hides it. The path must be absolute and free of symbolic links.
func mountByPath(mounts []*mountinfo.Info, path string) *mountinfo.Info {
	at := rootMount(mounts)
	for next := at; next != nil; next = nearestCover(mounts, at, path) {
		at = next
	}
	return at
}

// rootMount is the mount at / whose parent is not listed, being outside what this process can reach.
func rootMount(mounts []*mountinfo.Info) *mountinfo.Info {
	for _, m := range mounts {
		if m.Mountpoint == "/" && (m.Parent == m.ID || mountByID(mounts, uint64(m.Parent)) == nil) {
			return m
		}
	}
	return nil
}

// nearestCover is the child mount of at that a lookup of path crosses first.
func nearestCover(mounts []*mountinfo.Info, at *mountinfo.Info, path string) *mountinfo.Info {
	var nearest *mountinfo.Info
	for _, m := range mounts {
		if m.Parent != at.ID || m == at || !lies(path, m.Mountpoint) {
			continue
		}
		if nearest == nil || len(m.Mountpoint) < len(nearest.Mountpoint) {
			nearest = m
		}
	}
	return nearest
}

// lies reports whether path is dir or something under it.
func lies(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
