package probes

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var renameAway = Probe{
	Name:    "rename-away",
	Promise: "Of several that rename one directory away, each to a name of its own, one succeeds, and has it.",
	Why: "Whoever evicts an expired lock renames its directory, and believes that nobody else did. Where a rename is a copy and " +
		"a removal, or is done by a server that answers two clients, two evict the lock, and the later one the lock of the successor.",
	How: "One directory, with a file inside, lies under a fresh name. Each contender renames it to a name of its own at the same " +
		"instant; exactly one may succeed, and must find the file under its name. ENOENT and ESTALE are what the others may be told.",
	Control: "stat, then make a directory of its own and remove what was there",
	Broken:  "Do not use the quarantine protocol here; generations needs no rename.",
	Refused: "Directories cannot be renamed here: do not use the quarantine protocol; generations needs no rename.",
	Ops: []race.Op{
		{Name: "rename-away", Meets: meets(unix.ENOENT, unix.ESTALE), Batch: 64, Prepare: prepareShared, Attempt: attemptAway, Observe: observeAway, Clean: removeFullDir, Close: removeOwnDir},
		{Name: "stat-then-copy-away", Meets: meets(unix.ENOENT, unix.ESTALE), Batch: 64, Prepare: prepareShared, Attempt: copyAway, Observe: observeAway, Clean: removeFullDir, Close: removeOwnDir},
	},
	Run: func(ctx context.Context, b *Bench, f *result.Finding) {
		c := contest{
			op: "rename-away", control: "stat-then-copy-away", winnerHas: true,
			lost: []unix.Errno{unix.ENOENT, unix.ESTALE}, refusals: []unix.Errno{unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL, unix.EPERM, unix.EXDEV},
		}
		c.run(ctx, b, f)
	},
}

// prepareShared has one contender make the round's directory, which is there when all have returned.
func prepareShared(e *race.Env) unix.Errno {
	if !e.First {
		return 0
	}
	if errno := e.MakeParent(); errno != 0 {
		return errno
	}
	if errno := race.Mkdir(e.Dir, e.Name(), 0o700); errno != 0 {
		return errno
	}
	return makeMarked(e, inside(e, e.Name()))
}

//go:nosplit
func attemptAway(e *race.Env, _ *race.Event) unix.Errno {
	return race.Rename(e.Dir, e.Name(), e.Own(), 0)
}

func copyAway(e *race.Env, _ *race.Event) unix.Errno {
	if errno := race.Lstat(e.Dir, e.Name(), &e.Stat); errno != 0 {
		return errno
	}
	errno := race.Mkdir(e.Dir, e.Own(), 0o700)
	race.Unlink(e.Dir, inside(e, e.Name()), 0)
	race.Unlink(e.Dir, e.Name(), unix.AT_REMOVEDIR)
	return errno
}

// observeAway looks, after a success, for the file under the contender's own name, and takes it out of the next
// round's way: Saw is 1 if it was there.
func observeAway(e *race.Env, ev *race.Event) {
	if ev.Errno != 0 {
		return
	}
	if race.Lstat(e.Dir, inside(e, e.Own()), &e.Stat) == 0 {
		ev.Saw, ev.Inode = 1, e.Stat.Ino
	}
	removeOwnDir(e)
}
