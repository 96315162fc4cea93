package probes

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/stat"
)

var durability = Probe{
	Name:    "durability",
	Promise: "fsync of a file, and of a directory in which a file was just made, is accepted. Whether it survives a power failure is not tested.",
	Why: "Work that was recorded as done just before the machine of the filesystem lost its power can be found not done, and is " +
		"done again, unless record and name were synced. Directories need their own fsync (fsync(2)); CIFS refused it before Linux 4.17, and other " +
		"filesystems answer an I/O error that cannot be told from a failing disk.",
	How: "Over each route one contender writes a file and syncs it, then makes a file and syncs its directory, some twenty times. " +
		"The errnos are recorded, and how long the call takes. That a server, a disk or a virtual machine keeps what it has acknowledged would take a power " +
		"failure to see: a verdict of holds says that the calls are accepted, no more. The class directories means that only fsync of directories is refused.",
	Control: "fsync of a descriptor opened with O_PATH, which no filesystem can carry out",
	Broken:  "An I/O error here cannot be told from a failing disk: look at dmesg and at the server. If it is always answered, nothing that is synced here is known to be safe.",
	Refused: "Where only directories are refused, a new name can be lost in a crash of the server: treat work that was done shortly before as not done, or mount " +
		"so that the server writes through (sync). Where files are refused as well, do not set Options.Sync, and do not rely on a record that was made just before a crash.",
	Ops: []race.Op{
		{Name: "make-to-sync", Attempt: func(e *race.Env, _ *race.Event) (errno unix.Errno) {
			if e.Fd, errno = race.Open(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600); errno == 0 {
				_, errno = race.Pwrite(e.Fd, e.Buf[:16], 0)
			}
			return errno
		}},
		{Name: "sync-file", Attempt: func(e *race.Env, _ *race.Event) unix.Errno { return race.Fsync(e.Fd) }},
		{Name: "sync-dir", Attempt: func(e *race.Env, _ *race.Event) unix.Errno { return race.Fsync(e.Dir) }},
		{Name: "sync-nothing", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
			fd, errno := race.Open(e.Dir, e.Name(), unix.O_PATH, 0)
			if errno == 0 {
				errno = race.Fsync(fd)
				race.Close(fd)
			}
			return errno
		}},
		{Name: "sync" + cleanSuffix, Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
			race.Close(e.Fd)
			e.Fd = -1
			return race.Unlink(e.Dir, e.Name(), 0)
		}},
	},
	Alone: true,
	Run:   runDurability,
}

// onlyDirectories is the class of a filesystem that syncs files and refuses directories.
const onlyDirectories = "directories"

// syncFails is the kind of violation: an error of which nobody can know what it means.
const syncFails = "io-error"

// syncRefusals are what a call is told that will never be carried out: fsync(2) names EINVAL for what cannot be
// synced, and EBADF is the control's.
var syncRefusals = []unix.Errno{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM, unix.EACCES, unix.EISDIR, unix.EBADF}

// judgeSync rules on one call, after the file was made or not.
func judgeSync(op string, made, ev *race.Event) ruling {
	switch {
	case made.Errno != 0:
		return ruling{failed: true}
	case ev.Errno == uint32(unix.EIO):
		return ruling{kind: syncFails, sentence: op + " of what was just made gave EIO"}
	case contains(syncRefusals, ev.Errno):
		return ruling{refused: true}
	}
	return ruling{failed: ev.Errno != 0}
}

const (
	syncs     = 21                     // of each kind over each route
	leastSync = 3                      // that must say something
	syncTime  = 100 * time.Millisecond // for each kind, as long as there are some
)

func runDurability(ctx context.Context, b *Bench, f *result.Finding) {
	files, dirs, control := newEvidence("sync-file"), newEvidence("sync-dir"), newEvidence("sync-nothing")
	began := time.Now()
	err := b.sync(ctx, f, control, func(made, ev *race.Event) ruling {
		if judgeSync(control.op, made, ev).refused {
			if control.first == 0 {
				control.first = time.Since(began)
			}
			return ruling{kind: "refused", sentence: "what cannot be synced was refused"}
		}
		return ruling{}
	})
	control.parts = control.rounds
	for _, e := range []*evidence{files, dirs} {
		if err == nil {
			err = b.sync(ctx, f, e, func(made, ev *race.Event) ruling { return judgeSync(e.op, made, ev) })
		}
	}
	total := newEvidence("sync")
	total.merge(files)
	total.merge(dirs)
	decideAlone(f, total, control, leastSync, err)
	if err == nil {
		tellSync(f, files, dirs)
	}
}

// sync repeats one kind of call over each route.
func (b *Bench) sync(ctx context.Context, f *result.Finding, e *evidence, judge func(made, synced *race.Event) ruling) error {
	var took []float64
	for route := range max(1, b.Routes) {
		began := time.Now()
		for i := 0; i < syncs && (i < leastSync || time.Since(began) < syncTime); i++ {
			s := b.script(ctx)
			made := s.do(route, "make-to-sync", 0)
			ev := race.Event{}
			if made.Errno == 0 {
				ev = s.do(route, e.op, 0)
			}
			s.do(route, "sync"+cleanSuffix, 0)
			if s.err != nil {
				return s.err
			}
			v := judge(&made, &ev)
			if v == (ruling{}) {
				took = append(took, float64(ev.Return-ev.Invoke)/1e3)
			}
			e.add(&s.round, false, v, func() result.Round { return s.raw(e.op) })
		}
	}
	figure := map[string]string{"sync-file": "file_sync_p50_us", "sync-dir": "dir_sync_p50_us"}[e.op]
	if v, _, _, ok := stat.Median(took); ok && figure != "" {
		f.Figures[figure] = v
	}
	return nil
}

// tellSync says what the calls are worth, and tells directories from files.
func tellSync(f *result.Finding, files, dirs *evidence) {
	told := func(e *evidence) int { return e.rounds - e.refused - e.failed }
	switch {
	case f.Verdict != result.Holds:
	case dirs.refused > 0 && files.refused == 0: // over one route is enough
		f.Verdict, f.Class = result.Unsupported, onlyDirectories
		f.Reason = fmt.Sprintf("fsync of directories is refused with %s; files are synced", countsOf(dirs.errnos))
	case files.refused > 0 && dirs.refused == 0:
		f.Verdict, f.Reason = result.Unsupported, fmt.Sprintf("fsync of files is refused with %s; directories are synced", countsOf(files.errnos))
	case files.refused > 0:
		f.Verdict, f.Reason = result.Unsupported, fmt.Sprintf("fsync is refused over a route: of files with %s, of directories with %s", countsOf(files.errnos), countsOf(dirs.errnos))
	case told(files) < leastSync || told(dirs) < leastSync:
		f.Verdict, f.Reason = result.Unproven, "too few calls say something, errnos seen: "+countsOf(f.Errnos)
	default:
		f.Reason = fmt.Sprintf("accepted %d times; half of the calls take less than %.1f µs for a file and %.1f µs for a directory; that it survives a power failure is not tested",
			told(files)+told(dirs), f.Figures["file_sync_p50_us"], f.Figures["dir_sync_p50_us"])
	}
}
