package facts

import (
	"os"
	"strings"
)

func readContainerSigns() containerSigns {
	s := containerSigns{manager: containerManager(), pid: namespace("pid")}
	for _, e := range engines {
		if e.markThere() {
			s.marks = append(s.marks, e.name)
		}
	}
	for _, initial := range initialNamespaces {
		kind, _, _ := strings.Cut(initial, ":")
		s.namespaces = append(s.namespaces, namespace(kind))
	}
	if root, err := mountOf("/"); err == nil && root != nil {
		s.rootType = root.FSType
	}
	return s
}

// containerManager reads what systemd.io/CONTAINER_INTERFACE asks container managers to leave for the inside, and
// what systemd as the container's init makes of it. Both lie on a /run of this boot, never in an image.
func containerManager() string {
	for _, path := range []string{"/run/host/container-manager", "/run/systemd/container"} {
		if name := text(path); name != "" {
			return name
		}
	}
	return ""
}

func (e engine) markThere() bool {
	if e.env != "" && os.Getenv(e.env) != "" {
		return true
	}
	for _, path := range e.files {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}
