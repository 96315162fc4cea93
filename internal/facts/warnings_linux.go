package facts

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
)

// Warnings reads what surrounds a route, and says what endangers claims there. It looks at directory entries on the
// path and at /proc, and writes nothing.
func Warnings(r *result.Route, host *result.Host) []string {
	s := lookAround(r.Path)
	s.mount, s.pidNamespace = r.Mount, host.PIDNamespace
	return s.warnings()
}

// lookAround reads what surrounds an absolute path. What cannot be read is left empty.
func lookAround(path string) surroundings {
	s := surroundings{path: path, protectedRegular: text("/proc/sys/fs/protected_regular")}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		s.path = resolved
	}
	if fi, err := os.Stat(s.path); err == nil {
		s.mode = fi.Mode()
	}
	for dir := s.path; dir != "/"; dir = filepath.Dir(dir) {
		if isCacheTag(filepath.Join(dir, "CACHEDIR.TAG")) {
			s.tagged = append(s.tagged, dir)
		}
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil { // sd_booted(3)
		s.cleaned = tmpfilesLines("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/lib/tmpfiles.d")
	}
	for _, name := range []string{"tmpreaper", "tmpwatch"} {
		if _, err := os.Stat("/etc/cron.daily/" + name); err == nil {
			s.cron = name
		}
	}
	return s
}

// cacheTag begins the file that marks a cache (bford.info/cachedir).
const cacheTag = "Signature: 8a477f597d28d172789f06886806bc55"

// isCacheTag does not wait for whoever would write to a fifo of that name.
func isCacheTag(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	b := make([]byte, len(cacheTag))
	n, err := unix.Read(fd, b)
	return err == nil && bytes.Equal(b[:n], []byte(cacheTag))
}

// tmpfilesLines are the lines of all files of tmpfiles.d(5): a file in an earlier directory replaces one of its name in
// a later.
func tmpfilesLines(dirs ...string) (lines []string) {
	seen := map[string]string{}
	for _, dir := range dirs {
		names, _ := filepath.Glob(filepath.Join(dir, "*.conf"))
		for _, name := range names {
			if base := filepath.Base(name); seen[base] == "" {
				seen[base] = name
			}
		}
	}
	var bases []string
	for base := range seen {
		bases = append(bases, base)
	}
	slices.Sort(bases)
	for _, base := range bases {
		for line := range strings.Lines(text(seen[base])) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				lines = append(lines, line)
			}
		}
	}
	return lines
}
