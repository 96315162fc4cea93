package engine

import (
	"errors"
	"fmt"
	"syscall"
)

// The protocols whose claims can be removed keep the done record in a file of
// its own, <fan>/<sig>.done, which stays for ever. That it exists is enough: a
// torn one counts as well.

func (s Signature) done() string { return s.path(".done") }

func readDone(fs FS, sig Signature) (Outcome, bool, error) {
	s, err := readSlot(fs, sig.done())
	if errors.Is(err, syscall.ENOENT) {
		return Outcome{}, false, nil
	}
	if err != nil {
		return Outcome{}, false, unknown(err)
	}
	return Outcome{State: Done, Generation: s.rec.generation, Owner: s.rec.nonce, Record: s.rec.body, Torn: s.torn}, true, nil
}

// writeDone is idempotent for the owner of the nonce.
func writeDone(fs FS, sig Signature, rec record, durable bool) error {
	rec.state = stateDone
	f, err := fs.Create(sig.done())
	if errors.Is(err, syscall.EEXIST) {
		return alreadyDone(fs, sig, rec)
	}
	if err != nil {
		return unknown(fmt.Errorf("create %s: %w", sig.done(), err))
	}
	return unknown(errors.Join(writeRecord(f, sig.done(), rec, durable), f.Close()))
}

func alreadyDone(fs FS, sig Signature, rec record) error {
	s, err := readSlot(fs, sig.done())
	switch {
	case err != nil:
		return unknown(err)
	case s.rec.nonce == rec.nonce && !s.torn:
		return nil
	case s.torn:
		return fmt.Errorf("done %s: %w: it exists and cannot be read", sig.done(), ErrUnknown)
	default:
		return fmt.Errorf("done %s: %w: another did it", sig.done(), ErrLost)
	}
}
