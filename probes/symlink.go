package probes

import (
	"bytes"
	"context"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var symlink = Probe{
	Name:    "symlink",
	Promise: "symlink of one name succeeds for one contender only, and the link says whose it is.",
	Why: "A symlink is a claim with its owner record inside, published in one step; it serves where hard links do not " +
		"exist. Some shares refuse symlinks or store them as something else.",
	How: "Contenders make one fresh symlink at the same instant, each with its own target text; exactly one may succeed, " +
		"and the text read back must be the winner's. Then two of them one after the other, as for excl-create.",
	Control: "lstat, then a prepared symlink renamed over the name",
	Broken:  "Do not claim by symlink here. Claim by exclusive create or mkdir if those hold.",
	Refused: "Symlinks do not exist here: claim by exclusive create or mkdir if those hold.",
	Ops: append(namedOps(race.Op{
		Name: "symlink", Meets: meets(unix.EEXIST), Prepare: coldParent, Attempt: attemptSymlink, Observe: observeName, After: lookByTarget, Clean: removeName,
	}),
		race.Op{Name: "lstat-then-ln-sf", Meets: meets(unix.EEXIST), Prepare: prepareOwnSymlink, Attempt: statThenRename, Observe: observeMoved, After: lookByTarget, Clean: removeName, Close: removeOwn},
		race.Op{Name: "ln-sf", Prepare: prepareOwnSymlink, Attempt: renameOwn, Observe: observeMoved},
	),
	Run: func(ctx context.Context, b *Bench, f *result.Finding) {
		c := contest{
			op: "symlink", control: "lstat-then-ln-sf", overwrite: "ln-sf", named: true,
			lost: []unix.Errno{unix.EEXIST}, refusals: []unix.Errno{unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM, unix.EINVAL, unix.EACCES},
		}
		c.run(ctx, b, f)
	},
}

//go:nosplit
func attemptSymlink(e *race.Env, _ *race.Event) unix.Errno {
	return race.Symlink(e.Own(), e.Dir, e.Name())
}

// prepareOwnSymlink makes the symlink that the control renames.
func prepareOwnSymlink(e *race.Env) unix.Errno {
	if errno := coldParent(e); errno != 0 || e.Made {
		return errno
	}
	errno := race.Symlink(e.Own(), e.Dir, e.Own())
	e.Made = errno == 0 || errno == unix.EEXIST
	if e.Made {
		return 0
	}
	return errno
}

// lookByTarget reads the owner out of the symlink: its text is the private name "own<hex>" of its maker.
func lookByTarget(e *race.Env, a *race.After) {
	lookAtName(e, a)
	n, errno := race.Readlink(e.Dir, e.Name(), e.Buf[:64])
	digits, ok := bytes.CutPrefix(e.Buf[:n], []byte("own"))
	if errno != 0 || !ok || len(digits) == 0 || len(digits) > 2 {
		return
	}
	for _, d := range digits {
		a.Owner = max(a.Owner, 0)*16 + int16(bytes.IndexByte([]byte("0123456789abcdef"), d))
	}
}
