package probes

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var link = Probe{
	Name:    "link",
	Promise: "link(2) of a private file to one name succeeds for one contender only, and st_nlink tells the winner so.",
	Why: "It publishes a claim whole, content included, in one step, and its winner can verify its own success by the " +
		"link count when the reply was lost. FAT, many FUSE mounts and some shares refuse it; sshfs makes two files of it.",
	How: "Each contender links a private file that carries its number to one fresh name at the same instant; exactly one " +
		"may succeed, and the content under the name must be the winner's. Then two of them one after the other, as for " +
		"excl-create, and the link count and inode of both names are compared after one link.",
	Control: "stat, then a private file renamed over the name",
	Broken:  "Do not claim by link here. Claim by exclusive create or mkdir if those hold.",
	Refused: "Hard links do not exist here: use a protocol that is safe with empty claims and needs no link, such as generations.",
	Ops: append(namedOps(race.Op{
		Name: "link", Meets: meets(unix.EEXIST), Prepare: prepareOwnFile, Attempt: attemptLink, Observe: observeOwn, After: lookByContent, Clean: removeName, Close: removeOwn,
	}),
		race.Op{Name: "stat-then-rename", Meets: meets(unix.EEXIST), Prepare: prepareOwnFile, Attempt: statThenRename, Observe: observeMoved, After: lookByContent, Clean: removeName, Close: removeOwn},
		race.Op{Name: "rename-over", Prepare: prepareOwnFile, Attempt: renameOwn, Observe: observeMoved},
		race.Op{Name: "link-count", Prepare: prepareOwnFile, Attempt: linkCount},
	),
	Run: func(ctx context.Context, b *Bench, f *result.Finding) {
		c := contest{
			op: "link", control: "stat-then-rename", overwrite: "rename-over", named: true,
			lost: []unix.Errno{unix.EEXIST}, refusals: []unix.Errno{unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM, unix.EINVAL, unix.EACCES, unix.EMLINK},
		}
		c.run(ctx, b, f)
		if f.Verdict == result.Holds {
			countLinks(ctx, b, f)
		}
	},
}

// countLinks looks whether a contender can see by the link count of its private file that its link succeeded.
func countLinks(ctx context.Context, b *Bench, f *result.Finding) {
	for who := range max(1, b.Routes) {
		ev, err := b.Line.Do(ctx, who, "link-count", b.Line.Name(), 0)
		if err != nil || ev.Errno != 0 {
			f.Warnings = append(f.Warnings, fmt.Sprintf("the link count could not be read: %v %s", err, errnoName(ev.Errno)))
			return
		}
		f.Figures[fmt.Sprintf("links_seen_route_%d_count", who)] = float64(ev.Links)
		if ev.Links != 2 || ev.Inode != ev.Saw {
			f.Class = "no-link-count"
			f.Warnings = append(f.Warnings, fmt.Sprintf("after one link the private name shows a link count of %d, inodes %d and %d: a winner cannot verify its own success here", ev.Links, ev.Inode, ev.Saw))
			return
		}
	}
}

// linkCount links once and records the private name's link count and inode, and the inode of the new name.
func linkCount(e *race.Env, ev *race.Event) unix.Errno {
	errno := race.Link(e.Dir, e.Own(), e.Name())
	if errno == 0 {
		errno = race.Lstat(e.Dir, e.Own(), &e.Stat)
		ev.Inode, ev.Links = e.Stat.Ino, uint32(e.Stat.Nlink)
	}
	if errno == 0 {
		errno = race.Lstat(e.Dir, e.Name(), &e.Stat)
		ev.Saw = e.Stat.Ino
	}
	removeName(e)
	removeOwn(e)
	return errno
}

// prepareOwnFile makes the contender's private file, with its number inside, unless it still has one.
func prepareOwnFile(e *race.Env) unix.Errno {
	if errno := coldParent(e); errno != 0 || e.Made {
		return errno
	}
	removeOwn(e)
	errno := makeMarked(e, e.Own())
	e.Made = errno == 0
	return errno
}

// makeMarked makes a file with the contender's number inside. It counts as made only with that in it.
func makeMarked(e *race.Env, name *byte) unix.Errno {
	fd, errno := race.Open(e.Dir, name, unix.O_CREAT|unix.O_WRONLY, 0o600)
	if errno != 0 {
		return errno
	}
	errno = writeContent(e, fd)
	if failed := race.Close(fd); errno == 0 {
		errno = failed
	}
	return errno
}

//go:nosplit
func attemptLink(e *race.Env, _ *race.Event) unix.Errno { return race.Link(e.Dir, e.Own(), e.Name()) }

//go:nosplit
func renameOwn(e *race.Env, _ *race.Event) unix.Errno {
	return race.Rename(e.Dir, e.Own(), e.Name(), 0)
}

//go:nosplit
func statThenRename(e *race.Env, ev *race.Event) unix.Errno {
	if race.Lstat(e.Dir, e.Name(), &e.Stat) == 0 {
		return unix.EEXIST
	}
	return renameOwn(e, ev)
}

// observeOwn records the winner's private file, which the name must now be another name of.
func observeOwn(e *race.Env, ev *race.Event) {
	if ev.Errno == 0 && race.Lstat(e.Dir, e.Own(), &e.Stat) == 0 {
		ev.Inode, ev.Links = e.Stat.Ino, uint32(e.Stat.Nlink)
	}
}

// observeMoved is observeName after a rename, which used up the private file.
func observeMoved(e *race.Env, ev *race.Event) {
	if ev.Errno == 0 || unix.Errno(ev.Errno) == unix.ENOENT {
		e.Made = false // moved, now or by an attempt that was told otherwise
	}
	observeName(e, ev)
}

func lookByContent(e *race.Env, a *race.After) {
	lookAtName(e, a)
	if a.Errno == 0 {
		a.Owner = ownerByContent(e, e.Dir, e.Name())
	}
}
