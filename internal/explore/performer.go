package explore

import (
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/claimbench/claimbench/engine"
)

// A performer does operations on a real directory and answers as the model
// does.
type performer struct {
	w     *world
	fs    engine.FullFS
	slots uint8
	open  map[uint8]any
	locks map[uint8]bool // those with a lock on them
}

func newPerformer(w *world, fs engine.FullFS) *performer {
	return &performer{w: w, fs: fs, open: map[uint8]any{}, locks: map[uint8]bool{}}
}

// closeAll is what the death of a process does.
func (p *performer) closeAll() {
	for _, f := range p.open {
		// Nothing is left to be done about an error.
		_ = f.(io.Closer).Close()
	}
	clear(p.open)
}

func (p *performer) do(op Op) Result {
	name, to := p.w.paths[op.Path].text, p.w.paths[op.To].text
	switch op.Verb {
	case Create:
		return keep(p, p.fs.Create, name)
	case Open:
		return keep(p, p.fs.Open, name)
	case Overwrite:
		return keep(p, p.fs.Overwrite, name)
	case OpenLock:
		return keep(p, p.fs.OpenLock, name)
	case Lstat:
		return described(p.fs.Lstat(name))
	case Mkdir:
		return failed(p.fs.Mkdir(name))
	case Unlink:
		return failed(p.fs.Unlink(name))
	case Rmdir:
		return failed(p.fs.Rmdir(name))
	case Link:
		return failed(p.fs.Link(name, to))
	case Rename:
		return failed(p.fs.Rename(name, to))
	case Now:
		now, err := p.fs.Now()
		return Result{Time: now.UnixNano(), Errno: errnoOf(err)}
	case List:
		names, err := p.fs.List(name)
		slices.Sort(names)
		return Result{Data: p.w.data([]byte(strings.Join(names, "\n"))), Errno: errnoOf(err)}
	default:
		return p.onOpen(op)
	}
}

// keep gives what was opened the next number.
func keep[T any](p *performer, open func(string) (T, error), name string) Result {
	f, err := open(name)
	if err != nil {
		return failed(err)
	}
	p.slots++
	p.open[p.slots] = f
	return Result{Handle: p.slots}
}

func (p *performer) onOpen(op Op) Result {
	f, ok := p.open[op.Handle]
	if !ok {
		return Result{Errno: syscall.EBADF}
	}
	switch op.Verb {
	case WriteAt:
		_, err := f.(engine.File).WriteAt([]byte(p.w.contents[op.Data]), int64(op.Off))
		return failed(err)
	case Touch:
		return failed(f.(engine.File).Touch())
	case Sync:
		return failed(f.(engine.File).Sync())
	case Fstat:
		return described(f.(interface{ Stat() (engine.Info, error) }).Stat())
	case ReadAt:
		b := make([]byte, op.Len)
		n, err := f.(engine.Reader).ReadAt(b, int64(op.Off))
		return Result{Data: p.w.data(b[:n]), Errno: errnoOf(err)}
	case TryLock:
		r := failed(f.(engine.LockFile).TryLock())
		p.locks[op.Handle] = p.locks[op.Handle] || r.Errno == 0
		return r
	case Close:
		delete(p.open, op.Handle)
		return failed(f.(io.Closer).Close())
	default:
		return Result{}
	}
}

func failed(err error) Result { return Result{Errno: errnoOf(err)} }

func described(i engine.Info, err error) Result {
	if err != nil {
		return failed(err)
	}
	return Result{Kind: uint8(i.Kind), Size: int32(i.Size), Ino: i.Ino, Nlink: uint16(i.Nlink),
		Mtime: i.Mtime.UnixNano(), Ctime: i.Ctime.UnixNano()}
}

// errnoOf is 0 for the end of a file, and EIO for an error that carries none.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return 0
	case errors.As(err, &errno):
		return errno
	default:
		return syscall.EIO
	}
}
