package probes

import (
	"regexp"
	"strings"
	"testing"

	sloppy "github.com/claimbench/claimbench/internal/sloppyfs"
)

// Faults of times, of inode numbers, and of what makes things durable.
var timeFaults = []planted{
	{"times are multiples of 2 s", 1, one(sloppy.TimesCoarse), "timestamps", broken, "", []string{coarseTimes}, "in steps of 2s"},
	{"and over two mounts", 2, one(sloppy.TimesCoarse), "timestamps", broken, "", []string{coarseTimes}, "in steps of 2s"},
	{"times move once per tick", 1, one(sloppy.TimesTick), "timestamps", holds, "", nil, "the smallest step seen is 10ms"},
	{"times stand still", 1, one(sloppy.TimesStill), "timestamps", broken, "", []string{timesStill}, "create"},
	{"a touch moves no time", 1, one(sloppy.TouchIgnored), "timestamps", broken, "", []string{timesStill}, "touch moved no time"},
	{"times run backwards", 1, one(sloppy.TimesBackwards), "timestamps", broken, "", []string{timesBack}, "earlier"},
	{"times are those of the look", 1, one(sloppy.TimesOfLook), "timestamps", unproven, "", nil, "control"},
	{"a touch is refused", 1, one(sloppy.TouchRefused), "timestamps", unsupported, "", nil, "EPERM"},
	{"a time that is set is not kept", 1, one(sloppy.TimesNotSet), "timestamps", holds, "", nil, ""},
	{"each client stamps by its own clock, which moves on", 2, one(sloppy.ClientStamps), "timestamps", holds, "", nil, ""},
	{"inode numbers change", 2, one(sloppy.InodesUnstable), "timestamps", holds, "", nil, ""},
	{"content comes late", 2, one(sloppy.WritesDelayed), "timestamps", holds, "", nil, ""},

	{"each client stamps by its own clock", 2, one(sloppy.ClientStamps), "clock-skew", broken, "", []string{routesDiffer}, "apart"},
	{"one mount has one client, whose clock is right", 1, one(sloppy.ClientStamps), "clock-skew", holds, "", nil, "one clock"},
	{"a touch stamps by the client's clock", 1, one(sloppy.TouchSkewed), "clock-skew", broken, "", []string{actsDiffer}, "touch"},
	{"times are multiples of 2 s", 1, one(sloppy.TimesCoarse), "clock-skew", holds, "", nil, "one clock"},
	{"times move once per tick", 2, one(sloppy.TimesTick), "clock-skew", holds, "", nil, "one clock"},
	{"times stand still", 1, one(sloppy.TimesStill), "clock-skew", unproven, "", nil, "moved no time"},
	{"a touch moves no time", 2, one(sloppy.TouchIgnored), "clock-skew", unproven, "", nil, "touch"},
	{"a touch is refused", 1, one(sloppy.TouchRefused), "clock-skew", unsupported, "", nil, "EPERM"},
	{"inode numbers change", 2, one(sloppy.InodesUnstable), "clock-skew", holds, "", nil, ""},

	{"inode numbers come back", 1, one(sloppy.InodesReused), "inode-reuse", holds, reused, nil, "the inode number and ctime does"},
	{"and over two mounts", 2, one(sloppy.InodesReused), "inode-reuse", holds, reused, nil, "the inode number and ctime does"},
	{"inode numbers come back within one tick", 1, each(sloppy.InodesReused, sloppy.TimesTick), "inode-reuse", holds, reused, nil, "from 12ms later on, and before that nothing but the content"},
	{"inode numbers come back within one step of the clock", 1, each(sloppy.InodesReused, sloppy.TimesCoarse), "inode-reuse", broken, reused, []string{twins}, "the same inode number"},
	{"inode numbers come back, and times stand still", 2, each(sloppy.InodesReused, sloppy.TimesStill), "inode-reuse", broken, reused, []string{twins}, "the same inode number"},
	{"inode numbers change", 1, one(sloppy.InodesUnstable), "inode-reuse", broken, "", []string{unstableNumber}, "nobody changed"},
	{"times stand still", 1, one(sloppy.TimesStill), "inode-reuse", holds, "", nil, "the inode number identifies"},

	{"a directory is not synced", 2, one(sloppy.DirSyncEINVAL), "durability", unsupported, onlyDirectories, nil, "EINVAL"},
	{"nothing is synced", 1, each(sloppy.DirSyncEINVAL, sloppy.SyncEINVAL), "durability", unsupported, "", nil, "EINVAL"},
	{"files are not synced", 1, one(sloppy.SyncEINVAL), "durability", unsupported, "", nil, "directories are synced"},
	{"the sync of a directory is an I/O error", 1, one(sloppy.DirSyncEIO), "durability", broken, "", []string{syncFails}, "EIO"},
	{"now and then", 1, func(s *sloppy.Share) { s.Plant(sloppy.DirSyncEIO, 9) }, "durability", broken, "", []string{syncFails}, "EIO"},
}

// The rename of a directory leaves its mtime, and an entry moves it; a link moves the ctime alone. Linux does so on all
// filesystems of its own.
func TestWhatMovesTheTimesOfDirectoriesAndLinks(t *testing.T) {
	needRoot(t)
	f := run(t, smallBench(t, 4, newTmpfs(t)), "timestamps")
	for name, want := range map[string]float64{
		"mtime_moved_by_dir_rename_share": 0, "ctime_moved_by_dir_rename_share": 1, "btime_moved_by_dir_rename_share": 0,
		"mtime_moved_by_dir_entry_share": 1, "ctime_moved_by_dir_entry_share": 1, "btime_moved_by_dir_entry_share": 0,
		"mtime_moved_by_link_share": 0, "ctime_moved_by_link_share": 1, "btime_moved_by_link_share": 0,
		"set_time_kept_to_ns": 1, "back_most_us": 0,
	} {
		if got, ok := f.Figures[name]; got != want || !ok && !strings.HasPrefix(name, "btime") { // tmpfs has it from Linux 5.18 on
			t.Errorf("%s: %v (there %v), want %v", name, got, ok, want)
		}
	}
	if want := "a directory moves its ctime and not its mtime"; !strings.Contains(f.Reason, want) || len(f.Warnings) > 0 {
		t.Errorf("want %q and no warnings: %s", want, describe(&f))
	}
}

func TestATimeThatIsNotKeptIsSaid(t *testing.T) {
	f := run(t, smallBench(t, 4, newSloppy(t, 1, one(sloppy.TimesNotSet))...), "timestamps")
	if _, ok := f.Figures["set_time_kept_to_ns"]; ok || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "not kept") {
		t.Errorf("%v %s", f.Figures, describe(&f))
	}
}

func TestTheAdviceNamesTheSmallestTTL(t *testing.T) {
	f := run(t, smallBench(t, 4, newSloppy(t, 2, one(sloppy.ClientStamps))...), "clock-skew")
	if ttl := f.Figures["ttl_least_s"]; ttl < 50 || ttl > 60 || !regexp.MustCompile(`a TTL of at least 5\d\.\d+s\.$`).MatchString(f.Advice) {
		t.Errorf("clocks that are 5 s apart: a TTL of %v s: %s\n%s", ttl, f.Advice, describe(&f))
	}
	if between := f.Figures["clocks_apart_us"]; between < 4.9e6 || between > 5.1e6 {
		t.Errorf("%v µs apart", between)
	}
}
