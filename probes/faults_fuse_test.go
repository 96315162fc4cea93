package probes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claimbench/claimbench/internal/result"
	sloppy "github.com/claimbench/claimbench/internal/sloppyfs"
)

// A planted is a fault of a mounted filesystem, and what a probe must say of it.
type planted struct {
	fault   string
	mounts  int
	plant   func(*sloppy.Share)
	probe   string
	verdict result.Verdict
	class   string
	kinds   []string // of violation: the first must be seen, the others may
	reason  string   // is part of the reason
}

// one plants one fault, on each occasion.
func one(f sloppy.Fault, on ...sloppy.Call) func(*sloppy.Share) {
	return func(s *sloppy.Share) { s.Plant(f, 1, on...) }
}

// each plants several.
func each(faults ...sloppy.Fault) func(*sloppy.Share) {
	return func(s *sloppy.Share) {
		for _, f := range faults {
			s.Plant(f, 1)
		}
	}
}

func nothing(*sloppy.Share) {}

// anyClass is for what depends on the machine.
const anyClass = "any"

const (
	holds       = result.Holds
	broken      = result.Broken
	unsupported = result.Unsupported
	unproven    = result.Unproven
)

// vanished is what can be seen of an object that goes away a moment after it was made: others may find the name free.
var vanished = []string{objectVanished, severalWinners, takenNameGiven, changedByLoser, othersObject}

var exclusionFaults = []planted{
	{"O_EXCL is a look-up and a create", 2, one(sloppy.ExclDropped), "excl-create", broken, "", []string{severalWinners}, "succeeded for contenders"},
	{"one mount hides that: the VFS holds the parent's lock", 1, one(sloppy.ExclDropped), "excl-create", holds, "", nil, ""},
	{"O_EXCL is answered from a cached look-up", 2, each(sloppy.ExclDropped, sloppy.NegativeCached), "excl-create", broken, "", []string{takenNameGiven, severalWinners}, ""},
	{"mkdir takes an existing directory", 2, one(sloppy.MkdirTakesExisting), "mkdir", broken, "", []string{severalWinners}, ""},
	{"one mount hides that, too", 1, one(sloppy.MkdirTakesExisting), "mkdir", holds, "", nil, ""},
	{"mkdir takes an existing directory, and a cached look-up", 2, each(sloppy.MkdirTakesExisting, sloppy.NegativeCached), "mkdir", broken, "", []string{takenNameGiven, severalWinners}, ""},
	{"symlink is a look-up and a rename", 2, one(sloppy.SymlinkNotAtomic), "symlink", broken, "", []string{severalWinners}, ""},
	{"link is a look-up and a rename", 2, one(sloppy.LinkNotAtomic), "link", broken, "", []string{severalWinners}, ""},
	{"RENAME_NOREPLACE is a look-up and a rename", 2, one(sloppy.NoreplaceNotAtomic), "rename-noreplace", broken, "", []string{severalWinners}, ""},
	{"a directory is renamed onto an occupied one", 1, one(sloppy.RenameOntoOccupied), "rename-dir-occupied", broken, "", []string{severalWinners, takenNameGiven, othersObject}, ""},
	{"and over two mounts", 2, one(sloppy.RenameOntoOccupied), "rename-dir-occupied", broken, "", []string{severalWinners, takenNameGiven, othersObject}, ""},
	{"a rename that fails loses the directory", 1, one(sloppy.RenameLosesSource), "rename-dir-occupied", broken, "", []string{loserRobbed}, ""},
	{"a create that fails truncates", 2, each(sloppy.LoserTruncates, sloppy.NegativeCached), "excl-create", broken, "", []string{changedByLoser}, ""},
	{"a symlink that fails replaces", 2, one(sloppy.LoserReplaces), "symlink", broken, "", []string{othersObject}, ""},
	{"a link that fails replaces", 2, one(sloppy.LoserReplaces), "link", broken, "", []string{othersObject}, ""},
	{"rename leaves a gap", 2, one(sloppy.RenameWithGap), "rename-replace", broken, "", []string{nameAbsent}, ""},
	{"one mount hides the gap", 1, one(sloppy.RenameWithGap), "rename-replace", holds, "", nil, ""},
	{"a released name stays taken for who has seen it", 2, one(sloppy.PositiveCached), "excl-create", broken, "", []string{releasedStaysTaken}, ""},
	{"also a directory's", 2, one(sloppy.PositiveCached), "mkdir", broken, "", []string{releasedStaysTaken}, ""},
	{"also a link's", 2, one(sloppy.PositiveCached), "link", broken, "", []string{releasedStaysTaken}, ""},
}

var replyFaults = []planted{
	{"EEXIST to the winner", 2, one(sloppy.WinnerToldEEXIST, sloppy.CreateNew), "excl-create", broken, "", []string{successDenied}, ""},
	{"EEXIST to the winner now and then", 2, func(s *sloppy.Share) { s.Plant(sloppy.WinnerToldEEXIST, 7, sloppy.CreateNew) }, "excl-create", broken, "", []string{successDenied}, ""},
	{"EEXIST to the winner", 2, one(sloppy.WinnerToldEEXIST, sloppy.Mkdir), "mkdir", broken, "", []string{successDenied}, ""},
	{"EEXIST to the winner", 2, one(sloppy.WinnerToldEEXIST, sloppy.Symlink), "symlink", broken, "", []string{successDenied}, ""},
	{"EEXIST to the winner", 2, one(sloppy.WinnerToldEEXIST, sloppy.Link), "link", broken, "", []string{successDenied}, ""},
	{"EEXIST to the winner", 2, one(sloppy.WinnerToldEEXIST, sloppy.RenameNew), "rename-noreplace", broken, "", []string{successDenied}, ""},
	{"EEXIST to the winner", 2, one(sloppy.WinnerToldEEXIST, sloppy.RenameDir), "rename-dir-occupied", broken, "", []string{successDenied, noWinner}, ""},
	{"EEXIST to the winner, and nothing to tell the maker by", 2, each(sloppy.WinnerToldEEXIST, sloppy.ModesFixed), "excl-create", broken, "", []string{noWinner}, ""},
	{"an I/O error to the winner", 2, one(sloppy.WinnerToldEIO, sloppy.CreateNew), "excl-create", unproven, "", nil, "EIO"},
	{"EEXIST, and nothing there", 1, one(sloppy.TakenThoughAbsent, sloppy.CreateNew), "excl-create", broken, "", []string{takenButAbsent}, ""},
	{"EEXIST, and nothing there", 1, one(sloppy.TakenThoughAbsent, sloppy.Mkdir), "mkdir", broken, "", []string{takenButAbsent}, ""},
	{"EEXIST, and nothing there", 1, one(sloppy.TakenThoughAbsent, sloppy.Symlink), "symlink", broken, "", []string{takenButAbsent}, ""},
	{"EEXIST, and nothing there", 1, one(sloppy.TakenThoughAbsent, sloppy.Link), "link", broken, "", []string{takenButAbsent}, ""},
	{"EEXIST, and nothing there", 1, one(sloppy.TakenThoughAbsent, sloppy.RenameNew), "rename-noreplace", broken, "", []string{takenButAbsent}, ""},
	{"what was made vanishes", 1, one(sloppy.MadeVanishes, sloppy.CreateNew), "excl-create", broken, "", vanished, ""},
	{"what was made vanishes", 1, one(sloppy.MadeVanishes, sloppy.Mkdir), "mkdir", broken, "", vanished, ""},
	{"what was made vanishes", 1, one(sloppy.MadeVanishes, sloppy.Symlink), "symlink", broken, "", vanished, ""},
	{"what was made vanishes", 1, one(sloppy.MadeVanishes, sloppy.Link), "link", broken, "", vanished, ""},
	{"what was made vanishes", 1, one(sloppy.MadeVanishes, sloppy.RenameNew), "rename-noreplace", broken, "", vanished, ""},
	{"what was made vanishes", 1, one(sloppy.MadeVanishes, sloppy.RenameDir), "rename-dir-occupied", broken, "", vanished, ""},
}

var contentFaults = []planted{
	{"writes arrive late", 1, one(sloppy.WritesDelayed), "publish", broken, "", []string{contentEmpty, contentTorn}, ""},
	{"writes arrive late", 2, one(sloppy.WritesDelayed), "publish", broken, "", []string{contentEmpty, contentTorn}, ""},
	{"each second write arrives late", 1, func(s *sloppy.Share) { s.Plant(sloppy.WritesDelayed, 2) }, "publish", broken, "", []string{contentTorn, contentEmpty}, ""},
	{"a replaced file cannot be opened", 1, one(sloppy.OpenStale), "rename-replace", broken, "", []string{staleHandle}, ""},
	{"writes arrive late", 1, one(sloppy.WritesDelayed), "rename-replace", broken, "", []string{contentEmpty, contentTorn}, ""},
	{"writes arrive late", 2, one(sloppy.WritesDelayed), "lock-coherence", broken, "", []string{lostUpdate}, ""},
	{"each mount reads and counts in its own cache", 2, one(sloppy.ContentCached), "lock-coherence", broken, "", []string{lostUpdate}, ""},
	{"one mount has one cache", 1, one(sloppy.ContentCached), "lock-coherence", holds, "", nil, ""},
	{"a link is a copy", 2, one(sloppy.LinkCopies), "link", holds, "no link count", nil, ""},
}

var refusals = []planted{
	{"links are refused", 2, one(sloppy.LinkRefused), "link", unsupported, "", nil, "EPERM"},
	{"links are refused, renames are not", 2, one(sloppy.LinkRefused), "publish", holds, "", nil, "of publish-by-rename"},
	{"symlinks are refused", 1, one(sloppy.SymlinkRefused), "symlink", unsupported, "", nil, "EPERM"},
	{"flags of rename are refused", 2, one(sloppy.RenameFlagsRefused), "rename-noreplace", unsupported, "", nil, "EINVAL"},
	{"locks are refused", 1, one(sloppy.LocksENOLCK), "flock", unsupported, "", nil, "ENOLCK"},
	{"locks are refused", 1, one(sloppy.LocksENOLCK), "lock-release", unsupported, "", nil, "ENOLCK"},
	{"locks are refused", 1, one(sloppy.LocksENOLCK), "lock-coherence", unsupported, "", nil, "ENOLCK"},
	{"locks are refused", 2, one(sloppy.LocksENOSYS), "posix-lock", unsupported, "", nil, "ENOSYS"},
	{"locks are refused", 2, one(sloppy.LocksEOPNOTSUPP), "ofd-lock", unsupported, "", nil, "EOPNOTSUPP"},
}

const nothingExcludes = "no lock excludes"

var lockFaults = []planted{
	{"locks are local to a mount", 2, one(sloppy.LocksLocal), "flock", broken, localOnly, []string{severalWinners}, ""},
	{"locks are local to a mount", 2, one(sloppy.LocksLocal), "posix-lock", broken, localOnly, []string{severalWinners}, ""},
	{"locks are local to a mount", 2, one(sloppy.LocksLocal), "ofd-lock", broken, localOnly, []string{severalWinners}, ""},
	{"locks are local to a mount", 2, one(sloppy.LocksLocal), "lock-release", unproven, "", nil, nothingExcludes},
	{"locks are local to a mount", 2, one(sloppy.LocksLocal), "lock-coherence", broken, "", []string{lostUpdate}, ""},
	{"one mount hides that", 1, one(sloppy.LocksLocal), "flock", holds, enforced, nil, ""},
	{"locks are granted to everybody", 1, one(sloppy.LocksGranted), "flock", broken, noOp, []string{severalWinners}, ""},
	{"locks are granted to everybody", 2, one(sloppy.LocksGranted), "flock", broken, noOp, []string{severalWinners}, ""},
	{"locks are granted to everybody", 1, one(sloppy.LocksGranted), "posix-lock", broken, noOp, []string{severalWinners}, ""},
	{"locks are granted to everybody", 1, one(sloppy.LocksGranted), "ofd-lock", broken, noOp, []string{severalWinners}, ""},
	{"locks are granted to everybody", 1, one(sloppy.LocksGranted), "lock-release", unproven, "", nil, nothingExcludes},
	{"locks are granted to everybody", 1, one(sloppy.LocksGranted), "lock-coherence", broken, "", []string{lostUpdate}, ""},
	{"locks outlive their holder", 2, one(sloppy.LocksOutliveHolder), "lock-release", broken, "", []string{lockOutlives}, ""},
	{"that is no fault of exclusion", 2, one(sloppy.LocksOutliveHolder), "flock", holds, enforced, nil, ""},
	{"waiters are not woken", 2, one(sloppy.LockWaitersSleep), "lock-release", broken, "", []string{waiterAsleep}, ""},
	{"a shared lock is exclusive", 1, one(sloppy.LocksSharedAreExclusive), "lock-release", broken, "", []string{sharedRefused}, ""},
}

// What looks like a fault, and breaks no promise.
var noFaults = []planted{
	{"names found absent are cached", 2, one(sloppy.NegativeCached), "excl-create", holds, "", nil, ""},
	{"names found absent are cached", 2, one(sloppy.NegativeCached), "mkdir", holds, "", nil, ""},
	{"permission bits are fixed", 2, one(sloppy.ModesFixed), "excl-create", holds, "", nil, ""},
	{"permission bits are fixed", 2, one(sloppy.ModesFixed), "mkdir", holds, "", nil, ""},
	{"inode numbers change", 2, one(sloppy.InodesUnstable), "excl-create", holds, "", nil, ""},
	{"inode numbers change", 2, one(sloppy.InodesUnstable), "mkdir", holds, "", nil, ""},
	{"inode numbers change", 2, one(sloppy.InodesUnstable), "symlink", holds, "", nil, ""},
	{"inode numbers change", 2, one(sloppy.InodesUnstable), "link", holds, "no link count", nil, ""},
	{"inode numbers change", 2, one(sloppy.InodesUnstable), "rename-dir-occupied", holds, "", nil, ""},
	{"content comes late", 2, one(sloppy.WritesDelayed), "excl-create", holds, "", nil, ""},
	{"content comes late", 2, one(sloppy.WritesDelayed), "link", holds, "", nil, ""},
	{"content comes late", 2, one(sloppy.WritesDelayed), "rename-noreplace", holds, "", nil, ""},
	{"content comes late", 2, one(sloppy.WritesDelayed), "rename-dir-occupied", holds, "", nil, ""},
	{"creates are slow", 2, one(sloppy.Slow, sloppy.CreateNew), "excl-create", holds, "", nil, ""},
	{"an I/O error now and then", 2, func(s *sloppy.Share) { s.Plant(sloppy.WinnerToldEIO, 5, sloppy.CreateNew) }, "excl-create", holds, "", nil, ""},
}

var allFaults = [][]planted{
	exclusionFaults, replyFaults, contentFaults, refusals, lockFaults, ruleFaults, nameFaults, errnoFaults, fullFaults, noFaults, visibilityFaults,
	scriptFaults, timeFaults,
}

func TestEveryKindOfViolationHasAFault(t *testing.T) {
	for _, kind := range gravity {
		if kind == pathsDiffer {
			continue // the path is derived by the program alone
		}
		shows := func(p planted) bool { return len(p.kinds) > 0 && p.kinds[0] == kind }
		if !slices.ContainsFunc(slices.Concat(allFaults...), shows) {
			t.Errorf("no planted fault must show %s", kind)
		}
	}
}

func TestPlantedFaultsAreSeen(t *testing.T) {
	for _, group := range allFaults {
		if testing.Short() {
			group = group[:2]
		}
		for _, p := range group {
			t.Run(p.probe+"/"+p.fault, func(t *testing.T) {
				b := smallBench(t, 4, newSloppyOf(t, p.size(), p.mounts, p.plant)...)
				b.Disposable = true
				if p.waitsInVain() {
					b.HoldWait, b.MaxWait = 100*time.Millisecond, 200*time.Millisecond
				}
				p.check(t, b)
			})
		}
	}
}

// size is of the filesystem below: small where it is to be filled.
func (p *planted) size() string {
	if probe, _ := Find(p.probe); probe.Disposable {
		return "8m"
	}
	return "256m"
}

// waitsInVain says of a fault that each experiment will wait as long as it may.
func (p *planted) waitsInVain() bool {
	long := slices.ContainsFunc(p.kinds, func(kind string) bool {
		return slices.Contains([]string{lockOutlives, waiterAsleep, lockWithheld, staysFull}, kind)
	})
	return long || (p.probe == "visibility" || p.probe == "path-agreement") && len(p.kinds) > 0
}

// check runs the probe and compares the finding.
func (p *planted) check(t *testing.T, b Bench) {
	t.Helper()
	f := insist(t, b, p.probe, p.verdict)
	p.compare(t, &f)
}

func (p *planted) compare(t *testing.T, f *result.Finding) {
	t.Helper()
	switch {
	case f.Verdict != p.verdict || f.Class != p.class && p.class != anyClass:
		t.Fatalf("want %s %q\n\t%s", p.verdict, p.class, describe(f))
	case !strings.Contains(f.Reason, p.reason):
		t.Errorf("the reason should say %q: %s", p.reason, describe(f))
	case f.Verdict != holds && f.Advice == "":
		t.Errorf("no advice: %s", describe(f))
	}
	if len(p.kinds) == 0 {
		if f.Counterexample != nil || len(f.Kinds) > 0 {
			t.Errorf("violations: %s", describe(f))
		}
		return
	}
	if f.Kinds[p.kinds[0]] == 0 {
		t.Errorf("no %s: %s", p.kinds[0], describe(f))
	}
	for kind := range f.Kinds {
		if !slices.Contains(p.kinds, kind) {
			t.Errorf("%s is none of %q: %s", kind, p.kinds, describe(f))
		}
	}
	believable(t, f, p.mounts)
}

// believable checks that a counterexample can convince somebody who was not there.
func believable(t *testing.T, f *result.Finding, routes int) {
	t.Helper()
	x := f.Counterexample
	if x == nil || f.Kinds[x.Kind] == 0 || x.Sentence == "" || !strings.Contains(f.Reason, x.Sentence) || len(f.Violated) == 0 {
		t.Fatalf("no proper counterexample: %+v\n\t%s", x, describe(f))
	}
	for _, r := range append([]result.Round{x.Round}, f.Violated...) {
		if len(r.Events) < 2 || r.Operation == "" || r.Phase == "" {
			t.Errorf("incomplete round %+v", r)
		}
		for _, ev := range r.Events {
			waiting := ev.Return == 0 && (x.Kind == waiterAsleep || x.Kind == lockOutlives)
			if ev.PID == 0 || ev.Route != ev.Contender%routes || ev.Invoke == 0 || !waiting && ev.Return < ev.Invoke {
				t.Errorf("%s %d: incomplete event %+v", r.Operation, r.Number, ev)
			}
		}
	}
	if x.Kind == severalWinners {
		severalWon(t, f, routes)
	}
}

// severalWon checks the winners of the counterexample: over each route there is one, and what they made has an inode.
func severalWon(t *testing.T, f *result.Finding, routes int) {
	t.Helper()
	r, over, won, inodes := f.Counterexample.Round, map[int]bool{}, 0, 0
	for _, ev := range r.Events {
		if ev.Errno == "" {
			over[ev.Route] = true
			won++
			inodes += int(min(ev.Inode, 1))
		}
	}
	isLock := f.Class != ""
	if won < 2 || len(over) < routes || !isLock && (inodes == 0 || r.After == nil) {
		t.Errorf("%d winners over %d of %d routes, %d of them with an inode: %+v", won, len(over), routes, inodes, r)
	}
}

func TestAFullFilesystemProvesNothing(t *testing.T) {
	var share *sloppy.Share
	dirs := newSloppy(t, 2, func(s *sloppy.Share) { share = s })
	b := smallBench(t, 4, dirs...)
	for _, p := range harmless() {
		t.Run(p.Name, func(t *testing.T) {
			share.Plant(sloppy.NoSpace, 0)
			enterFresh(t, b, p.Name, dirs...)
			share.Plant(sloppy.NoSpace, 1)
			full := planted{probe: p.Name, verdict: unproven, reason: "ENOSPC"}
			full.check(t, b)
		})
	}
}

func TestAnAlmostFullFilesystemIsNotBroken(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	var share *sloppy.Share
	dirs := newSloppy(t, 2, func(s *sloppy.Share) { share = s })
	b := smallBench(t, 4, dirs...)
	for _, p := range harmless() {
		t.Run(p.Name, func(t *testing.T) {
			share.Plant(sloppy.NoSpace, 0)
			enterFresh(t, b, p.Name, dirs...)
			share.Plant(sloppy.NoSpace, 3)
			if f := run(t, b, p.Name); f.Verdict != holds && f.Verdict != unproven {
				t.Error(describe(&f))
			}
		})
	}
}
