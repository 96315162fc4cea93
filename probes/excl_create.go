package probes

import (
	"context"
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var exclCreate = Probe{
	Name:    "excl-create",
	Promise: "open(O_CREAT|O_EXCL) of one name succeeds for one contender only.",
	Why: "It is the commonest claim there is: the name is the lock, and whoever creates it may work. Where it is " +
		"emulated as a look-up and a create, as on object-store mounts, two contenders both succeed and the work is done twice.",
	How: "Contenders create one fresh name at the same instant; exactly one may succeed, and afterwards the file must be " +
		"the winner's (its permission bits carry the maker's number). Then two contenders try one after the other: one " +
		"that had looked the name up before it was taken must be refused and must leave the file as it was, one that had " +
		"seen it before it was released must win.",
	Control: "stat, then create without O_EXCL",
	Broken: "Do not claim by exclusive create here. Look for a mount option that sends exclusive creates to the server, " +
		"claim by mkdir or link if those hold, or keep claims on another filesystem.",
	Refused: "Exclusive create does not exist here: claim by mkdir or link if those hold, or keep claims on another filesystem.",
	Weight:  3,
	Ops: append(namedOps(race.Op{
		Name: "open-excl", Meets: meets(unix.EEXIST), Prepare: coldParent, Attempt: openExcl, Observe: observeCreated, After: lookByMark, Clean: removeName,
	}),
		race.Op{Name: "stat-then-create", Meets: meets(unix.EEXIST), Prepare: coldParent, Attempt: statThenCreate, Observe: observeCreated, After: lookByMark, Clean: removeName},
		race.Op{Name: "open-truncate", Attempt: openTruncate, Observe: observeCreated},
	),
	Run: func(ctx context.Context, b *Bench, f *result.Finding) {
		c := contest{
			op: "open-excl", control: "stat-then-create", overwrite: "open-truncate", named: true,
			lost: []unix.Errno{unix.EEXIST}, refusals: exclRefusals,
		}
		c.run(ctx, b, f)
	},
}

// exclRefusals are what everybody is told where exclusive create does not exist.
var exclRefusals = []unix.Errno{unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL}

//go:nosplit
func openExcl(e *race.Env, _ *race.Event) (errno unix.Errno) {
	e.Fd, errno = race.Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, e.Mark())
	return errno
}

//go:nosplit
func statThenCreate(e *race.Env, _ *race.Event) (errno unix.Errno) {
	if race.Lstat(e.Dir, e.Name(), &e.Stat) == 0 {
		return unix.EEXIST
	}
	e.Fd, errno = race.Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_WRONLY, e.Mark())
	return errno
}

//go:nosplit
func openTruncate(e *race.Env, _ *race.Event) (errno unix.Errno) {
	e.Fd, errno = race.Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY, e.Mark())
	return errno
}

func observeCreated(e *race.Env, ev *race.Event) {
	if ev.Errno != 0 {
		return
	}
	race.Fstat(e.Fd, &e.Stat)
	ev.Inode, ev.Links = e.Stat.Ino, uint32(e.Stat.Nlink)
	if e.Arg == withContent {
		writeContent(e, e.Fd)
	}
	race.Close(e.Fd)
}

func lookByMark(e *race.Env, a *race.After) {
	lookAtName(e, a)
	if a.Errno == 0 {
		a.Owner = race.OwnerByMark(a.Mode)
	}
}

const contentMagic = 0x636c61696d00 // "claim", and a byte for the maker's number

// writeContent writes the maker's number, eight bytes.
func writeContent(e *race.Env, fd int) unix.Errno {
	b := e.Buf[:8]
	binary.LittleEndian.PutUint64(b, contentMagic|uint64(e.ID))
	return writeAll(fd, b, 0)
}

// writeAll takes a short write for a full disk, which is what it is on a regular file.
func writeAll(fd int, b []byte, off int64) unix.Errno {
	n, errno := race.Pwrite(fd, b, off)
	if errno == 0 && n < len(b) {
		return unix.ENOSPC
	}
	return errno
}

// ownerByContent reads it back.
func ownerByContent(e *race.Env, dir int, name *byte) int16 {
	fd, errno := race.Open(dir, name, unix.O_RDONLY, 0)
	if errno != 0 {
		return race.NoOwner
	}
	n, _ := race.Pread(fd, e.Buf[:8], 0)
	race.Close(fd)
	if v := binary.LittleEndian.Uint64(e.Buf[:8]); n == 8 && v&^0xff == contentMagic {
		return int16(v & 0xff)
	}
	return race.NoOwner
}
