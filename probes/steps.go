package probes

import (
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// Suffixes of the scripted operations that belong to a contest's operation.
const (
	lookSuffix  = ":look"  // Errno of the look-up; Inode is the inode, Saw the size and, in the lowest byte, the owner
	cleanSuffix = ":clean" // removes what lies under the round's name
)

// withContent asks an operation to put its maker's content into what it makes.
const withContent = 1

// namedOps makes, from an operation that leaves an object under the round's name, the scripted operations that
// look at it and remove it.
func namedOps(op race.Op) []race.Op {
	return []race.Op{
		op,
		{Name: op.Name + lookSuffix, Attempt: func(e *race.Env, ev *race.Event) unix.Errno {
			var a race.After
			op.After(e, &a)
			if a.Errno == 0 {
				ev.Inode, ev.Links, ev.Saw = a.Inode, a.Links, uint64(a.Size)<<8|uint64(a.Owner)&0xff
			}
			return unix.Errno(a.Errno)
		}},
		{Name: op.Name + cleanSuffix, Attempt: func(e *race.Env, ev *race.Event) unix.Errno {
			op.Clean(e)
			return 0
		}},
	}
}

// coldParent lets one contender make the parent directory of a cold round.
func coldParent(e *race.Env) unix.Errno {
	if e.First {
		return e.MakeParent()
	}
	return 0
}

// lookAtName records what lies under the round's name.
func lookAtName(e *race.Env, a *race.After) {
	a.Owner = race.NoOwner
	a.Errno = uint32(race.Lstat(e.Dir, e.Name(), &e.Stat))
	if a.Errno == 0 {
		a.Inode, a.Links, a.Mode = e.Stat.Ino, uint32(e.Stat.Nlink), e.Stat.Mode
		if e.Stat.Mode&unix.S_IFMT != unix.S_IFDIR { // the size of a directory is the filesystem's own affair
			a.Size = e.Stat.Size
		}
	}
}

func removeName(e *race.Env) { race.Unlink(e.Dir, e.Name(), 0) }

func removeOwn(e *race.Env) { race.Unlink(e.Dir, e.Own(), 0) }
