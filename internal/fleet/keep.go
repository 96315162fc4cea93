package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
)

// From the beginning of a survey each host holds a lock of each kind, and a claim of each protocol that it renews. Nobody
// asks for them while it lives: see vigil.

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
	files  []*os.File
	cancel context.CancelFunc
	claims sync.WaitGroup
}

// keep takes what there is to hold, under the host's name, and says what that is. What the filesystem does not have is
// left out.
func (s *site) keep(dir, host string) (*keeper, []string) {
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{site: s, dir: dir, cancel: cancel}
	var held []string
	for name, try := range keptLocks {
		f, err := s.root.OpenFile(path.Join(dir, host+"."+name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			continue
		}
		k.files = append(k.files, f)
		if try(int(f.Fd())) == nil {
			held = append(held, name)
		}
	}
	for _, protocol := range keptClaims {
		if k.claim(ctx, host, protocol) == nil {
			held = append(held, protocol)
		}
	}
	slices.Sort(held)
	return k, held
}

// claim returns when the claim is made. It is renewed until the context ends.
func (k *keeper) claim(ctx context.Context, host, protocol string) error {
	g, err := k.site.guard(k.dir, protocol)
	if err != nil {
		return err
	}
	claimed := make(chan error, 2)
	k.claims.Go(func() {
		_, err := g.Do(ctx, engine.Key{host}, func(ctx context.Context, _ engine.Token) error {
			claimed <- nil
			<-ctx.Done()
			return ctx.Err() // gives the claim back
		})
		claimed <- errors.Join(err, g.Close())
	})
	return <-claimed
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
	k.cancel()
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
	dir, err := where(e.Nonce, e.Sub)
	if err == nil {
		err = named(e.Sub)
	}
	if err == nil && !nameForm.MatchString(e.Name) {
		err = fmt.Errorf("%.80q is no name of a host: refused", e.Name)
	}
	return dir, err
}

// ask asks once for what another host holds. A lock that is given is let go again, a claim is recorded as done; over says
// that this has been, by whomever.
func (s *site) ask(dir, host, what string) (won, over bool, err error) {
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
	won = try(int(f.Fd())) == nil
	return won, won, nil
}

func (s *site) askClaim(dir, host, protocol string) (won, over bool, err error) {
	g, err := s.guard(dir, protocol)
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	out, err := g.Claim(context.Background(), engine.Key{host})
	if err != nil || out.State != engine.Won {
		return false, out.State == engine.Done, err
	}
	if err := out.Lease.Done(nil); err != nil {
		return false, false, errors.Join(err, out.Lease.Drop())
	}
	return true, true, nil
}
