package calibrate

import (
	"fmt"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/renameio/v2"

	"github.com/claimbench/claimbench/internal/result"
)

// Schema names the format of a calibration file and its major version.
const Schema = "claimbench.calibration/v1"

// A File is one calibration: what was planted, and what was seen of it. Times are in seconds.
type File struct {
	Schema     string      `json:"schema"`
	Tool       result.Tool `json:"tool"`
	Started    time.Time   `json:"started"`
	DurationS  float64     `json:"duration_s"`
	Seed       uint64      `json:"seed"`
	Quick      bool        `json:"quick"`
	Incomplete string      `json:"incomplete,omitempty"` // why it ended early
	Host       result.Host `json:"host"`
	Sizes      Sizes       `json:"sizes"`
	Kept       []Kept      `json:"kept,omitempty"` // parts that are of an earlier calibration
	Missing    []Missing   `json:"missing,omitempty"`

	Diluted  []Diluted `json:"diluted,omitempty"`
	Exhibits []Exhibit `json:"exhibits,omitempty"`
	Good     []Good    `json:"good,omitempty"`
	Engine   []Engine  `json:"engine,omitempty"`
}

// A Missing is a part, or a filesystem, that could not be run.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Sizes say how much is done.
type Sizes struct {
	RareRuns     int     `json:"rare_runs"` // with a violation in a few rounds only
	RareP        float64 `json:"rare_p"`    // per round, where one of the contenders must win
	SlowP        float64 `json:"slow_p"`    // where they read and write, or wait for each other: a round takes longer
	RareWithinS  float64 `json:"rare_within_s"`
	RareProbes   int     `json:"rare_probes"`   // of those that can be diluted, the first
	PowerRuns    int     `json:"power_runs"`    // at the smallest probability that must be found
	ExhibitRuns  int     `json:"exhibit_runs"`  // of each
	ExhibitsMost int     `json:"exhibits_most"` // 0 is all
	GoodRuns     int     `json:"good_runs"`     // of each probe on each filesystem
	GoodEvery    int     `json:"good_every"`    // 1 is every probe on each; others take turns
	EngineMost   int     `json:"engine_most"`   // faults; 0 is all
	StormTrials  int     `json:"storm_trials"`  // of each protocol on each fault
}

var (
	fullSizes = Sizes{
		RareRuns: 20, RareP: 1e-4, SlowP: 1e-3, RareWithinS: 10, RareProbes: 12, PowerRuns: 20,
		ExhibitRuns: 3, GoodRuns: 5, GoodEvery: 1, StormTrials: 3,
	}
	quickSizes = Sizes{
		RareRuns: 2, RareP: 1e-4, SlowP: 1e-3, RareWithinS: 10, RareProbes: 2, PowerRuns: 1,
		ExhibitRuns: 1, ExhibitsMost: 10, GoodRuns: 1, GoodEvery: 5, EngineMost: 3, StormTrials: 2,
	}
)

// A Seen is how often something planted was caught in repeated runs. Rounds and Seconds are those until the first
// violation, of the runs that caught it, and Missed the rounds of the others.
type Seen struct {
	Runs    int       `json:"runs"`
	Caught  int       `json:"caught"`
	Rounds  []float64 `json:"rounds"`
	Seconds []float64 `json:"seconds"`
	Missed  []float64 `json:"missed,omitempty"`
}

// A Diluted is a probe whose raced operation was done wrongly in a few rounds.
type Diluted struct {
	Probe      string `json:"probe"`
	Wrong      string `json:"wrong"` // the operation that was done then
	Filesystem string `json:"filesystem"`

	P    float64 `json:"p"`    // that a round is done wrongly
	Rare Seen    `json:"rare"` // rounds are contested ones

	Contested []int   `json:"contested,omitempty"` // rounds of a survey's budget, run by run; nothing is planted
	Alarms    int     `json:"alarms"`              // of these runs, that accused the filesystem
	Stray     int     `json:"stray,omitzero"`      // violated rounds of the other runs, in which nothing was planted
	Bad       int     `json:"bad"`                 // contested rounds that were done wrongly
	BadSeen   int     `json:"bad_seen"`            // of them, that were seen to be violated
	BadDue    float64 `json:"bad_due,omitzero"`    // as many as they would be if wrong rounds were contested like others
	LeastP    float64 `json:"least_p"`             // that a survey's budget finds with 95 % power; 0 is not known
	Least     Seen    `json:"least"`               // at that probability
}

// An Exhibit is one of the museum: what was planted, and what a probe said.
type Exhibit struct {
	Name    string         `json:"name"`
	Faults  string         `json:"faults"`
	Mounts  int            `json:"mounts"`
	Probe   string         `json:"probe"`
	Verdict result.Verdict `json:"verdict"` // that must come out
	Seen    Seen           `json:"seen"`    // Caught is how often it did
	Differs []string       `json:"differs,omitempty"`
	Alarms  int            `json:"alarms"` // runs that accused the filesystem where they must not

	Repeated int `json:"repeated,omitzero"` // with a larger budget, after one that was unproven
}

// A Good is a filesystem that keeps every promise that it is known to keep, and what a probe said of it.
type Good struct {
	Filesystem string   `json:"filesystem"`
	Probe      string   `json:"probe"`
	Runs       int      `json:"runs"`
	Alarms     int      `json:"alarms"` // runs that accused it
	Unproven   int      `json:"unproven"`
	Rounds     int      `json:"rounds"`
	Said       []string `json:"said,omitempty"` // in other words than holds
}

// An Engine is what a survey without a bench calls the protocols on a filesystem with faults, and what storm made of
// them there.
type Engine struct {
	Faults    string           `json:"faults"`
	Mounts    int              `json:"mounts"`
	Protocols []EngineProtocol `json:"protocols"`
	Failed    string           `json:"failed,omitempty"` // why storm ended early
}

// An EngineProtocol is one protocol there.
type EngineProtocol struct {
	Name       string        `json:"name"`
	Verdict    result.Safety `json:"verdict"`
	Because    string        `json:"because,omitempty"`
	Trials     int           `json:"trials"`
	Void       int           `json:"void"`
	Voided     string        `json:"voided,omitempty"` // why the first was
	Duplicates int           `json:"duplicates"`
	Missed     int           `json:"missed"`
}

// Escaped says that work was lost or done twice by a protocol that was called safe.
func (p *EngineProtocol) Escaped() bool {
	return p.Verdict == result.ProtocolSafe && p.Duplicates+p.Missed > 0
}

// Encode is the file as it is saved: the same bytes for the same content.
func (f *File) Encode() ([]byte, error) {
	data, err := json.Marshal(f, json.Deterministic(true), jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
	return append(data, '\n'), err
}

// Load reads a calibration file.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := new(File)
	if err := json.Unmarshal(data, f, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	if f.Schema != Schema {
		return nil, fmt.Errorf("load %s: its schema is %q, and must be %s", path, f.Schema, Schema)
	}
	return f, nil
}

// Save replaces the file at path, whole or not at all. What is no file, such as /dev/null, is written to.
func Save(path string, data []byte) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, data, 0o644)
	}
	return renameio.WriteFile(path, data, 0o644)
}
