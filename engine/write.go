package engine

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// RecordError means that a record is longer than MaxRecord.
type RecordError struct{ Length int }

func (e *RecordError) Error() string {
	return fmt.Sprintf("record of %d bytes: at most %d are kept", e.Length, MaxRecord)
}

// errMayBeDone is what Drop answers after a Done whose effect is not known.
func errMayBeDone(name string) error {
	return fmt.Errorf("drop %s: %w: it may be done, and expires if it is not", name, ErrUnknown)
}

// writeRecord writes the whole file in one call, from its beginning.
func writeRecord(f File, name string, rec record, durable bool) error {
	if _, err := f.WriteAt(rec.encode(), 0); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if !durable {
		return nil
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", name, err)
	}
	return nil
}

// givenUp closes the file of an attempt that failed half-way, and marks the error
// as one after which the outcome is not known. EEXIST without a file is an
// answer, and is returned as it is.
func givenUp(f File, err error) error {
	if f == nil {
		if errors.Is(err, syscall.EEXIST) {
			return err
		}
		return unknown(err)
	}
	return unknown(errors.Join(err, f.Close()))
}

// inFan creates a file, and makes its fan-out directory if there is none yet.
func inFan(fs FS, sig Signature, create func() (File, error)) (File, error) {
	f, err := create()
	if f != nil || !errors.Is(err, syscall.ENOENT) {
		return f, err
	}
	if err := fs.Mkdir(sig.fan()); err != nil && !errors.Is(err, syscall.EEXIST) {
		return nil, fmt.Errorf("mkdir %s: %w", sig.fan(), err)
	}
	return create()
}

// answer returns the outcome, or the error without it: after an error nothing is
// known.
func answer(out Outcome, err error) (Outcome, error) {
	if err != nil {
		return Outcome{}, unknown(err)
	}
	return out, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
