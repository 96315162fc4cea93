package engine

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// ForeignError means that the name of a claim is taken by something that cannot
// be a claim, for instance a directory or a symlink. It is never judged by its
// age.
type ForeignError struct {
	Name string
	Kind Kind
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is a %v: no claim, and not to be judged as one", e.Name, e.Kind)
}

// ClockError means that a file is dated more than a TTL ahead of the
// filesystem's own clock: that clock was set back, or the file comes from
// elsewhere. Its age is not known, so nobody gets the key until the clock has
// caught up or somebody has repaired the file.
type ClockError struct {
	Name  string
	Ahead time.Duration
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("%s is dated %v ahead of its filesystem's clock", e.Name, e.Ahead)
}

// slot is a file as it was read: what was in it, and then its times.
type slot struct {
	name string
	rec  record
	torn bool // rec is not all there, or not there at all
	info Info
}

// readSlot reads the content first and the times afterwards, so that a file
// that was read half written is at least as young as the write that was missed.
func readSlot(fs FS, name string) (slot, error) {
	s := slot{name: name}
	r, err := fs.Open(name)
	if errors.Is(err, syscall.ELOOP) {
		return s, &ForeignError{name, Symlink}
	}
	if err != nil {
		return s, err
	}
	p, readErr := readRecord(r)
	s.info, err = r.Stat()
	closeErr := r.Close()
	if err == nil && s.info.Kind != Regular {
		return s, &ForeignError{name, s.info.Kind}
	}
	if err := errors.Join(readErr, err, closeErr); err != nil {
		return s, fmt.Errorf("read %s: %w", name, err)
	}
	s.rec, err = decode(p)
	s.torn = errors.Is(err, errUnreadable)
	if err != nil && !s.torn {
		return s, fmt.Errorf("read %s: %w", name, err)
	}
	return s, nil
}

// readRecord reads no more than a record can be long, whatever the file is.
func readRecord(r Reader) ([]byte, error) {
	p := make([]byte, maxHeader)
	n, err := r.ReadAt(p, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	h, bad := decodeHeader(p[:n])
	if bad != nil || h.size <= n {
		return p[:n], nil
	}
	whole := make([]byte, h.size)
	copy(whole, p[:n])
	m, err := r.ReadAt(whole[n:], int64(n))
	if err == io.EOF {
		err = nil
	}
	return whole[:n+m], err
}

// until is when the claim expires: TTL after the later of its mtime and ctime.
// touch or a restored backup can set the mtime but not the ctime; and some
// filesystems keep no ctime. A time more than a TTL ahead of the clock comes
// from no renewal and does not count.
func (s slot) until(now time.Time, ttl time.Duration) (time.Time, error) {
	limit := now.Add(ttl)
	var stamp time.Time
	for _, t := range []time.Time{s.info.Mtime, s.info.Ctime} {
		if !t.After(limit) && t.After(stamp) {
			stamp = t
		}
	}
	if stamp.IsZero() {
		return stamp, &ClockError{s.name, s.info.Ctime.Sub(now)}
	}
	return stamp.Add(ttl), nil
}

// exists tells whether the name is there. After an error that is not known.
func exists(fs FS, name string) (bool, error) {
	_, err := fs.Lstat(name)
	if errors.Is(err, syscall.ENOENT) {
		return false, nil
	}
	return err == nil, err
}

// unknown marks an error of a step whose effect is not known.
func unknown(err error) error {
	if err == nil || errors.Is(err, ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}
