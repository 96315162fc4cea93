package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// targetFacts are labels and texts: what the target is, and which locks it was told to have beside the ones it
// was measured to have.
func targetFacts(t *result.Target, all bool) [][2]string {
	var facts [][2]string
	for i := range t.Routes {
		label := "path"
		if len(t.Routes) > 1 {
			label = fmt.Sprint("route ", i)
		}
		facts = append(facts, [2]string{label, route(t, i, all)})
	}
	scope := string(t.Scope)
	if t.ScopeWhy != "" {
		scope += ": " + t.ScopeWhy
	}
	facts = append(facts, [2]string{"scope", scope})
	if locks := locks(t); locks != "" {
		facts = append(facts, [2]string{"locks", locks})
	}
	return facts
}

func route(t *result.Target, i int, all bool) string {
	r := &t.Routes[i]
	s := r.Path
	if slices.ContainsFunc(t.Routes, func(other result.Route) bool { return other.Host != r.Host }) {
		s += " on " + r.Host
	}
	mount := []string{filesystem(r)}
	if r.Mount != "" {
		mount = append(mount, "mounted at "+r.Mount)
	}
	if options := options(r, all); len(options) > 0 {
		mount = append(mount, strings.Join(options, ", "))
	}
	if r.NFS != nil && r.NFS.ClientID != "" {
		mount = append(mount, "client identifier "+r.NFS.ClientID)
	}
	if r.NFS != nil && r.NFS.Foreign {
		mount = append(mount, "of another network namespace")
	}
	return s + ": " + strings.Join(mount, "; ")
}

func filesystem(r *result.Route) string {
	s := r.FSType
	if s == "" {
		s = "unknown filesystem"
	}
	if r.NFS != nil && r.NFS.Version != "" {
		s += " " + r.NFS.Version
	}
	if r.Source != "" && r.Source != r.FSType {
		s += " from " + r.Source
	}
	if r.Superblock != "" {
		s += " (" + r.Superblock + ")"
	}
	return s
}

// options lists the mount options that bear on a promise. What is left out is known not to; an option that
// nobody here has heard of is shown.
func options(r *result.Route, all bool) []string {
	var shown []string
	for _, o := range slices.Concat(r.Options, r.SuperOpts) {
		key, _, _ := strings.Cut(o, "=")
		if !slices.Contains(shown, o) && (all || !slices.Contains(idle(), key)) {
			shown = append(shown, o)
		}
	}
	return shown
}

func idle() []string {
	return []string{"rw", "relatime", "noatime", "nodiratime", "strictatime", "lazytime", "nosuid", "nodev", "noexec",
		"seclabel", "rsize", "wsize", "bsize", "namlen", "timeo", "retrans", "port", "mountport", "mountaddr",
		"mountproto", "mountvers", "addr", "clientaddr", "inode64", "inode32", "attr2", "logbufs", "logbsize", "noquota",
		"stripe", "lowerdir", "upperdir", "workdir", "uid", "gid", "user_id", "group_id", "fmask", "dmask", "file_mode",
		"dir_mode", "resuid", "resgid", "username", "domain", "size", "nr_inodes", "space_cache", "ssd", "discard", "subvolid", "subvol"}
}

// ofLocks are the classes of locks.
var ofLocks = []string{"enforced", "local-only", "no-op"}

// locks puts the options that switch locks off or make them local beside the measured answer.
func locks(t *result.Target) string {
	var told, measured []string
	for _, r := range t.Routes {
		for _, o := range r.LockOpts {
			if !slices.Contains(told, o) {
				told = append(told, o)
			}
		}
	}
	for i := range t.Findings {
		if f := &t.Findings[i]; slices.Contains(ofLocks, f.Class) {
			measured = append(measured, f.Promise+" "+verdict(f))
		}
	}
	switch {
	case len(told)+len(measured) == 0:
		return ""
	case len(told) == 0:
		return "no mount option weakens them; measured: " + strings.Join(measured, "; ")
	case len(measured) == 0:
		return "mounted with " + strings.Join(told, ", ") + "; not measured"
	}
	return "mounted with " + strings.Join(told, ", ") + "; measured: " + strings.Join(measured, "; ")
}

// runFacts say on which machine, when, and by which program. What is not known is left out.
func runFacts(f *result.File, all bool) [][2]string {
	facts := [][2]string{{"host", host(&f.Host, all)}, {"run", run(f)}}
	for i := range f.Hosts {
		facts = append(facts, [2]string{"joined", joined(&f.Hosts[i], all)})
	}
	set := slices.DeleteFunc(slices.Clone(f.Conditions), func(c string) bool { return strings.HasSuffix(c, "=") })
	if len(set) > 0 {
		facts = append(facts, [2]string{"under", strings.Join(set, " ")})
	}
	if slices.ContainsFunc(f.Targets, func(t result.Target) bool { return len(t.Findings) > 0 }) {
		facts = append(facts, [2]string{"misses", "which faults these probes find, and how rare: docs/calibration.md, or claimbench calibrate for this machine"})
	}
	return facts
}

// joined is one of several hosts, with what is known of its clock.
func joined(j *result.Joined, all bool) string {
	s := host(&j.Host, all)
	switch {
	case j.OwnKernel:
		s += ", on the kernel of the coordinator"
	case j.UnsureUS != nil:
		s += fmt.Sprintf(", clock corrected by %.6f s, give or take %.0f µs", j.OffsetS, *j.UnsureUS)
	}
	if j.Lost != "" {
		s += "; " + j.Lost
	}
	return s
}

// bequests say when what each lost host held was given to another.
func bequests(f *result.File) (all []string) {
	for _, j := range f.Hosts {
		var waits []string
		for _, h := range j.Held {
			waits = append(waits, h.What+" "+wait(&h))
		}
		if len(waits) > 0 {
			all = append(all, fmt.Sprintf("What %s held was given to another, counted from the last sign of it: %s.", j.Host.Name, strings.Join(waits, ", ")))
		}
	}
	return all
}

func wait(h *result.Held) string {
	switch {
	case h.GivenS == 0:
		return fmt.Sprintf("not within %.0f s", h.RefusedS)
	case h.RefusedS == 0:
		return fmt.Sprintf("within %.1f s", h.GivenS)
	case h.GivenS-h.RefusedS > 1: // one question was not answered at once
		return fmt.Sprintf("after %.1f to %.1f s", h.RefusedS, h.GivenS)
	default:
		return fmt.Sprintf("after %.1f s", h.GivenS)
	}
}

func host(h *result.Host, all bool) string {
	parts := []string{h.Name, strings.TrimSpace("Linux " + h.Kernel), h.OS, h.Arch}
	if h.Kernel == "" {
		parts[1] = ""
	}
	if h.CPUs > 0 {
		parts = append(parts, cpus(h))
	}
	parts = append(parts, h.Virtualization, h.Container)
	if all {
		parts = append(parts, "CPUs allowed "+h.CPUsAllowed, "clock "+h.Clock, "NTP "+h.NTP, fmt.Sprint("uid ", h.UID))
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" || strings.HasSuffix(s, " ") })
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, ", ")
}

// cpus says how many the contenders could use: on fewer than two no calls of a local filesystem overlap.
func cpus(h *result.Host) string {
	s := fmt.Sprintf("%d CPUs", h.CPUs)
	if h.CPUs > 1 && h.CPUsAllowed != "" && h.CPUsAllowed != fmt.Sprintf("0-%d", h.CPUs-1) {
		s += " (allowed: " + h.CPUsAllowed + ")"
	}
	return s
}

func run(f *result.File) string {
	tool := "claimbench " + f.Tool.Version
	if f.Tool.Commit != "" {
		tool += " (" + f.Tool.Commit + ")"
	}
	return fmt.Sprintf("%s, %s, %s, seed %d", tool, f.Started.UTC().Format("2006-01-02 15:04:05 UTC"), span(f.DurationS), f.Seed)
}
