package survey

import (
	"maps"
	"slices"

	"github.com/claimbench/claimbench/internal/explore"
	"github.com/claimbench/claimbench/internal/result"
)

// A sign is a finding that shows a weakness which was explored.
type sign struct {
	promise string
	verdict result.Verdict
	class   string   // "" is any
	kinds   []string // of which one was seen; nil is any, and then the weakness is all that is wrong
	shows   explore.Weakness
}

// signs leads from the findings to the weaknesses. What a finding shows beside them, a kind of violation that no sign
// of its promise has, was not explored.
var signs = []sign{
	// Two winners of one race: the create is a look-up and a create, with room for another's between them.
	{"excl-create", result.Broken, "", []string{"several-winners"}, explore.ExclNotAtomic},
	{"excl-create-clones", result.Broken, "", []string{"several-winners"}, explore.ExclNotAtomic},
	// Two winners one after the other: the same, and what is between is a cached look-up, which needs no race.
	{"excl-create", result.Broken, "", []string{"taken-name-given-away"}, explore.ExclNotAtomic},
	{"excl-create", result.Broken, "", []string{"taken-name-given-away"}, explore.StaleNegative},
	// A name that was removed is answered from a cached look-up: names are not seen as they are.
	{"excl-create", result.Broken, "", []string{"released-name-stays-taken"}, explore.StaleNegative},
	{"mkdir", result.Broken, "", []string{"released-name-stays-taken"}, explore.StaleNegative},
	{"link", result.Broken, "", []string{"released-name-stays-taken"}, explore.StaleNegative},
	// The winner is told EEXIST: the reply was lost, and the request sent again met its own object.
	{"excl-create", result.Broken, "", []string{"success-denied"}, explore.LostReply},
	{"mkdir", result.Broken, "", []string{"success-denied"}, explore.LostReply},
	{"link", result.Broken, "", []string{"success-denied"}, explore.LostReply},
	// Several holders within one route, and no error.
	{"flock", result.Broken, "no-op", []string{"several-winners"}, explore.FlockNoop},
	// Several holders on several routes; also where it was not tried whether there are several within one.
	{"flock", result.Broken, "", []string{"several-winners"}, explore.FlockLocal},
	// A claim that appears under its name is not whole at once.
	{"publish", result.Broken, "", []string{"content-empty", "content-torn"}, explore.TornWrites},
	// A directory that is not empty is replaced: in a race two are moved there, or one after the other.
	{"rename-dir-occupied", result.Broken, "", []string{"several-winners", "taken-name-given-away"}, explore.RenameOccupied},
	// There are no hard links, whichever errno says so.
	{"link", result.Unsupported, "", nil, explore.NoLinks},
	// Names, or the newest entries of a listing, are seen late over another route. Content or times that are seen late
	// were not explored.
	{"visibility", result.Broken, "", []string{"new-name-late", "removed-name-stays", "replaced-file-stays", "name-absent", "stale-handle"}, explore.StaleNegative},
	{"visibility", result.Broken, "", []string{"new-entry-late", "removed-entry-stays"}, explore.StaleReaddir},
	// Files are stamped by clocks that differ by more than claims allow for.
	{"clock-skew", result.Broken, "", nil, explore.ClockSkew},
	// Coarse times were explored; times that run backwards, or that nothing sets, were not.
	{"timestamps", result.Broken, "", []string{"coarse"}, explore.CoarseTimes},
	// The number of a removed file comes back. That is usual, and the promise holds where something else tells the files
	// apart. A number that changes by itself was not explored.
	{"inode-reuse", result.Holds, "reused", nil, explore.InodeReuse},
	{"inode-reuse", result.Broken, "", []string{"twins"}, explore.InodeReuse},
	// Case is folded, which breaks no promise: no name of a claim differs from another by its case alone. Two names of
	// claims that are one, or that cannot be made, are no weakness that was explored: see stops.
	{"names", result.Holds, "case-folding", nil, explore.CaseFolding},
}

// A proof is the promise that has to hold for a weakness to be absent.
type proof struct {
	weakness explore.Weakness
	promise  string
	zero     string // a figure of the finding that must be there, and 0
}

// proofs has each weakness once. Where the promise was not tested the weakness may be there.
var proofs = []proof{
	{explore.ExclNotAtomic, "excl-create", ""},
	{explore.FlockNoop, "flock", ""},
	{explore.FlockLocal, "flock", ""}, // at the scope of the finding
	{explore.StaleNegative, "visibility", ""},
	{explore.StaleReaddir, "visibility", ""},
	{explore.LostReply, "excl-create", ""}, // of mkdir and link, those protocols say that need them
	{explore.ClockSkew, "clock-skew", ""},
	{explore.CoarseTimes, "timestamps", ""},
	{explore.TornWrites, "publish", ""}, // for what is published whole; a create and a write is torn everywhere
	{explore.RenameOccupied, "rename-dir-occupied", ""},
	{explore.InodeReuse, "inode-reuse", ""},
	{explore.CaseFolding, "names", ""},
	{explore.NoLinks, "link", ""},
	// The attempts in sequence remove a name and look that it is gone; one that failed may have been refused that.
	{explore.NoUnlink, "excl-create", "sequences_failed_count"},
}

// given are those that one kernel keeps for a filesystem of its own, between processes: it has one cache of names and
// pages, and one clock.
var given = []string{"visibility", "timestamps", "clock-skew"}

// local are the filesystem types that nothing but one kernel writes to. FUSE is not among them: there a server
// answers, and may be a client of another.
var local = []string{
	"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "overlay", "ramfs", "reiserfs", "tmpfs", "xfs", "zfs",
}

// oneKernel reports whether all that reaches the target goes through one superblock of one kernel's own.
func oneKernel(t *result.Target) bool {
	if t.Scope != result.ScopeProcess || len(t.Routes) == 0 {
		return false
	}
	first := &t.Routes[0]
	return !slices.ContainsFunc(t.Routes, func(r result.Route) bool {
		return !slices.Contains(local, r.FSType) || r.Superblock == "" || r.Superblock != first.Superblock || r.Host != first.Host
	})
}

// shown is what a finding shows of the weaknesses, and whether that is all that is wrong with it.
func shown(f *result.Finding) (weak []explore.Weakness, all bool) {
	open := maps.Clone(f.Kinds)
	for _, s := range signs {
		if s.promise != f.Promise || s.verdict != f.Verdict || s.class != "" && s.class != f.Class {
			continue
		}
		all = all || s.kinds == nil
		if s.kinds == nil || slices.ContainsFunc(s.kinds, func(kind string) bool { return f.Kinds[kind] > 0 }) {
			weak = append(weak, s.shows)
		}
		for _, kind := range s.kinds {
			delete(open, kind)
		}
	}
	return weak, all || len(weak) > 0 && len(open) == 0
}
