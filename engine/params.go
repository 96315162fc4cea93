package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// ParamsError means that the directory is in use with other options. Of two
// programs, the one with the shorter times would take over what the other still
// holds, so the options have to be equal.
type ParamsError struct {
	Field        string
	Ours, Theirs string
	File         string
}

func (e *ParamsError) Error() string {
	return fmt.Sprintf("%s is %s, but this directory is in use with %s (%s)", e.Field, e.Ours, e.Theirs, e.File)
}

const (
	// paramsGrace is the age at which an unreadable parameters file is no
	// longer being written by anybody.
	paramsGrace = time.Minute
	paramsPoll  = 10 * time.Millisecond
	paramsWait  = 2 * time.Second
)

func paramsName(n int) string { return fmt.Sprintf("params.gen%d", n) }

// agree creates the file params.gen1 exclusively, or compares the options with
// the file that is there. A file that a crash left torn gets a successor, as a
// claim does, and the one with the highest number counts.
func agree(fs FS, o Options) error {
	began := o.Clock.Now()
	for n := 1; ; {
		err := createParams(fs, o, n)
		if !errors.Is(err, syscall.EEXIST) {
			return err
		}
		next, err := compareParams(fs, o, n)
		if err == nil && !next {
			return nil
		}
		switch {
		case next:
			n++
		case !errors.Is(err, errUnreadable):
			return err
		case o.Clock.Now()-began > paramsWait:
			return fmt.Errorf("read %s: %w: %w; it is judged by its age after %v", paramsName(n), ErrUnknown, err, paramsGrace)
		default:
			if err := o.Clock.Sleep(context.Background(), paramsPoll); err != nil {
				return err
			}
		}
	}
}

func createParams(fs FS, o Options, n int) error {
	nonce, err := encodeNonce(o.Nonce)
	if err != nil {
		return err
	}
	began := o.Clock.Now()
	f, err := fs.Create(paramsName(n))
	if err != nil {
		return fmt.Errorf("create %s: %w", paramsName(n), err)
	}
	rec := record{state: stateDone, nonce: nonce, generation: uint64(n), body: o.describe()}
	err = errors.Join(writeRecord(f, paramsName(n), rec, o.Sync), f.Close())
	if err == nil && o.Clock.Now()-began > paramsGrace/2 {
		err = fmt.Errorf("write %s: %w: it took too long", paramsName(n), ErrUnknown)
	}
	if err != nil {
		return unknown(err)
	}
	return nil
}

// compareParams compares the options with one parameters file, or tells that
// the next file is the one to look at.
func compareParams(fs FS, o Options, n int) (next bool, err error) {
	now, err := fs.Now()
	if err != nil {
		return false, unknown(err)
	}
	s, err := readSlot(fs, paramsName(n))
	if err != nil {
		return false, unknown(err)
	}
	next, err = exists(fs, paramsName(n+1))
	if err != nil || next {
		return next, unknown(err)
	}
	if !s.torn {
		return false, differ(s.name, string(o.describe()), string(s.rec.body))
	}
	until, err := s.until(now, paramsGrace)
	if err != nil {
		return false, unknown(err)
	}
	if now.After(until) {
		return true, nil
	}
	return false, errUnreadable
}

// describe lists what has to be equal, one to a line.
func (o Options) describe() []byte {
	return fmt.Appendf(nil, "Protocol %s\nTTL %v\nDeadline %v\nMargin %v\nSlack %v\nSync %v\n",
		o.Protocol, o.TTL, o.Deadline, o.Margin, o.Slack, o.Sync)
}

func differ(file, ours, theirs string) error {
	a, b := strings.Split(ours, "\n"), strings.Split(theirs, "\n")
	for i := range max(len(a), len(b)) {
		var mine, other string
		if i < len(a) {
			mine = a[i]
		}
		if i < len(b) {
			other = b[i]
		}
		if mine != other {
			field, value, _ := strings.Cut(mine, " ")
			_, otherValue, _ := strings.Cut(other, " ")
			return &ParamsError{Field: field, Ours: value, Theirs: otherValue, File: file}
		}
	}
	return nil
}
