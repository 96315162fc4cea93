package probes

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var unlinkRace = Probe{
	Name:    "unlink-race",
	Promise: "Unlink removes whatever the name stands for by then, and not the file that was judged: a demonstration.",
	Why: "It is why there is no safe call to take a claim back. A contender that judges a claim to be stale, and then unlinks it, unlinks " +
		"what another has put there meanwhile: a live claim. No call unlinks a file on the condition that it is still the one that was looked at.",
	How: "One contender after the other, no race: A judges a file, by a stat or by opening it, which it then holds open; B replaces it, by rename or " +
		"by unlink and exclusive create; A unlinks the name; A looks what is there. Over every ordered pair of routes, and within each.",
	Control: "A does not unlink",
	Broken: "Unlink said that it had removed the name, and the file is still there: no protocol that releases a claim by unlink works here. " +
		"generations does not unlink.",
	Refused: "Unlink of a name that was replaced is refused here, as where a file that is open may not be removed. It is no safe take-back either: a " +
		"live claim may be refused or removed. Expect claims that cannot be cleaned up, and use generations, which does not unlink.",
	Ops:   unlinkOps,
	Alone: true,
	Run:   runUnlink,
}

// demonstrations is how often each is made: it is no matter of chance.
const demonstrations = 2

const unlinkIneffective = "unlink-without-effect"

// What is seen of the file, in Saw.
const (
	nobodysFile uint64 = iota
	judgedFile
	successorsFile
	anothersFile
)

var unlinkOps = []race.Op{
	{Name: "unlink-race:make", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		return writeWhole(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL, oldContent)
	}},
	{Name: "unlink-race:judge by stat", Attempt: func(e *race.Env, ev *race.Event) unix.Errno {
		errno := race.Lstat(e.Dir, e.Name(), &e.Stat)
		if ev.Inode = e.Stat.Ino; errno == 0 && e.Stat.Size == int64(len(oldContent)) {
			ev.Saw = judgedFile
		}
		return errno
	}},
	{Name: "unlink-race:judge by open", Attempt: openJudged},
	{Name: "unlink-race:replace by rename", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		errno := writeWhole(e.Dir, e.Own(), unix.O_CREAT|unix.O_TRUNC, newContent)
		if errno == 0 {
			errno = race.Rename(e.Dir, e.Own(), e.Name(), 0)
		}
		return errno
	}},
	{Name: "unlink-race:replace by create", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		if errno := race.Unlink(e.Dir, e.Name(), 0); errno != 0 {
			return errno
		}
		return writeWhole(e.Dir, e.Name(), unix.O_CREAT|unix.O_EXCL, newContent)
	}},
	{Name: "unlink-race:unlink", Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		return race.Unlink(e.Dir, e.Name(), 0)
	}},
	{Name: "unlink-race:pause", Attempt: func(*race.Env, *race.Event) unix.Errno { return 0 }},
	{Name: "unlink-race" + lookSuffix, Attempt: func(e *race.Env, ev *race.Event) unix.Errno {
		closeJudged(e)
		defer closeJudged(e)
		return openJudged(e, ev)
	}},
	{Name: "unlink-race" + cleanSuffix, Attempt: func(e *race.Env, _ *race.Event) unix.Errno {
		closeJudged(e)
		removeName(e)
		removeOwn(e)
		return 0
	}},
}

// judgedFd is where a file that was judged by opening it stays open until the name is unlinked.
const judgedFd = 7

func openJudged(e *race.Env, ev *race.Event) (errno unix.Errno) {
	e.FD[judgedFd], errno = race.Open(e.Dir, e.Name(), unix.O_RDONLY, 0)
	if errno != 0 {
		return errno
	}
	n, errno := race.Pread(e.FD[judgedFd], e.Buf[:payload], 0)
	switch string(e.Buf[:n]) {
	case oldContent:
		ev.Saw = judgedFile
	case newContent:
		ev.Saw = successorsFile
	default:
		ev.Saw = anothersFile
	}
	return errno
}

func closeJudged(e *race.Env) {
	if fd := &e.FD[judgedFd]; *fd >= 0 {
		race.Close(*fd)
		*fd = -1
	}
}

// An unlinking is one way to get it wrong.
type unlinking struct{ judge, replace string }

var unlinkings = []unlinking{
	{"unlink-race:judge by stat", "unlink-race:replace by rename"},
	{"unlink-race:judge by stat", "unlink-race:replace by create"},
	{"unlink-race:judge by open", "unlink-race:replace by rename"},
	{"unlink-race:judge by open", "unlink-race:replace by create"},
}

// An unlinked is what one demonstration saw, raw.
type unlinked struct {
	made, judged, replaced, removed, after race.Event
}

// refusedUnlink is how a filesystem says that a name may not be removed now.
var refusedUnlink = []unix.Errno{unix.EBUSY, unix.EACCES, unix.EPERM, unix.ETXTBSY, unix.EAGAIN}

// judge rules on one demonstration. a judged and unlinked, b replaced.
func (u *unlinked) judge(a, b int) ruling {
	gone := absentOr(failing, unix.Errno(u.after.Errno)) == absent
	switch {
	case u.made.Errno != 0 || u.judged.Errno != 0 || u.judged.Saw != judgedFile:
		return ruling{failed: true}
	case slices.Contains(refusedUnlink, unix.Errno(u.replaced.Errno)), slices.Contains(refusedUnlink, unix.Errno(u.removed.Errno)):
		return ruling{refused: true}
	case u.replaced.Errno != 0 || u.removed.Errno != 0 || !gone && u.after.Errno != 0:
		return ruling{failed: true}
	case !gone:
		return ruling{kind: unlinkIneffective, sentence: fmt.Sprintf("contender %d judged a file that contender %d then replaced, and unlinked the name: a file is still there", a, b)}
	}
	return ruling{}
}

func runUnlink(ctx context.Context, b *Bench, f *result.Finding) {
	total, control := newEvidence("unlink-race"), newEvidence("unlink-race")
	err := b.demonstrateAll(ctx, total, "unlink-race:unlink")
	if err == nil {
		err = b.demonstrateAll(ctx, control, "unlink-race:pause")
	}
	answer(f, total, control, err)
	switch {
	case f.Verdict != result.Holds:
	case total.refused > 0:
		f.Verdict, f.Reason = result.Unsupported, fmt.Sprintf("refused in %d of %d rounds, errnos seen: %s", total.refused, total.rounds, countsOf(total.errnos))
	default:
		f.Reason = fmt.Sprintf("in all of %d scripted rounds unlink removed the file that was put there after the judgement, as POSIX says: there is no safe call to take a claim back", total.rounds)
	}
}

func (b *Bench) demonstrateAll(ctx context.Context, e *evidence, remove string) error {
	for _, p := range b.allPairs() {
		for _, u := range unlinkings {
			for range demonstrations {
				if err := b.demonstrate(ctx, e, u, p, remove); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// allPairs is every ordered pair of routes, and two contenders within each.
func (b *Bench) allPairs() [][2]int {
	all := b.pairs()
	for route := range b.Routes {
		if other := route + b.Routes; b.Routes > 1 && other < b.Line.Contenders() {
			all = append(all, [2]int{route, other})
		}
	}
	return all
}

// demonstrate plays one round: the replacement comes between judging and unlinking.
func (b *Bench) demonstrate(ctx context.Context, e *evidence, u unlinking, p [2]int, remove string) error {
	s := b.script(ctx)
	saw := unlinked{made: s.do(p[1], "unlink-race:make", 0)}
	saw.judged = s.do(p[0], u.judge, 0)
	saw.replaced = s.do(p[1], u.replace, 0)
	saw.removed = s.do(p[0], remove, 0)
	saw.after = s.do(p[0], "unlink-race"+lookSuffix, 0)
	s.do(p[1], "unlink-race"+cleanSuffix, 0)
	if s.err != nil {
		return s.err
	}
	s.round.Phase = race.Step
	e.check(s, saw.judge(p[0], p[1]), "unlink")
	return nil
}
