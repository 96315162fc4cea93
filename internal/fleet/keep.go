package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
)

// From the beginning of a survey each host holds a lock of each kind, and a claim of each protocol that it renews. The
// others ask for them when nothing is heard of it: see vigil.

// keptLocks are the kinds of locks, each on a file of its own.
var keptLocks = map[string]func(fd int) error{
	"flock":      func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) },
	"posix-lock": func(fd int) error { return setlk(fd, unix.F_SETLK) },
	"ofd-lock":   func(fd int) error { return setlk(fd, unix.F_OFD_SETLK) },
}

func setlk(fd, cmd int) error {
	return unix.FcntlFlock(uintptr(fd), cmd, &unix.Flock_t{Type: unix.F_WRLCK})
}

// keptClaims are the protocols.
var keptClaims = []string{"generations", "generations-linked", "quarantine", "flock-held"}

// keptTTL is longer than silence: a host is known to be lost before its claims expire.
const keptTTL = 20 * time.Second

// A keeper is what a host holds in a directory.
type keeper struct {
	site   *site
	dir    string
	host   string
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // over what follows, to which nothing is added once the context has ended
	files  []*os.File
	claims sync.WaitGroup
}

func newKeeper(s *site, dir, host string) *keeper {
	k := &keeper{site: s, dir: dir, host: host}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// keep takes what there is to hold, under the host's name, and says what that is. What the filesystem does not have is
// left out.
func (k *keeper) keep() (held []string) {
	for name, try := range keptLocks {
		f, err := k.site.root.OpenFile(path.Join(k.dir, k.host+"."+name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			continue
		}
		if !k.add(func() { k.files = append(k.files, f) }) {
			f.Close()
			return nil
		}
		if try(int(f.Fd())) == nil {
			held = append(held, name)
		}
	}
	for _, protocol := range keptClaims {
		if k.claim(protocol) == nil {
			held = append(held, protocol)
		}
	}
	slices.Sort(held)
	return held
}

// add is false when all was released already.
func (k *keeper) add(what func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil {
		return false
	}
	what()
	return true
}

// claim returns when the claim is made. It is renewed until the keeper is to release it, and made again if it was lost.
func (k *keeper) claim(protocol string) error {
	g, err := k.site.guard(k.dir, protocol)
	if err != nil {
		return err
	}
	claimed := make(chan struct{}, 1)
	renew := func() {
		defer g.Close()
		for k.ctx.Err() == nil {
			// What comes of it shows when others ask.
			_, _ = g.Do(k.ctx, engine.Key{k.host}, func(ctx context.Context, _ engine.Token) error {
				select {
				case claimed <- struct{}{}:
				default:
				}
				<-ctx.Done()
				return ctx.Err() // gives the claim back
			})
			_ = pause(k.ctx, time.Second)
		}
	}
	if !k.add(func() { k.claims.Go(renew) }) {
		return errors.Join(k.ctx.Err(), g.Close())
	}
	select {
	case <-claimed:
		return nil
	case <-time.After(keptTTL):
		return errors.New("not claimed")
	case <-k.ctx.Done():
		return k.ctx.Err()
	}
}

// guard opens the claim directory of a protocol, and makes it if nobody has. No symlink leads it out of the site.
func (s *site) guard(dir, protocol string) (*engine.Guard, error) {
	dir = path.Join(dir, protocol)
	if err := s.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	f, err := s.root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return engine.New(fmt.Sprintf("/proc/self/fd/%d/.", f.Fd()), engine.Options{Protocol: protocol, TTL: keptTTL})
}

// release lets all go. Nobody waits for a filesystem that hangs.
func (k *keeper) release() {
	k.mu.Lock()
	k.cancel()
	k.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.claims.Wait()
		for _, f := range k.files {
			f.Close()
		}
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
	}
}

// keptIn is the directory that an errand means.
func keptIn(e *errand) (string, error) {
	if e.Sub == "" || !nameForm.MatchString(e.Name) {
		return "", fmt.Errorf("%.80q of host %.80q: refused", e.Sub, e.Name)
	}
	return where(e.Nonce, e.Sub)
}

// ask asks once for what another host holds. A lock that is given is let go again, a claim is recorded as done; given says
// that it was given by now, to whomever.
func (s *site) ask(dir, host, what string) (won, given bool, err error) {
	if slices.Contains(keptClaims, what) {
		return s.askClaim(dir, host, what)
	}
	try, ok := keptLocks[what]
	if !ok {
		return false, false, fmt.Errorf("%.40q is nothing that a host holds", what)
	}
	f, err := s.root.OpenFile(path.Join(dir, host+"."+what), os.O_RDWR, 0)
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	switch err := try(int(f.Fd())); err {
	case nil:
		return true, true, nil
	case unix.EAGAIN, unix.EACCES: // fcntl(2) leaves it open which
		return false, false, nil
	default:
		return false, false, err
	}
}

// askClaim counts a claim as given if it could be recorded as done, and also if another was given it before it had expired.
func (s *site) askClaim(dir, host, protocol string) (won, given bool, err error) {
	g, err := s.guard(dir, protocol)
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	out, err := g.Claim(context.Background(), engine.Key{host})
	if err != nil || out.State != engine.Won {
		return false, out.State == engine.Done, err
	}
	switch err := out.Lease.Done(nil); {
	case err == nil:
		return true, true, nil
	case errors.Is(err, engine.ErrLost) && engine.OSClock{}.Now() < out.Lease.Expires():
		return true, true, out.Lease.Drop()
	default:
		return false, false, errors.Join(err, out.Lease.Drop())
	}
}

// free waits until none of the hosts that ever held something in the directory holds a claim, and reports whether that
// came in time. Whoever has released its own may be alone then.
func (s *site) free(dir string) bool {
	held, _ := fs.Glob(s.root.FS(), path.Join(dir, "*.flock"))
	g, err := s.guard(dir, "generations")
	if err != nil {
		return errors.Is(err, os.ErrNotExist) // nothing was ever held, or all is removed
	}
	defer g.Close()
	until := time.Now().Add(keptTTL + 2*time.Second)
	for _, name := range held {
		key := engine.Key{strings.TrimSuffix(path.Base(name), ".flock")}
		for {
			out, err := g.Claim(context.Background(), key)
			if err == nil && out.State == engine.Won {
				_ = out.Lease.Drop()
			}
			if err == nil && out.State != engine.Held {
				break
			}
			if _, err := s.root.Stat(dir); err != nil {
				return true // another has removed it
			}
			if time.Now().After(until) {
				return false
			}
			time.Sleep(askEvery)
		}
	}
	return true
}
