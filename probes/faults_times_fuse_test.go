package probes

import (
	"regexp"
	"strings"
	"testing"
)

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
	f := run(t, smallBench(t, 4, newFaulty(t, 1, "times=not-set")...), "timestamps")
	if _, ok := f.Figures["set_time_kept_to_ns"]; ok || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "not kept") {
		t.Errorf("%v %s", f.Figures, describe(&f))
	}
}

func TestTheAdviceNamesTheSmallestTTL(t *testing.T) {
	f := run(t, smallBench(t, 4, newFaulty(t, 2, "times=client")...), "clock-skew")
	if ttl := f.Figures["ttl_least_s"]; ttl < 50 || ttl > 60 || !regexp.MustCompile(`a TTL of at least 5\d\.\d+s\.$`).MatchString(f.Advice) {
		t.Errorf("clocks that are 5 s apart: a TTL of %v s: %s\n%s", ttl, f.Advice, describe(&f))
	}
	if between := f.Figures["clocks_apart_us"]; between < 4.9e6 || between > 5.1e6 {
		t.Errorf("%v µs apart", between)
	}
}
