package engine

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// reclaimBatch is the most that one call of Reclaim removes, so that it does
// not keep a directory busy for long.
const reclaimBatch = 1000

// Quarantines lists what evicted and dead contenders left in a claim directory,
// and why it may not go yet. It takes the times from the directory's parameters
// file. generations leaves nothing.
func Quarantines(dir string) ([]Quarantine, error) {
	var all []Quarantine
	err := withReclaimer(dir, func(r reclaimer) (err error) {
		all, err = r.Quarantines()
		return err
	})
	return all, err
}

// Reclaim removes those of them that nobody can still act on, at most 1000 in
// one call. What cannot be removed is reported in the error and does not keep
// the rest. It is for a job that runs now and then; claims do not need it.
func Reclaim(dir string) (Reclaimed, error) {
	var done Reclaimed
	err := withReclaimer(dir, func(r reclaimer) (err error) {
		done, err = r.Reclaim(reclaimBatch)
		return err
	})
	return done, err
}

func withReclaimer(dir string, use func(reclaimer) error) error {
	fs, err := OpenDir(dir)
	if err != nil {
		return dirError(dir, err)
	}
	p, err := readParams(fs)
	if err == nil {
		err = use(reclaimer{fs: fs, params: p})
	}
	return errors.Join(err, fs.Close())
}

// readParams reads the parameters file that counts.
func readParams(fs FS) (Params, error) {
	var found *slot
	for n := 1; ; n++ {
		s, err := readSlot(fs, paramsName(n))
		if errors.Is(err, syscall.ENOENT) {
			break
		}
		if err != nil {
			return Params{}, err
		}
		found = &s
	}
	if found == nil {
		return Params{}, &ContractError{Field: "dir", Rule: "a claim directory, with a file " + paramsName(1)}
	}
	if found.torn {
		return Params{}, fmt.Errorf("read %s: %w", found.name, errUnreadable)
	}
	return parseParams(found.name, string(found.rec.body))
}

func parseParams(name, text string) (Params, error) {
	var p Params
	fields := map[string]*time.Duration{"TTL": &p.TTL, "Deadline": &p.Deadline, "Margin": &p.Margin, "Slack": &p.Slack}
	for line := range strings.Lines(text) {
		field, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		target, ok := fields[field]
		if !ok {
			continue
		}
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return p, fmt.Errorf("read %s: %s is %q, not a positive duration", name, field, value)
		}
		*target = d
		delete(fields, field)
	}
	for field := range fields {
		return p, fmt.Errorf("read %s: no %s in it", name, field)
	}
	return p, nil
}
