package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Quarantine is one thing that was left behind and may go one day.
type Quarantine struct {
	Name string
	// Age is how long ago it was left, on the filesystem's clock.
	Age time.Duration
	// Why says why it may not go yet; "" says that it may.
	Why string
}

// Reclaimed is what one call of Reclaim did.
type Reclaimed struct {
	Removed []string
	// Kept counts what may not or could not go, Left what may but was over the
	// limit.
	Kept, Left int
}

// rules are how the controls break quarantine. The zero value is right.
type rules struct {
	eager     bool // the quarantine is removed at once
	unstamped bool // the eviction is not stamped
	fromName  bool // age counts from claimed_at in the name
	fromMtime bool // age counts from the directory's mtime
	onlyTTL   bool // age does not have to reach a Deadline longer than TTL
}

// reclaimer removes what protocols leave behind: quarantined locks, and the
// private names of contenders that died before they published.
type reclaimer struct {
	fs     FullFS
	params Params
	rules  rules
}

// age is how old a quarantined lock must be to go. Another evictor that judged
// the same lock can still issue its rename to this name until Deadline after the
// eviction. If the name were free by then, the rename would succeed, and take
// away a fresh lock. The margin is there for a rename that was issued at the
// last moment of the deadline and is still in flight on a loaded host: no
// contender can call it back. The age is at least TTL because an owner finds
// out about its eviction by this name, until its lease has run out for certain.
func (r reclaimer) age() time.Duration {
	if r.rules.onlyTTL {
		return r.params.TTL + r.params.Margin
	}
	return max(r.params.TTL, r.params.Deadline) + r.params.Margin
}

// Quarantines lists everything that is there.
func (r reclaimer) Quarantines() ([]Quarantine, error) {
	now, err := r.fs.Now()
	if err != nil {
		return nil, fmt.Errorf("read the filesystem's clock: %w", err)
	}
	var all []Quarantine
	err = r.each(func(name string) error {
		q, err := r.look(name, now)
		if err == nil {
			all = append(all, q)
		}
		return ignore(err, syscall.ENOENT)
	})
	return all, err
}

// Reclaim removes what may go. What cannot be removed is reported, and does
// not keep the rest.
func (r reclaimer) Reclaim(limit int) (Reclaimed, error) {
	var done Reclaimed
	now, err := r.fs.Now()
	if err != nil {
		return done, fmt.Errorf("read the filesystem's clock: %w", err)
	}
	tried := 0
	err = r.each(func(name string) error {
		q, err := r.look(name, now)
		switch {
		case err != nil:
			return ignore(err, syscall.ENOENT)
		case q.Why != "":
			done.Kept++
			return r.date(q)
		case tried == limit:
			done.Left++
			return nil
		}
		tried++
		if err := r.remove(name); err != nil {
			done.Kept++
			return err
		}
		done.Removed = append(done.Removed, name)
		return nil
	})
	return done, err
}

// date stamps an eviction whose evictor did not live to do it.
func (r reclaimer) date(q Quarantine) error {
	if q.Why != unstampedWhy {
		return nil
	}
	return ignore(stamp(r.fs, q.Name), syscall.EEXIST, syscall.ENOENT)
}

// each visits what was left behind, directory by directory, all of it whatever
// the visits answer.
func (r reclaimer) each(visit func(name string) error) error {
	fans, err := r.fs.List(".")
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	slices.Sort(fans)
	var errs []error
	for _, fan := range fans {
		if len(fan) == fanDigits && isHex([]byte(fan)) {
			errs = append(errs, r.eachIn(fan, visit))
		}
	}
	return errors.Join(errs...)
}

func (r reclaimer) eachIn(fan string, visit func(name string) error) error {
	names, err := r.fs.List(fan)
	if err != nil {
		return fmt.Errorf("list %s: %w", fan, err)
	}
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		if isLeft(name) {
			errs = append(errs, visit(fan+"/"+name))
		}
	}
	return errors.Join(errs...)
}

const (
	staleMark   = ".lock.stale-"
	privateMark = ".new-"
)

// isLeft recognises by their names, which begin with a signature, the only things
// that Reclaim may remove.
func isLeft(name string) bool {
	sig, _, _ := strings.Cut(name, ".")
	rest := name[len(sig):]
	return isSignature(sig) && (strings.HasPrefix(rest, staleMark) || strings.HasPrefix(rest, privateMark))
}

const unstampedWhy = "its eviction is not dated yet"

func (r reclaimer) look(name string, now time.Time) (Quarantine, error) {
	q := Quarantine{Name: name}
	since, err := r.since(name)
	if err != nil {
		return q, err
	}
	if since.IsZero() {
		q.Why = unstampedWhy
		return q, nil
	}
	q.Age = now.Sub(since)
	if q.Age < r.age() {
		q.Why = fmt.Sprintf("%v old, and may go at %v", q.Age.Round(time.Millisecond), r.age())
	}
	return q, nil
}

// since is when the thing was left. For a lock that is the eviction, which its
// stamp dates: claimed_at in the name is older by the owner's lifetime, and so
// is the mtime of the directory, which a rename does not change. A private
// name counts from its last change. The later of mtime and ctime counts, since
// an NFSv3 server keeps the verifier of an exclusive create in the mtime until
// the client has set it. A zero Time is an eviction without a stamp.
func (r reclaimer) since(name string) (time.Time, error) {
	stale := strings.Contains(name, staleMark)
	if stale && r.rules.fromName {
		return claimedAt(name), nil
	}
	dated := name
	if stale && !r.rules.fromMtime {
		dated = name + "/" + stampName
	}
	info, err := r.fs.Lstat(dated)
	if errors.Is(err, syscall.ENOENT) && dated != name {
		return time.Time{}, nil
	}
	if stale && r.rules.fromMtime {
		return info.Mtime, err
	}
	return later(info.Mtime, info.Ctime), err
}

func claimedAt(name string) time.Time {
	_, rest, _ := strings.Cut(name, staleMark)
	ms, _, _ := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

func (r reclaimer) remove(name string) error {
	if strings.Contains(name, staleMark) {
		return removeStale(r.fs, name)
	}
	err := r.fs.Unlink(name)
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.EPERM) {
		err = errors.Join(
			ignore(r.fs.Unlink(name+"/record"), syscall.ENOENT),
			ignore(r.fs.Rmdir(name), syscall.ENOENT))
	}
	return ignore(err, syscall.ENOENT)
}

// removeStale removes the files that a lock consists of, and the directory
// only if nothing else is in it.
func removeStale(fs FullFS, name string) error {
	return errors.Join(
		ignore(fs.Unlink(name+"/owner/record"), syscall.ENOENT),
		ignore(fs.Rmdir(name+"/owner"), syscall.ENOENT),
		ignore(fs.Unlink(name+"/"+stampName), syscall.ENOENT),
		ignore(fs.Rmdir(name), syscall.ENOENT))
}

func ignore(err error, fine ...syscall.Errno) error {
	for _, errno := range fine {
		if errors.Is(err, errno) {
			return nil
		}
	}
	return err
}
