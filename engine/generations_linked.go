package engine

import (
	"errors"
	"fmt"
	"syscall"
)

// generationsLinked is generations with another way to make a file: it is
// written under a private name that nobody else ever uses,
// <fan>/<sig>.new-<nonce>, and gets its real name by link(2), whole.
//
// It promises what generations does, and besides: a claim is never seen empty
// or torn; an owner whose success was answered with an error knows its own
// claim, by the nonce in it; and an exclusive create that two contenders win
// does no harm, as nobody creates the name of a claim. That last is not
// far-fetched: the Linux NFS client proves its create by a verifier of time
// and thread id, which cloned machines can share. A link carries no verifier.
//
// It rests on link and timestamps, and, where a filesystem shows what was
// written only when it is synced, on Params.Sync. No order of the contenders' steps breaks
// it. It unlinks nothing but its own private name; a contender that dies
// before that leaves it, and Reclaim removes it.
type generationsLinked struct {
	*generations
	reclaimer
}

func newGenerationsLinked(e Env) generationsLinked {
	g := newGenerations(e.FS, e.Clock, e.Nonce, e.Params)
	p := &linker{fs: e.FS, nonce: e.Nonce, durable: e.Params.Sync}
	g.publish = p.publish
	return generationsLinked{g, reclaimer{fs: e.FS, params: e.Params}}
}

// linker has the seam in the size that it needs.
type linker struct {
	fs      LinkFS
	nonce   Nonce
	durable bool
}

func (p *linker) publish(name string, rec record) (File, error) {
	nonce, err := encodeNonce(p.nonce)
	if err != nil {
		return nil, err
	}
	sig, _, err := parseClaim(name)
	if err != nil {
		return nil, err
	}
	private := sig.path(".new-" + nonce)
	f, err := p.fs.Create(private)
	if errors.Is(err, syscall.EEXIST) {
		// Not the claim's name: whatever this is, it is no answer.
		return nil, fmt.Errorf("create %s: %w: a private name is taken", private, ErrUnknown)
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", private, err)
	}
	if err := writeRecord(f, private, rec, p.durable); err != nil {
		return nil, errors.Join(err, f.Close(), p.fs.Unlink(private))
	}
	err = p.link(f, private, name, rec)
	// A private name that cannot be removed is litter; the claim stands.
	_ = p.fs.Unlink(private)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// link believes neither success nor failure before it has looked. The count
// of links alone does not speak for this contender after EEXIST, as a backup
// may link files; and some clients, sshfs for one, never count links.
func (p *linker) link(f File, private, name string, rec record) error {
	linkErr := p.fs.Link(private, name)
	if linkErr != nil && !errors.Is(linkErr, syscall.EEXIST) {
		return fmt.Errorf("link %s: %w", name, linkErr)
	}
	if linkErr == nil {
		info, err := f.Stat()
		if err != nil {
			return unknown(fmt.Errorf("stat %s: %w", private, err))
		}
		if info.Nlink == 2 {
			return nil
		}
	}
	s, err := readSlot(p.fs, name)
	if err != nil {
		return unknown(err)
	}
	if s.rec.nonce == rec.nonce && s.rec.state == rec.state && !s.torn {
		return nil
	}
	return fmt.Errorf("link %s: %w", name, syscall.EEXIST)
}
