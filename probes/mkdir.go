package probes

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var mkdir = Probe{
	Name:    "mkdir",
	Promise: "mkdir of one name succeeds for one contender only.",
	Why: "A lock directory is the portable lock of shell scripts, and the first step of the quarantine protocol. " +
		"Some servers tell the winner EEXIST after a lost reply, and some shares report another errno than EEXIST.",
	How: "Contenders make one fresh directory at the same instant; exactly one may succeed, and the directory must carry " +
		"the winner's mark. Then two of them one after the other, as for excl-create.",
	Control: "stat, then mkdir that takes an existing directory for success",
	Broken:  "Do not use mkdir as a lock here. Claim by exclusive create or link if those hold.",
	Refused: "Directories cannot be made here: claim by exclusive create if that holds.",
	Ops: append(namedOps(race.Op{
		Name: "mkdir", Meets: meets(unix.EEXIST), Prepare: coldParent, Attempt: attemptMkdir, Observe: observeName, After: lookByMark, Clean: removeDir,
	}),
		race.Op{Name: "stat-then-mkdir-p", Meets: meets(unix.EEXIST), Prepare: coldParent, Attempt: statThenMkdir, Observe: observeName, After: lookByMark, Clean: removeDir},
		race.Op{Name: "mkdir-p", Attempt: mkdirP},
	),
	Run: func(ctx context.Context, b *Bench, f *result.Finding) {
		c := contest{
			op: "mkdir", control: "stat-then-mkdir-p", overwrite: "mkdir-p", named: true,
			lost: []unix.Errno{unix.EEXIST}, refusals: []unix.Errno{unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM, unix.EINVAL},
		}
		c.run(ctx, b, f)
	},
}

//go:nosplit
func attemptMkdir(e *race.Env, _ *race.Event) unix.Errno {
	return race.Mkdir(e.Dir, e.Name(), e.Mark())
}

//go:nosplit
func statThenMkdir(e *race.Env, ev *race.Event) unix.Errno {
	if race.Lstat(e.Dir, e.Name(), &e.Stat) == 0 {
		return unix.EEXIST
	}
	return mkdirP(e, ev)
}

//go:nosplit
func mkdirP(e *race.Env, _ *race.Event) unix.Errno {
	if errno := race.Mkdir(e.Dir, e.Name(), e.Mark()); errno != unix.EEXIST {
		return errno
	}
	return 0
}

// observeName records the inode of what the winner made.
func observeName(e *race.Env, ev *race.Event) {
	if ev.Errno == 0 && race.Lstat(e.Dir, e.Name(), &e.Stat) == 0 {
		ev.Inode, ev.Links = e.Stat.Ino, uint32(e.Stat.Nlink)
	}
}

func removeDir(e *race.Env) { race.Unlink(e.Dir, e.Name(), unix.AT_REMOVEDIR) }
