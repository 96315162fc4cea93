package probes

import (
	"testing"
	"time"

	sloppy "github.com/claimbench/claimbench/internal/sloppyfs"
)

var visibilityFaults = []planted{
	{"names found absent are cached", 2, one(sloppy.NegativeCached), "visibility", broken, "", []string{newNameLate}, "still did not see it"},
	{"one mount has one cache of names", 1, one(sloppy.NegativeCached), "visibility", holds, "", nil, "the first look saw every change"},
	{"names found present are cached", 2, one(sloppy.PositiveCached), "visibility", broken, "", []string{removedNameStays, oldFileStays, touchLate, contentStale}, ""},
	{"names found present are cached", 2, one(sloppy.PositiveCached), "visibility", broken, "", []string{oldFileStays, removedNameStays, touchLate, contentStale}, ""},
	{"listings are cached", 2, one(sloppy.ListingCached), "visibility", broken, "", []string{newEntryLate, removedInListing}, ""},
	{"listings are cached", 2, one(sloppy.ListingCached), "visibility", broken, "", []string{removedInListing, newEntryLate}, ""},
	{"each mount reads its own cache", 2, one(sloppy.ContentCached), "visibility", broken, "", []string{contentStale}, ""},
	{"one mount has one cache", 1, one(sloppy.ContentCached), "visibility", holds, "", nil, ""},
	{"writes arrive late", 2, one(sloppy.WritesDelayed), "visibility", broken, "", []string{contentStale}, ""},
	{"times are ignored", 1, one(sloppy.TimesIgnored), "visibility", broken, "", []string{touchLate}, ""},
	{"rename leaves a gap", 2, one(sloppy.RenameWithGap), "visibility", broken, "", []string{nameAbsent}, "kept replacing"},
	{"an existing file cannot be opened", 2, one(sloppy.OpenStale), "visibility", broken, "", []string{staleHandle, newNameLate}, ""},
	{"inode numbers change", 2, one(sloppy.InodesUnstable), "visibility", holds, "", nil, ""},
	{"permission bits are fixed", 2, one(sloppy.ModesFixed), "visibility", holds, "", nil, ""},
}

var scriptFaults = []planted{
	{"names are cut so that they are one", 1, one(sloppy.NamesMerged), "path-agreement", broken, "", []string{keysMerged}, "reached the file of key"},
	{"names are another on each mount", 2, one(sloppy.NamesPerMount), "path-agreement", broken, "", []string{pathNotReached}, "did not reach"},
	{"one mount has one set of names", 1, one(sloppy.NamesPerMount), "path-agreement", holds, "", nil, ""},
	{"names found absent are cached", 2, one(sloppy.NegativeCached), "path-agreement", holds, "", nil, ""},
	{"writes arrive late", 2, one(sloppy.WritesDelayed), "path-agreement", holds, "", nil, ""},
	{"unlink does nothing", 1, one(sloppy.UnlinkIgnored), "unlink-race", broken, "", []string{unlinkIneffective}, "a file is still there"},
	{"unlink does nothing, over two mounts", 2, one(sloppy.UnlinkIgnored), "unlink-race", broken, "", []string{unlinkIneffective}, ""},
	{"a replaced name cannot be unlinked", 2, one(sloppy.ReplacedKept), "unlink-race", unsupported, "", nil, "EBUSY"},
	{"names found present are cached", 2, one(sloppy.PositiveCached), "unlink-race", holds, "", nil, ""},
}

// What is late, but not very, breaks nothing, and is told.
func TestALateSightIsInTheFigures(t *testing.T) {
	b := smallBench(t, 4, newSloppy(t, 2, one(sloppy.NegativeBriefly))...)
	b.Time = time.Second
	f := insist(t, b, "visibility", holds)
	if f.Verdict != holds || f.Figures["slowest_us"] < 1e3 || len(f.Warnings) == 0 || f.Figures["within_a_route_max_us"] > 0 {
		t.Errorf("%s, %v", describe(&f), f.Figures)
	}
	for _, name := range []string{"created_seen_by_stat_after_an_earlier_look_max_us", "directory_made_max_us"} {
		if f.Figures[name] < 1e3 {
			t.Errorf("%s is %v", name, f.Figures[name])
		}
	}
	if late := f.Figures["created_seen_by_stat_max_us"]; late > 0 {
		t.Errorf("without an earlier look there is nothing to be late: %v µs", late)
	}
}
