package probes

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var renameNoreplace = Probe{
	Name:    "rename-noreplace",
	Promise: "renameat2(RENAME_NOREPLACE) onto one name succeeds for one contender only.",
	Why: "It is the rename that does not destroy what is there. NFS and many FUSE mounts refuse it with EINVAL, and " +
		"programs then fall back to a plain rename, which overwrites a claim without an error.",
	How: "Each contender renames a private file to one fresh name at the same instant; exactly one may succeed, and the " +
		"content under the name must be the winner's. The name is free when the round begins: onto an existing name the " +
		"kernel answers EEXIST even where the filesystem lacks the operation. Then two of them one after the other, as for excl-create.",
	Control: "stat, then rename without RENAME_NOREPLACE",
	Broken:  "Do not claim by rename here. Claim by exclusive create, mkdir or link if those hold.",
	Refused: "This rename does not exist here. Never fall back to a plain rename: claim by exclusive create, mkdir or link if those hold.",
	Ops: namedOps(race.Op{
		Name: "rename-noreplace", Meets: meets(unix.EEXIST), Prepare: prepareOwnFile, Attempt: attemptNoreplace, Observe: observeMoved, After: lookByContent, Clean: removeName, Close: removeOwn,
	}),
	Run: func(ctx context.Context, b *Bench, f *result.Finding) {
		c := contest{
			op: "rename-noreplace", control: "stat-then-rename", overwrite: "rename-over", named: true,
			lost: []unix.Errno{unix.EEXIST}, refusals: []unix.Errno{unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL, unix.EPERM},
		}
		c.run(ctx, b, f)
	},
}

//go:nosplit
func attemptNoreplace(e *race.Env, _ *race.Event) unix.Errno {
	return race.Rename(e.Dir, e.Own(), e.Name(), unix.RENAME_NOREPLACE)
}
