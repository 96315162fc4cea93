package probes

import (
	"encoding/binary"
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// Where a claim was refused, in Saw.
const (
	atCreate uint64 = iota + 1
	atWrite
	atSync
	atClose
	atLink
)

const fillAtOnce = 256 << 20 // bytes of one file

var fullOps = []race.Op{
	{Name: "full-room", Attempt: func(e *race.Env, ev *race.Event) unix.Errno {
		var st unix.Statfs_t
		errno, _ := unix.Fstatfs(e.Dir, &st).(unix.Errno)
		ev.Saw = st.Bfree * uint64(st.Bsize) // with what is kept for root, who fills it, too
		return errno
	}},
	{Name: "full-fill", Attempt: fillDisk},
	{Name: "full-claim", Attempt: func(e *race.Env, ev *race.Event) unix.Errno { return writeClaim(e, ev, e.Name(), true) }},
	{Name: "full-claim-linked", Attempt: linkClaim},
	{Name: "full-claim-careless", Attempt: func(e *race.Env, ev *race.Event) unix.Errno { return writeClaim(e, ev, e.Name(), false) }},
	{Name: "full-look", Attempt: lookAtClaim},
	{Name: "full-remove", Attempt: func(e *race.Env, _ *race.Event) unix.Errno { return race.Unlink(e.Dir, e.Name(), 0) }},
}

// fillDisk makes a file under the round's name as large as it may be, and not much more than Arg. Saw is its size; 0 is
// returned where more would fit.
func fillDisk(e *race.Env, ev *race.Event) unix.Errno {
	fd, errno := race.Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
	if errno != 0 {
		return errno
	}
	defer race.Close(fd)
	size := allocate(e, fd, int64(e.Arg))
	size, errno = pad(e, fd, size, int64(e.Arg))
	ev.Saw = uint64(size)
	if err := unix.Fsync(fd); err != nil && errno == 0 {
		errno = err.(unix.Errno)
	}
	return errno
}

// allocate reserves what it can without writing, in ever smaller pieces, fallocate(2).
func allocate(e *race.Env, fd int, most int64) (size int64) {
	for piece := int64(64 << 20); piece >= 4096 && size < most; {
		e.Progress()
		switch unix.Fallocate(fd, 0, size, piece) {
		case nil:
			size += piece
		case unix.ENOSPC, unix.EDQUOT:
			piece /= 2
		default:
			return size
		}
	}
	return size
}

// pad writes what neither compression nor deduplication makes smaller, until there is no room.
func pad(e *race.Env, fd int, size, most int64) (int64, unix.Errno) {
	var block [64 << 10]byte
	random := rand.New(rand.NewPCG(uint64(e.Num), uint64(size)))
	for piece := len(block); size < most; {
		e.Progress()
		for i := 0; i < piece; i += 8 {
			binary.LittleEndian.PutUint64(block[i:], random.Uint64())
		}
		n, errno := race.Pwrite(fd, block[:piece], size)
		size += int64(n)
		switch {
		case errno == 0 && n > 0:
		case piece > 512:
			piece /= 2
		case errno == 0:
			return size, unix.ENOSPC
		default:
			return size, errno
		}
	}
	return size, 0
}

// claimSize is more than a page, and more than any filesystem keeps beside its metadata.
const claimSize = 2 * payload

// writeClaim makes a claim under a name and writes it, each byte the low one of the round's number. A careful maker
// stops at the first error, and at a write that was cut short.
func writeClaim(e *race.Env, ev *race.Event, name *byte, careful bool) unix.Errno {
	fd, errno := race.Open(e.Dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
	if errno != 0 {
		ev.Saw = atCreate
		return errno
	}
	b := e.Buf[:claimSize]
	for i := range b {
		b[i] = claimByte(e.Num)
	}
	ev.Saw = atWrite
	n, errno := race.Pwrite(fd, b, 0)
	if errno == 0 && n < len(b) {
		errno = unix.ENOSPC
	}
	if errno == 0 {
		ev.Saw = atSync
		errno, _ = unix.Fsync(fd).(unix.Errno)
	}
	if closed := race.Close(fd); errno == 0 && closed != 0 {
		ev.Saw, errno = atClose, closed
	}
	if !careful || errno == 0 {
		ev.Saw, errno = 0, 0
	}
	return errno
}

func claimByte(number int64) byte { return byte(number) | 1 }

// linkClaim writes a claim under a private name, and publishes it whole.
func linkClaim(e *race.Env, ev *race.Event) unix.Errno {
	errno := writeClaim(e, ev, e.Own(), true)
	if errno == 0 {
		if errno = race.Link(e.Dir, e.Own(), e.Name()); errno != 0 {
			ev.Saw = atLink
		}
	}
	race.Unlink(e.Dir, e.Own(), 0)
	return errno
}

// lookAtClaim says in Saw whether the claim is whole (its byte), empty or torn.
func lookAtClaim(e *race.Env, ev *race.Event) unix.Errno {
	fd, errno := race.Open(e.Dir, e.Name(), unix.O_RDONLY, 0)
	if errno != 0 {
		return errno
	}
	defer race.Close(fd)
	n, errno := race.Pread(fd, e.Buf[:claimSize+1], 0)
	ev.Saw = uint64(claimByte(e.Num))
	switch {
	case n == 0:
		ev.Saw = sawEmpty
	case n != claimSize:
		ev.Saw = sawTorn
	}
	for _, b := range e.Buf[:n] {
		if b != claimByte(e.Num) {
			ev.Saw = sawTorn
		}
	}
	return errno
}
