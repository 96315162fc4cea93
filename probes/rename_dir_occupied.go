package probes

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var renameDirOccupied = Probe{
	Name:    "rename-dir-occupied",
	Promise: "Renaming a directory onto a non-empty one fails; of several that race for a name exactly one is moved there, and nothing is lost.",
	Why: "Quarantine rests on it: the delayed evictor's rename must fail on a quarantine name that is still occupied. " +
		"Where it succeeded, a live lock would be moved away with its owner inside.",
	How: "Each contender renames a directory of its own, with a file inside, to one fresh name at the same instant; exactly " +
		"one may succeed, the directory there must be the winner's, and each loser's directory must still be where it was. " +
		"EEXIST and ENOTEMPTY are both right. Then one after the other: onto an occupied directory must fail, onto an empty one is recorded.",
	Control: "stat, then rename of an empty directory, which replaces an empty one",
	Broken:  "Do not use the quarantine protocol here; generations needs no rename.",
	Refused: "Directories cannot be renamed here: do not use the quarantine protocol; generations needs no rename.",
	Ops: append(namedOps(race.Op{
		Name: "rename-dir", Meets: meets(unix.EEXIST, unix.ENOTEMPTY), Batch: 64, Prepare: prepareFullDir, Attempt: renameOwn, Observe: observeDirs, After: lookInDir, Clean: removeFullDir, Close: removeOwnDir,
	}),
		race.Op{Name: "stat-then-rename-empty-dir", Meets: meets(unix.EEXIST, unix.ENOTEMPTY), Batch: 64, Prepare: prepareEmptyDir, Attempt: statThenRename, Observe: observeMoved, After: lookInDir, Clean: removeFullDir, Close: removeOwnDir},
		race.Op{Name: "rename-dir-after-emptying", Prepare: prepareFullDir, Attempt: emptyThenRename, Observe: observeMoved},
		race.Op{Name: "rename-dir-onto-empty", Prepare: prepareFullDir, Attempt: renameOntoEmpty, Observe: observeMoved},
	),
	Run: func(ctx context.Context, b *Bench, f *result.Finding) {
		c := contest{
			op: "rename-dir", control: "stat-then-rename-empty-dir",
			overwrite: "rename-dir-after-emptying", named: true,
			lost: []unix.Errno{unix.EEXIST, unix.ENOTEMPTY}, refusals: []unix.Errno{unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL, unix.EPERM, unix.EXDEV},
			loserKeeps: true,
		}
		c.run(ctx, b, f)
		ontoEmpty(ctx, b, f)
	},
}

// ontoEmpty records whether an empty directory is replaced. POSIX says that it is; no claim here rests on it.
func ontoEmpty(ctx context.Context, b *Bench, f *result.Finding) {
	name := b.Line.Name()
	ev, err := b.Line.Do(ctx, 0, "rename-dir-onto-empty", name, 0)
	if err != nil {
		return
	}
	if ev.Errno != 0 {
		f.Warnings = append(f.Warnings, "a rename onto an empty directory gives "+errnoName(ev.Errno)+", where POSIX says that it replaces it")
	}
	if _, err := b.Line.Do(ctx, 0, "rename-dir"+cleanSuffix, name, 0); err != nil {
		f.Warnings = append(f.Warnings, fmt.Sprintf("clean-up: %v", err))
	}
}

// inside is the file in each directory; its content is the owner's number.
func inside(e *race.Env, dir *byte) *byte {
	b := append(e.Buf[128:128], unix.BytePtrToString(dir)...)
	b = append(b, "/m\x00"...)
	return &b[0]
}

func prepareEmptyDir(e *race.Env) unix.Errno {
	if errno := coldParent(e); errno != 0 || e.Made {
		return errno
	}
	errno := ownDir(e)
	e.Made = errno == 0
	return errno
}

func ownDir(e *race.Env) unix.Errno {
	if errno := race.Mkdir(e.Dir, e.Own(), 0o700); errno != unix.EEXIST {
		return errno
	}
	return 0
}

// prepareFullDir counts a directory as made only with its file inside: an empty one would be replaced.
func prepareFullDir(e *race.Env) unix.Errno {
	if errno := coldParent(e); errno != 0 || e.Made {
		return errno
	}
	if errno := ownDir(e); errno != 0 {
		return errno
	}
	errno := makeMarked(e, inside(e, e.Own()))
	e.Made = errno == 0
	return errno
}

// observeDirs looks, after a loss, whether the loser's own directory is still there with its file: Saw is 1 unless
// it is gone.
func observeDirs(e *race.Env, ev *race.Event) {
	if ev.Errno == 0 {
		observeMoved(e, ev)
		return
	}
	if race.Lstat(e.Dir, inside(e, e.Own()), &e.Stat) != unix.ENOENT {
		ev.Saw = 1
		return
	}
	e.Made = false
}

func lookInDir(e *race.Env, a *race.After) {
	lookAtName(e, a)
	if a.Errno == 0 {
		a.Owner = ownerByContent(e, e.Dir, inside(e, e.Name()))
	}
}

func emptyThenRename(e *race.Env, ev *race.Event) unix.Errno {
	race.Unlink(e.Dir, inside(e, e.Name()), 0)
	return renameOwn(e, ev)
}

func renameOntoEmpty(e *race.Env, ev *race.Event) unix.Errno {
	if errno := race.Mkdir(e.Dir, e.Name(), 0o700); errno != 0 {
		return errno
	}
	return renameOwn(e, ev)
}

func removeFullDir(e *race.Env) {
	race.Unlink(e.Dir, inside(e, e.Name()), 0)
	removeDir(e)
}

func removeOwnDir(e *race.Env) {
	race.Unlink(e.Dir, inside(e, e.Own()), 0)
	race.Unlink(e.Dir, e.Own(), unix.AT_REMOVEDIR)
}
