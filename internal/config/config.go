// Package config is the settings of a survey: the built-in ones and those of a user's YAML file, read strictly,
// so that a misspelt key or a value out of range is an error and not a default. It is the only package that
// knows YAML.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/claimbench/claimbench/configs"
)

// A Config is the settings of one survey. quick.yaml, in package configs, says what each one means and holds its
// default; the zero Config is not a valid one.
type Config struct {
	Budget       time.Duration `yaml:"budget"`        // of the whole survey
	Contenders   []int         `yaml:"contenders"`    // processes that race at once; one run of a probe for each
	Rounds       int           `yaml:"rounds"`        // contested rounds wanted of a probe with a single winner
	ProbeTime    time.Duration `yaml:"probe_time"`    // most a probe may take on one target
	ScanShare    float64       `yaml:"scan_share"`    // fraction of the rounds whose start offsets sweep
	ColdRounds   int           `yaml:"cold_rounds"`   // rounds in which no cache is warm
	ColdPause    time.Duration `yaml:"cold_pause"`    // before each of them
	HangAfter    time.Duration `yaml:"hang_after"`    // no progress for this long is "hung"
	ReleaseWait  time.Duration `yaml:"release_wait"`  // how long a lock may take to be released
	MaxWait      time.Duration `yaml:"max_wait"`      // how long a change may take to be seen
	MinContested int           `yaml:"min_contested"` // fewer contested rounds are unproven
	Probes       []string      `yaml:"probes"`        // names; empty is all
	Workloads    []string      `yaml:"workloads"`     // of the bench, by name; empty is none
	Trials       int           `yaml:"trials"`        // of each protocol in each of them
	DeathsOf     []string      `yaml:"deaths_of"`     // protocols whose contenders are killed at every step
	Require      []string      `yaml:"require"`       // protocols and promises that decide the exit status
	Disposable   []string      `yaml:"disposable"`    // directories on filesystems that may be filled up
	Seed         uint64        `yaml:"seed"`          // 0 is a random one
}

// builtin names the surveys in package configs; each is its file without the ".yaml".
func builtin() []string { return []string{"quick", "full"} }

// Named is the built-in survey of that name: quick or full.
func Named(name string) (Config, error) {
	file := name + ".yaml"
	data, err := configs.Files.ReadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("unknown survey %q%s", name, hint(name, "survey", builtin()))
	}
	if name == "quick" {
		return decode(file, data, Config{})
	}
	quick, err := Named("quick")
	if err != nil {
		return Config{}, err
	}
	return decode(file, data, quick)
}

// maxBytes is far above any survey's file, and keeps a path to something else from filling the memory.
const maxBytes = 1 << 20

// Load is the survey in the YAML file at path, read over the built-in quick one: keys that the file does not set
// are as in quick.yaml, and an empty file is the quick survey. What is wrong with the file's content is an
// *Error; every error is one line.
func Load(path string) (Config, error) {
	quick, err := Named("quick")
	if err != nil {
		return Config{}, err
	}
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, fmt.Errorf("%w; the built-in surveys are %s", err, strings.Join(builtin(), " and "))
	}
	if err != nil {
		return Config{}, err
	}
	return decode(path, data, quick)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, &Error{File: path, Msg: "larger than 1 MiB, so not a survey"}
	}
	return data, nil
}

// Validate says which setting is out of range, for a Config that was changed after it was loaded.
func (c Config) Validate() error {
	for _, s := range c.settings() {
		if s.wrong != "" {
			return fmt.Errorf("%s: %s", s.key, s.wrong)
		}
	}
	return nil
}

// Conditions is the settings as key=value, in the order of quick.yaml, for the record of a survey.
func (c Config) Conditions() []string {
	var list []string
	for _, s := range c.settings() {
		list = append(list, s.key+"="+s.String())
	}
	return list
}
