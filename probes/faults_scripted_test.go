package probes

import sloppy "github.com/claimbench/claimbench/internal/sloppyfs"

// The faults that the probes without a race must see.

var ruleFaults = []planted{
	{"a close drops other locks", 1, one(sloppy.LocksDroppedByClose), "lock-rules", broken, "", []string{lockDropped}, "flock, another descriptor of the file is closed"},
	{"a close drops other locks", 2, one(sloppy.LocksDroppedByClose), "lock-rules", broken, "", []string{lockDropped}, ""},
	{"locks belong to processes", 1, one(sloppy.LocksOfProcesses), "lock-rules", broken, "", []string{lockDropped}, "flock, two descriptors in one process: both were granted"},
	{"locks are not converted", 1, one(sloppy.LocksNotConverted), "lock-rules", broken, "", []string{lockWithheld}, "a shared lock made exclusive"},
	{"few locks", 1, one(sloppy.LocksFew), "lock-rules", broken, "", []string{tooFewLocks}, "the lock after 100 was refused with ENOLCK"},
	{"flock is emulated", 1, one(sloppy.FlockByFcntl), "lock-rules", holds, emulated, nil, ""},
	{"locks outlive their holder", 1, one(sloppy.LocksOutliveHolder), "lock-rules", broken, "", []string{lockWithheld}, "posix-lock, "},
	{"a shared lock is exclusive", 1, one(sloppy.LocksSharedAreExclusive), "lock-rules", broken, "", []string{lockWithheld}, "an exclusive lock made shared"},
	{"locks are granted to everybody", 1, one(sloppy.LocksGranted), "lock-rules", unproven, "", nil, nothingExcludes},
	{"locks are local to a mount", 2, one(sloppy.LocksLocal), "lock-rules", unproven, "", nil, nothingExcludes},
	{"locks are local to a mount", 1, one(sloppy.LocksLocal), "lock-rules", holds, "", nil, ""},
	{"locks are refused", 1, one(sloppy.LocksENOLCK), "lock-rules", unsupported, "", nil, "ENOLCK"},
	{"locks are refused", 1, one(sloppy.LocksENOSYS), "lock-rules", unsupported, "", nil, "ENOSYS"},
}

var nameFaults = []planted{
	{"names are cut off", 1, one(sloppy.NamesCut), "names", broken, "", []string{namesMerged}, "are one name"},
	{"names are cut off", 2, one(sloppy.NamesCut), "names", broken, "", []string{namesMerged}, "are one name"},
	{"long names are refused", 1, one(sloppy.NamesTiny), "names", broken, "", []string{nameRefused}, "ENAMETOOLONG"},
	{"names of 143 bytes are enough", 1, one(sloppy.NamesShort), "names", holds, "", nil, ""},
	{"case is folded", 1, one(sloppy.NamesFoldCase), "names", holds, foldsCase, nil, ""},
	{"names are normalised", 1, one(sloppy.NamesNormalised), "names", holds, "", nil, ""},
	{"dots are dropped", 1, one(sloppy.NamesDropEnd), "names", holds, "", nil, ""},
}

// A mount that remembers a name as absent, or as present, asks the server, where one that looks is answered by the VFS.
var errnoFaults = []planted{
	{"EPERM for a taken name", 2, each(sloppy.TakenToldEPERM, sloppy.NegativeCached), "errno-table", broken, "", []string{deniedForTaken}, "was told that it may not (EPERM), where EEXIST is meant"},
	{"EPERM to mkdir only", 2, func(s *sloppy.Share) {
		s.Plant(sloppy.TakenToldEPERM, 1, sloppy.Mkdir)
		s.Plant(sloppy.NegativeCached, 1)
	}, "errno-table", broken, "", []string{deniedForTaken}, "mkdir onto a file"},
	{"one mount hides that: the VFS answers", 1, each(sloppy.TakenToldEPERM, sloppy.NegativeCached), "errno-table", holds, "", nil, ""},
	{"ENOENT for a taken name", 2, each(sloppy.TakenToldENOENT, sloppy.NegativeCached), "errno-table", broken, "", []string{wrongForTaken}, "was told (ENOENT)"},
	{"a taken name is given away", 2, each(sloppy.ExclDropped, sloppy.NegativeCached), "errno-table", broken, "", []string{takenNameGiven, wrongForTaken}, ""},
	{"a create that fails truncates", 2, each(sloppy.LoserTruncates, sloppy.NegativeCached), "errno-table", broken, "", []string{takenEmptied}, "emptied it"},
	{"a symlink that fails replaces", 2, each(sloppy.LoserReplaces, sloppy.NegativeCached), "errno-table", broken, "", []string{changedByLoser}, "changed it"},
	{"what is gone is removed", 2, each(sloppy.GoneRemoved, sloppy.PositiveCached), "errno-table", broken, "", []string{goneRemoved}, "unlink of what another has removed succeeded"},
	{"rmdir removes what is not empty", 1, one(sloppy.RmdirRemovesFull), "errno-table", broken, "", []string{doneAnyway}, "rmdir of a non-empty directory"},
	{"unlink is denied, rename is not", 1, one(sloppy.UnlinkDenied), "errno-table", broken, "", []string{unlinkDenied}, ""},
	{"links are refused", 1, one(sloppy.LinkRefused), "errno-table", holds, "", nil, ""},
	{"names are remembered", 2, each(sloppy.NegativeCached, sloppy.PositiveCached), "errno-table", holds, "", nil, ""},
	{"permission bits are fixed", 1, one(sloppy.ModesFixed), "errno-table", holds, "", nil, ""},
}

var fullFaults = []planted{
	{"a full disk", 1, nothing, "full-disk", holds, "", nil, "were refused with an error"},
	{"a full disk, seen over another mount", 2, nothing, "full-disk", holds, "", nil, "were refused with an error"},
	{"what does not fit is dropped", 1, one(sloppy.WritesDropped), "full-disk", broken, "", []string{contentEmpty, contentTorn}, "without an error, and is empty"},
	{"each second write that does not fit is dropped", 1, func(s *sloppy.Share) { s.Plant(sloppy.WritesDropped, 2) }, "full-disk", broken, "", []string{contentEmpty, contentTorn}, ""},
	{"nothing can be removed", 1, one(sloppy.UnlinkDenied), "full-disk", broken, "", []string{staysFull}, "cannot be removed"},
	{"links are refused", 1, one(sloppy.LinkRefused), "full-disk", holds, "", nil, ""},
}
