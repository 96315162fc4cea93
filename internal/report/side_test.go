package report

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
)

func TestTablesNamesWhatTheFilesHave(t *testing.T) {
	known := Tables(load(t, "empty"))
	if want := []string{"protocols", "promises", "bench", "forty", "storm", "takeover", "forced", "deaths", "host-death", "stall", "unrelated", "scale", "peers"}; !slices.Equal(known, want) {
		t.Errorf("%v, want %v", known, want)
	}
	if more := Tables(load(t, "bench-odd", "bench-odd")); len(more) != len(known)+1 || !strings.HasPrefix(more[len(known)], "work|load") {
		t.Errorf("%v", more)
	}
}

func TestRowsOfOneProtocolStandTogether(t *testing.T) {
	s := sideBench(places(load(t, "bench-ext4", "bench-nfs")), "storm")
	for i := 0; i < len(s.rows); i += 2 {
		if s.rows[i][0] != s.rows[i+1][0] || s.rows[i][1] != "node7.example.net" || s.rows[i+1][1] != "node9.example.net" {
			t.Errorf("%v and %v", s.rows[i][:4], s.rows[i+1][:4])
		}
	}
}

func TestPlacesAreToldApart(t *testing.T) {
	head := func(files ...string) string {
		var names []string
		for _, h := range sideBench(places(load(t, files...)), "storm").heads {
			names = append(names, h.name)
		}
		return strings.Join(names[:5], " ")
	}
	for files, want := range map[string]string{
		"bench-ext4 bench-nfs":        "protocol host kernel filesystem scope",
		"bench-ext4 bench-ext4-later": "protocol host kernel filesystem run",
	} {
		if got := head(strings.Fields(files)...); got != want {
			t.Errorf("%s: %s, want %s", files, got, want)
		}
	}
	files := load(t, "bench-ext4")
	again := files[0].Targets[0]
	again.Name = "/srv/other"
	files[0].Targets = append(files[0].Targets, again)
	if h := sideBench(places(files), "storm").heads[4].name; h != "target" {
		t.Errorf("two targets on one filesystem are told apart by %s", h)
	}
}

func TestBenchCSVHasOneRowPerBenchRow(t *testing.T) {
	for table, want := range map[string]int{"storm": 11 + 11, "bench": 73 + 22, "protocols": 12 + 12, "promises": 8 + 6, "": 8 + 6} {
		out := formatted(t, "csv", TextOptions{Table: table}, "bench-ext4", "bench-nfs")
		records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil || len(records)-1 != want {
			t.Errorf("%q: %d rows, %v; want %d", table, len(records)-1, err, want)
		}
	}
	records, err := csv.NewReader(strings.NewReader(formatted(t, "csv", TextOptions{Table: "deaths"}, "bench-ext4"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"void": "0", "claim_p50_us": "", "claims_per_s": "", "exponent": "", "takeover_p99_ms": "", "control": "true", "missed": "9", "fstype": "ext4"} {
		if got := records[1][slices.Index(records[0], name)]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestScopeIsNeverLeftOutOfATableOfManyHosts(t *testing.T) {
	s := sideBench(places(load(t, "bench-ext4", "bench-nfs")), "storm")
	for _, width := range []int{80, 40, 1} {
		if fitted, _ := s.fit(width); !strings.Contains(namesOf(fitted), "scope") {
			t.Errorf("at %d: %s", width, namesOf(fitted))
		}
	}
}

func TestATableSaysWhatItDoesNotHave(t *testing.T) {
	for table, want := range map[string]string{
		"peers":     "node9.example.net (nfs4 4.2, scope client): not run.",
		"protocols": "node7.example.net (ext4, scope process): no protocol was judged.",
		"storm":     "INCOMPLETE: node9.example.net (nfs4 4.2, scope client): interrupted after 21 s",
		"promises":  "(fuse.<b>\\x1b[2J, scope process): no promise was tested.",
	} {
		if out := formatted(t, "table", TextOptions{Table: table}, "bench-nfs", "bench-odd", "ext4"); !strings.Contains(out, want) {
			t.Errorf("%s: %q is not in\n%s", table, want, out)
		}
	}
}
