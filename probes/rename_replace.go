package probes

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var renameReplace = Probe{
	Name:    "rename-replace",
	Promise: "While a file is replaced by rename, readers see the old one or the new one, never neither.",
	Why: "A renewed claim or a saved state is replaced this way. A reader that finds nothing in between takes the work " +
		"for unclaimed. Mounts that emulate rename by copy and delete leave such a gap.",
	How: "One contender renames a prepared file over a name that exists, the others open and read the name at the same " +
		"instant. Each must get the whole of the old content or the whole of the new. Only rounds in which a reader overlaps the rename count.",
	Control: "unlink, then rename",
	Broken:  "Do not replace claim files by rename here; generations never replaces a file.",
	Refused: "Rename over an existing file does not exist here; generations never replaces a file.",
	Ops: []race.Op{
		{Name: "rename-replace", Meets: meets(unix.ENOENT, unix.ESTALE), Prepare: prepareReplace, Attempt: replaceOrLook, Settle: removeWritten, Close: removeOwn},
		{Name: "unlink-then-rename", Meets: meets(unix.ENOENT, unix.ESTALE), Prepare: prepareReplace, Attempt: unlinkThenRename, Settle: removeWritten, Close: removeOwn},
	},
	Run: func(ctx context.Context, b *Bench, f *result.Finding) {
		w := watch{op: "rename-replace", control: "unlink-then-rename", mustBe: true, refusals: []unix.Errno{unix.EPERM, unix.EEXIST, unix.EOPNOTSUPP, unix.ENOSYS}}
		e, control, err := w.race(ctx, b, f)
		decide(f, e, control, b.MinProof, err)
	},
}

// prepareReplace lets the writer make the old file under the round's name, and the new one beside it.
func prepareReplace(e *race.Env) unix.Errno {
	if !e.First {
		return 0
	}
	if errno := e.MakeParent(); errno != 0 {
		return errno
	}
	if errno := writeFile(e, e.Name(), uint64(e.Num)<<1); errno != 0 {
		return errno
	}
	errno := writeFile(e, e.Own(), uint64(e.Num)<<1|1)
	if errno != 0 {
		removeName(e)
	}
	return errno
}

func replaceOrLook(e *race.Env, ev *race.Event) unix.Errno {
	if !e.First {
		return look(e, ev, 1)
	}
	ev.Role = race.Writer
	return race.Rename(e.Dir, e.Own(), e.Name(), 0)
}

func unlinkThenRename(e *race.Env, ev *race.Event) unix.Errno {
	if !e.First {
		return look(e, ev, 1)
	}
	ev.Role = race.Writer
	race.Unlink(e.Dir, e.Name(), 0)
	return race.Rename(e.Dir, e.Own(), e.Name(), 0)
}
