package probes

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// The size of what a writer publishes: more than a page, so that a torn state can be seen.
const payload = 8192

// What a reader saw, in Saw: the value that fills the file, or one of these.
const (
	sawEmpty uint64 = 1<<64 - 1
	sawTorn  uint64 = 1<<64 - 2
)

// The kinds of violation that a reader can see.
const (
	nameAbsent   = "name-absent"
	contentEmpty = "content-empty"
	contentTorn  = "content-torn"
	staleHandle  = "stale-handle"
)

// A watch is a race between one writer, who changes what a name stands for, and readers.
type watch struct {
	op       string
	control  string
	mustBe   bool // the name exists before, during and after
	refusals []unix.Errno
}

// judge rules on one round: if the writer did its part, on what each reader saw. Old content is twice the round's
// number, new content one more.
func (w *watch) judge(r *race.Round) ruling {
	for i := range r.Events {
		ev := &r.Events[i]
		switch {
		case ev.Unready:
			return ruling{failed: true}
		case ev.Role == race.Writer && slices.Contains(w.refusals, unix.Errno(ev.Errno)):
			return ruling{refused: true}
		case ev.Role == race.Writer && ev.Errno != 0:
			return ruling{failed: true}
		}
	}
	var v ruling
	for i := range r.Events {
		if ev := &r.Events[i]; ev.Role == race.Reader {
			if saw := w.judgeReader(r.Number, i, ev); saw.kind != "" {
				return saw
			} else if saw.failed {
				v = saw
			}
		}
	}
	return v
}

func (w *watch) judgeReader(number, i int, ev *race.Event) ruling {
	switch errno := unix.Errno(ev.Errno); {
	case errno == unix.ENOENT && !w.mustBe:
		return ruling{}
	case errno == unix.ENOENT:
		return ruling{kind: nameAbsent, sentence: fmt.Sprintf("contender %d found nothing under a name that was being replaced", i)}
	case errno == unix.ESTALE:
		return ruling{kind: staleHandle, sentence: fmt.Sprintf("contender %d got ESTALE for a name during %s", i, w.op)}
	case errno != 0:
		return ruling{failed: true}
	case ev.Saw == sawEmpty:
		return ruling{kind: contentEmpty, sentence: fmt.Sprintf("contender %d read an empty file during %s", i, w.op)}
	case ev.Saw == sawTorn || ev.Saw>>1 != uint64(number):
		return ruling{kind: contentTorn, sentence: fmt.Sprintf("contender %d read a torn file during %s", i, w.op)}
	}
	return ruling{}
}

// race races the operation and its control. Rounds count as contested only if a reader overlaps the writer, since
// readers never win.
func (w *watch) race(ctx context.Context, b *Bench, f *result.Finding) (e, control *evidence, err error) {
	e, control = newEvidence(w.op), newEvidence(w.control)
	against := *w
	against.op = w.control
	if err = b.control(ctx, control, against.judge); err == nil {
		err = b.raceAll(ctx, e, f, w.judge)
	}
	return e, control, err
}

// writeFile makes a file with the value in it, or none.
func writeFile(e *race.Env, name *byte, value uint64) unix.Errno {
	fd, errno := race.Open(e.Dir, name, unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY, 0o600)
	if errno != 0 {
		return errno
	}
	errno = fill(e, fd, value)
	if failed := race.Close(fd); errno == 0 {
		errno = failed
	}
	if errno != 0 {
		race.Unlink(e.Dir, name, 0)
	}
	return errno
}

// fill writes the payload in two calls, as a program does that writes a header and a body.
func fill(e *race.Env, fd int, value uint64) unix.Errno {
	b := e.Buf[:payload]
	for i := 0; i < payload; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], value)
	}
	if errno := writeAll(fd, b[:payload/2], 0); errno != 0 {
		return errno
	}
	return writeAll(fd, b[payload/2:], payload/2)
}

// removeWritten lets the writer remove what was under the round's name, as soon as all have looked: at the end of a
// batch it would be megabytes.
func removeWritten(e *race.Env, ev *race.Event) {
	if ev.Role == race.Writer {
		removeName(e)
	}
}

// look opens the name and reads what is there. It tries again while there is nothing, up to tries times.
func look(e *race.Env, ev *race.Event, tries int) (errno unix.Errno) {
	ev.Role = race.Reader
	for range tries {
		e.Fd, errno = race.Open(e.Dir, e.Name(), unix.O_RDONLY, 0)
		if errno != unix.ENOENT {
			break
		}
	}
	if errno != 0 {
		return errno
	}
	n, more := 0, 1
	for errno == 0 && more > 0 && n < 2*payload {
		more, errno = race.Pread(e.Fd, e.Buf[payload+n:3*payload], int64(n))
		n += more
	}
	race.Close(e.Fd)
	ev.Saw = valueOf(e.Buf[payload : payload+n])
	return errno
}

// valueOf returns the value that fills the buffer.
func valueOf(b []byte) uint64 {
	switch len(b) {
	case 0:
		return sawEmpty
	case payload:
	default:
		return sawTorn
	}
	v := binary.LittleEndian.Uint64(b)
	for i := 8; i < len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:]) != v {
			return sawTorn
		}
	}
	return v
}
