package engine

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Guard claims keys in one directory. It is for use by many goroutines.
type Guard struct {
	options  Options
	fs       FullFS
	protocol Protocol
	close    func() error
}

// New opens a claim directory, which must exist, and checks the contract: the
// options, the directory, and that every program that ever used the directory
// did so with the same options. A *ContractError or *ParamsError names the
// field that is wrong.
func New(dir string, options Options) (*Guard, error) {
	o := options.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	fs, err := OpenDir(dir)
	if err != nil {
		return nil, dirError(dir, err)
	}
	g, err := newGuard(fs, o)
	if err != nil {
		return nil, errors.Join(err, fs.Close())
	}
	g.close = fs.Close
	return g, nil
}

func newGuard(fs FullFS, o Options) (*Guard, error) {
	spec, ok := Find(o.Protocol)
	if !ok {
		return nil, &ContractError{Field: "Protocol", Rule: fmt.Sprintf("the name of a protocol, not %q", o.Protocol)}
	}
	// Reading the filesystem's clock writes: it shows a directory that is
	// read-only or full before the first claim does.
	if _, err := fs.Now(); err != nil {
		return nil, &ContractError{Field: "dir", Rule: "writable", Err: err}
	}
	if err := agree(fs, o); err != nil {
		return nil, err
	}
	env := Env{FS: fs, Clock: o.Clock, Nonce: o.Nonce, Params: o.params()}
	return &Guard{options: o, fs: fs, protocol: spec.New(env)}, nil
}

func dirError(dir string, err error) error {
	rule := "a directory that exists"
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
		rule = "a directory itself, not a symlink or a file"
	}
	return &ContractError{Field: "dir", Rule: rule, Err: fmt.Errorf("%q: %w", dir, err)}
}

// Close closes the directory. Leases that are held cannot be renewed or done any
// more, and expire; Drop still gives those of generations back.
func (g *Guard) Close() error {
	if g.close == nil {
		return nil
	}
	return g.close()
}

// Claim makes one attempt to claim the key, and does not wait for whoever holds
// it. It returns when the context ends even if the filesystem does not answer;
// should that attempt win later, its claim is given back.
//
// After an error it is not known who has the key: it must not be worked on, and
// its claim must not be taken for expired.
func (g *Guard) Claim(ctx context.Context, key Key) (Outcome, error) {
	if err := checkKey(key); err != nil {
		return Outcome{}, err
	}
	if err := context.Cause(ctx); err != nil {
		return Outcome{}, err
	}
	sig := key.Sign()
	if ctx.Done() == nil {
		return g.try(sig)
	}
	return g.tryWithin(ctx, sig)
}

func (g *Guard) try(sig Signature) (Outcome, error) {
	out, err := g.protocol.Try(sig)
	if err != nil {
		return Outcome{}, fmt.Errorf("claim %s: %w", sig, err)
	}
	return out, nil
}

func (g *Guard) tryWithin(ctx context.Context, sig Signature) (Outcome, error) {
	type answer struct {
		out Outcome
		err error
	}
	answered := make(chan answer)
	go func() {
		out, err := g.try(sig)
		select {
		case answered <- answer{out, err}:
		case <-ctx.Done():
			if out.Lease != nil {
				// Nobody is left to be told of an error; the claim then expires.
				_ = out.Lease.Drop()
			}
		}
	}()
	select {
	case a := <-answered:
		return a.out, a.err
	case <-ctx.Done():
		return Outcome{}, fmt.Errorf("claim %s: %w", sig, unknown(context.Cause(ctx)))
	}
}

// checkKey refuses a key without a byte in it. It comes from a variable that was
// not set, and would make one piece of work out of many.
func checkKey(key Key) error {
	for _, part := range key {
		if part != "" {
			return nil
		}
	}
	return &ContractError{Field: "key", Rule: "made of at least one byte"}
}
