package explore

import (
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/claimbench/claimbench/engine"
)

type notExclusive struct{ engine.FullFS }

func (f notExclusive) Create(name string) (engine.File, error) { return f.Overwrite(name) }

type doneNotExclusive struct{ engine.FullFS }

func (f doneNotExclusive) Create(name string) (engine.File, error) {
	if strings.HasSuffix(name, ".done") {
		return f.Overwrite(name)
	}
	return f.FullFS.Create(name)
}

// timesFirst looks at the first claim before it reads the clock, and sticks to
// what it saw.
type timesFirst struct {
	engine.FullFS
	then engine.Info
}

func (f *timesFirst) Now() (time.Time, error) {
	f.then, _ = f.FullFS.Lstat("5e/" + string(keys[0]) + ".gen1.claim")
	return f.FullFS.Now()
}

func (f *timesFirst) Open(name string) (engine.Reader, error) {
	r, err := f.FullFS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".gen1.claim") {
		return r, err
	}
	return oldTimes{r, f.then}, nil
}

type oldTimes struct {
	engine.Reader
	then engine.Info
}

func (r oldTimes) Stat() (engine.Info, error) {
	i, err := r.Reader.Stat()
	i.Mtime, i.Ctime = r.then.Mtime, r.then.Ctime
	return i, err
}

// blind reads one state of a record as another.
type blind struct {
	engine.FullFS
	from, to byte
}

func (f blind) Open(name string) (engine.Reader, error) {
	r, err := f.FullFS.Open(name)
	if err != nil {
		return r, err
	}
	return blindReader{r, f}, nil
}

type blindReader struct {
	engine.Reader
	f blind
}

func (r blindReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.Reader.ReadAt(p, off)
	if n > 0 && off == 0 && p[0] == r.f.from {
		p[0] = r.f.to
	}
	return n, err
}

// absentee does not find names that end so.
type absentee struct {
	engine.FullFS
	suffix string
}

func (f absentee) Open(name string) (engine.Reader, error) {
	if strings.HasSuffix(name, f.suffix) {
		return nil, syscall.ENOENT
	}
	return f.FullFS.Open(name)
}

func (f absentee) Lstat(name string) (engine.Info, error) {
	if strings.HasSuffix(name, f.suffix) {
		return engine.Info{}, syscall.ENOENT
	}
	return f.FullFS.Lstat(name)
}

type tornIsOld struct{ engine.FullFS }

func (f tornIsOld) Open(name string) (engine.Reader, error) {
	r, err := f.FullFS.Open(name)
	if err != nil {
		return r, err
	}
	return tornReader{r}, nil
}

type tornReader struct{ engine.Reader }

func (r tornReader) Stat() (engine.Info, error) {
	i, err := r.Reader.Stat()
	if i.Size == 0 {
		i.Mtime = i.Mtime.Add(-2 * ttl)
		i.Ctime = i.Mtime
	}
	return i, err
}

type ahead struct{ engine.FullFS }

func (f ahead) Now() (time.Time, error) {
	now, err := f.FullFS.Now()
	return now.Add(tick), err
}

// lazyRenewal prolongs the lease in memory only.
type lazyRenewal struct {
	engine.Lease
	e    engine.Env
	more time.Duration
}

func (l *lazyRenewal) Expires() time.Duration { return max(l.Lease.Expires(), l.more) }

func (l *lazyRenewal) Renew() error {
	l.more = l.e.Clock.Now() + l.e.Params.TTL - l.e.Params.Slack
	return nil
}

type reviving struct{ lazyRenewal }

func (l *reviving) Renew() error {
	if err := l.Lease.Renew(); !errors.Is(err, engine.ErrLost) {
		return err
	}
	return l.lazyRenewal.Renew()
}

// byName touches whatever the claim is by now.
type byName struct{ lazyRenewal }

func (l *byName) Renew() error {
	now := l.e.Clock.Now()
	f, err := l.e.FS.Overwrite("5e/" + string(keys[0]) + ".claim")
	if err != nil {
		return err
	}
	l.more = now + l.e.Params.TTL - l.e.Params.Slack
	return errors.Join(f.Touch(), f.Close())
}

type forgetful struct{ engine.Lease }

func (forgetful) Done([]byte) error { return nil }

// hasty has recorded the end when it begins.
func hasty(l engine.Lease) engine.Lease {
	// The error comes again with the second call.
	_ = l.Done(nil)
	return l
}

type proud struct{ engine.Lease }

func (l proud) Done(p []byte) error {
	if err := l.Lease.Done(p); !errors.Is(err, engine.ErrLost) {
		return err
	}
	return nil
}

type lockless struct{ engine.FullFS }

func (f lockless) OpenLock(name string) (engine.LockFile, error) {
	l, err := f.FullFS.OpenLock(name)
	if err != nil {
		return nil, err
	}
	return noLock{l}, nil
}

type noLock struct{ engine.LockFile }

func (noLock) TryLock() error { return nil }

// emptying makes room for a rename.
type emptying struct{ engine.FullFS }

func (f emptying) Rename(from, to string) error {
	err := f.FullFS.Rename(from, to)
	if !errors.Is(err, syscall.ENOTEMPTY) || !strings.Contains(to, ".stale-") {
		return err
	}
	for _, name := range []string{"/owner/record", "/evicted"} {
		_ = f.Unlink(to + name)
	}
	_ = f.Rmdir(to + "/owner")
	return f.FullFS.Rename(from, to)
}

// replacing has a rename of an owner's record replace the one that is there.
type replacing struct{ engine.FullFS }

func (f replacing) Rename(from, to string) error {
	err := f.FullFS.Rename(from, to)
	if !errors.Is(err, syscall.ENOTEMPTY) || !strings.HasSuffix(to, "/owner") {
		return err
	}
	_ = f.Unlink(to + "/record")
	return f.FullFS.Rename(from, to)
}

func (f replacing) Mkdir(name string) error {
	err := f.FullFS.Mkdir(name)
	if errors.Is(err, syscall.EEXIST) && strings.HasSuffix(name, ".lock") {
		return nil
	}
	return err
}

type renaming struct{ engine.FullFS }

func (f renaming) Link(name, another string) error { return f.Rename(name, another) }
