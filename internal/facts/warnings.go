package facts

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// surroundings are what is known of the place that a target lies in, beside its mount.
type surroundings struct {
	path             string // absolute, free of symbolic links
	mount            string // the mount point that it lies on
	mode             fs.FileMode
	protectedRegular string   // fs.protected_regular, proc_sys_fs(5)
	cleaned          []string // lines of tmpfiles.d(5), where something acts on them
	cron             string   // another cleaner of temporary directories
	tagged           []string // directories on the path with a CACHEDIR.TAG
	pidNamespace     string
}

// warnings are the dangers to claims that no probe would see in a minute, each one sentence.
func (s *surroundings) warnings() []string {
	var found []string
	for _, w := range []string{s.sticky(), s.cleaner(), s.cache(), s.pids()} {
		if w != "" {
			found = append(found, w)
		}
	}
	return found
}

// sticky is about fs.protected_regular: with 1 an open with O_CREAT of a file that belongs neither to the caller nor to
// the directory's owner is refused in a sticky directory that anybody may write to, with 2 also in one that a group may.
func (s *surroundings) sticky() string {
	open := s.mode.Perm()&0o002 != 0 && (s.protectedRegular == "1" || s.protectedRegular == "2") || s.mode.Perm()&0o020 != 0 && s.protectedRegular == "2"
	if s.mode&fs.ModeSticky == 0 || !open {
		return ""
	}
	return "the directory is sticky and open to others, and fs.protected_regular is " + s.protectedRegular +
		": an open with O_CREAT of another user's file in it gives EACCES, and only the owner of a file may remove or rename it; keep claims in a directory of their own below it"
}

// cleaner is about programs that remove what has not been touched for a while.
func (s *surroundings) cleaner() string {
	const harm = ": a claim or a lock file that is older is removed while it is held, and finished work is done again; keep claims elsewhere"
	if age, line := s.tmpfilesAge(); age != "" {
		return fmt.Sprintf("systemd-tmpfiles removes what is older than %s here (%q)", age, line) + harm
	}
	if s.cron != "" && (lies(s.path, "/tmp") || lies(s.path, "/var/tmp")) {
		return s.cron + " removes old files here" + harm
	}
	return ""
}

// tmpfilesAge is the age of the line of tmpfiles.d(5) that the target falls under: the one with the longest path, since
// what has a line of its own is left out of the cleaning above it. Other mounts are not entered.
func (s *surroundings) tmpfilesAge() (age, line string) {
	longest := -1
	for _, l := range s.cleaned {
		f := strings.Fields(l)
		if len(f) < 2 || !strings.ContainsRune("dDevqQxX", rune(f[0][0])) {
			continue
		}
		at, found := s.under(expand(f[1]), f[0][0] == 'X')
		if !found || len(at) <= longest {
			continue
		}
		longest, age, line = len(at), "", strings.Join(f, " ")
		if len(f) > 5 && f[5] != "-" && f[0][0] != 'x' && f[0][0] != 'X' {
			_, after, isBy := strings.Cut(strings.TrimLeft(f[5], "~"), ":") // by which times: "bmA:10d"
			if age = after; !isBy {
				age = strings.TrimLeft(f[5], "~")
			}
		}
	}
	return age, line
}

// under finds the directory on the target's path, on its own mount, that a pattern names.
func (s *surroundings) under(pattern string, exactly bool) (at string, found bool) {
	for at = s.path; ; at = filepath.Dir(at) {
		if ok, err := filepath.Match(pattern, at); ok && err == nil {
			return at, lies(at, s.mount)
		}
		if at == "/" || exactly {
			return "", false
		}
	}
}

// expand replaces the specifiers of tmpfiles.d(5) that have one meaning on every system.
func expand(path string) string {
	return strings.NewReplacer("%T", "/tmp", "%V", "/var/tmp", "%C", "/var/cache", "%t", "/run", "%S", "/var/lib", "%L", "/var/log", "%%", "%").Replace(path)
}

// cacheNames are directories that their owners, and people short of space, empty without asking.
var cacheNames = []string{".cache", "Caches"}

func (s *surroundings) cache() string {
	for dir := s.path; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		why := ""
		switch {
		case slices.Contains(s.tagged, dir):
			why = "it has a CACHEDIR.TAG"
		case slices.Contains(cacheNames, filepath.Base(dir)) || dir == "/var/cache":
			why = "by its name"
		default:
			continue
		}
		return fmt.Sprintf("%s is a cache (%s): whoever empties it removes claims and records of finished work, and back-ups leave it out; keep claims elsewhere", dir, why)
	}
	return ""
}

// pids is about claims that are judged by whether their owner is alive. Namespaces hide processes, and each has a pid 1.
func (s *surroundings) pids() string {
	if s.pidNamespace == "" || s.pidNamespace == InitialPIDNamespace {
		return ""
	}
	return "this container has process numbers of its own: of a claim made by another, kill(pid, 0) and /proc say nothing, and the same number may be this one's own; use claims that expire"
}
