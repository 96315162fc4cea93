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
// or torn; an owner whose link succeeded but was answered with EEXIST knows its
// own claim by the nonce in it; and an exclusive create that two contenders win
// does no harm, as nobody creates the name of a claim. The last does happen: the
// Linux NFS client identifies its create by a verifier of time and thread id,
// which cloned machines can share. A link carries no verifier.
//
// It rests on link, on timestamps and visibility as generations does, and, where
// a filesystem shows what was written only when it is synced, on Params.Sync. No
// order of the contenders' steps breaks it. Where link has two winners, both
// execute:
//
//  1. A links gen1, and wins.
//  2. B links gen1 over it, and is told that it won.
//
// It unlinks nothing but its own private names. A contender that dies before
// that leaves one, and Reclaim removes it. The NFS client renames an open file
// that is unlinked to .nfs<number> and removes it when it is closed; a host
// that crashes leaves that name, and it is harmless.
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

// linker makes the files of generationsLinked.
type linker struct {
	fs      LinkFS
	nonce   Nonce
	durable bool
}

// publish looks first, so that asking for a key that is another's writes
// nothing, and works on a full disk. What it decides is the link.
func (p *linker) publish(name string, rec record) (File, error) {
	if there, err := exists(p.fs, name); err != nil {
		return nil, unknown(fmt.Errorf("stat %s: %w", name, err))
	} else if there {
		return nil, fmt.Errorf("link %s: %w", name, syscall.EEXIST)
	}
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
		// The name is not the claim's, so this does not say that the claim is
		// another's.
		return nil, fmt.Errorf("create %s: %w: a private name is taken", private, ErrUnknown)
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", private, err)
	}
	if err := writeRecord(f, private, rec, p.durable); err != nil {
		return nil, errors.Join(err, f.Close(), p.fs.Unlink(private))
	}
	err = p.link(f, private, name, rec)
	if err == nil && p.durable {
		err = unknown(f.Sync()) // the new name
	}
	// If the private name cannot be removed, the claim is good all the same.
	_ = p.fs.Unlink(private)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// link checks both success and EEXIST by looking. After success two links are
// enough. After EEXIST the count proves nothing, as a backup may link files,
// and some clients, for instance sshfs, never count links; then the nonce in
// the claim decides.
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
