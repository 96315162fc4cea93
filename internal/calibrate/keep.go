package calibrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimbench/claimbench/internal/result"
)

// A Kept says which parts are those of an earlier calibration, and of which.
type Kept struct {
	Parts   []string    `json:"parts"`
	Tool    result.Tool `json:"tool"`
	Started time.Time   `json:"started"`
	Seed    uint64      `json:"seed"`
}

// Keep takes the parts that were not run now from an earlier calibration, on the same kernel and of the same sizes. It
// stays visible which those are.
func (f *File) Keep(old *File, ran []string) error {
	if f.Sizes != old.Sizes || f.Host.Kernel != old.Host.Kernel {
		return errors.New("it has other sizes, or is of another kernel")
	}
	k := Kept{Tool: old.Tool, Started: old.Started, Seed: old.Seed}
	for name, keep := range map[string]func(){
		"dilution": func() { f.Diluted = old.Diluted },
		"exhibits": func() { f.Exhibits = old.Exhibits },
		"good":     func() { f.Good = old.Good },
		"engine":   func() { f.Engine = old.Engine },
	} {
		if !slices.Contains(ran, name) {
			keep()
			k.Parts = append(k.Parts, name)
		}
	}
	slices.Sort(k.Parts)
	f.Kept = append(f.Kept, k)
	return nil
}

func (k *Kept) String() string {
	return fmt.Sprintf("%s: of %s, seed %d, claimbench %s", strings.Join(k.Parts, ", "), k.Started.UTC().Format("2006-01-02 15:04 MST"), k.Seed, k.Tool.Version)
}
