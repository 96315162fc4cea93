package faultfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// A Call is one that makes a name.
type Call int

// The calls. CreateNew has O_EXCL, RenameNew has RENAME_NOREPLACE.
const (
	CreateNew Call = iota
	Create
	Mkdir
	Symlink
	Link
	RenameNew
	RenameDir
	RenameFile

	callCount
)

// calls are their text forms.
var calls = [callCount]string{"create-new", "create", "mkdir", "symlink", "link", "rename-new", "rename-dir", "rename-file"}

func (c Call) String() string { return calls[c] }

// A Kind is one way to break a promise.
type Kind int

// The kinds. Those marked (Call) can befall several calls; Fault.On limits them.
const (
	ExclDropped        Kind = iota // O_EXCL is not sent: the kernel's look-up decides, and then comes a plain create
	MkdirTakesExisting             // mkdir of an existing directory succeeds
	SymlinkNotAtomic               // look-up, then replace
	LinkNotAtomic                  // look-up, then replace
	NoreplaceNotAtomic             // rename with RENAME_NOREPLACE: look-up, then replace
	RenameOntoOccupied             // rename of a directory removes a non-empty one that is in the way
	RenameLosesSource              // a rename that fails with EEXIST or ENOTEMPTY removes what was to be moved
	RenameWithGap                  // rename onto an existing name removes that first
	LoserTruncates                 // an exclusive create that fails empties the file
	LoserReplaces                  // a symlink or link that fails with EEXIST replaces what is there

	WinnerToldEEXIST  // (Call) what was made is there, and its maker is told that another was first
	WinnerToldEIO     // (Call) what was made is there, and its maker is told of an I/O error
	TakenThoughAbsent // (Call) EEXIST, and nothing is there
	MadeVanishes      // (Call) what was made is gone a moment later
	NoSpace           // (Call) ENOSPC
	Slow              // (Call) it takes a while

	NegativeCached // a mount that found a name absent goes on saying so until it makes it itself
	PositiveCached // a mount that found a name present goes on saying so until it removes it itself
	ListingCached  // a mount that has listed a directory goes on saying so until it changes it itself
	ContentCached  // the kernel keeps content and attributes
	TimesIgnored   // times are accepted, and not set
	WritesDelayed  // a write is accepted and done later, after the close too
	OpenStale      // open of an existing file gives ESTALE
	LinkCopies     // a hard link is a copy: another inode, link count 1
	ModesFixed     // 0644 and 0755, whatever was asked for
	InodesUnstable // an object has another inode number at each look-up

	UnlinkIgnored // unlink succeeds, and does nothing
	ReplacedKept  // unlink of a name that was renamed over is refused with EBUSY

	NamesMerged      // all names of more than 32 bytes are one name
	NamesPerMount    // a name of more than 32 bytes is another one on each mount
	TakenToldEPERM   // (Call) EPERM in place of EEXIST
	TakenToldENOENT  // (Call) ENOENT in place of EEXIST
	GoneRemoved      // unlink and rmdir of what is gone succeed
	RmdirRemovesFull // rmdir of a directory that is not empty removes it
	UnlinkDenied     // EPERM for unlink; rename is allowed

	WritesDropped // a write that the full disk refuses is accepted

	NamesFoldCase   // names that differ in case are one, beyond ASCII too
	NamesNormalised // names are kept in Unicode's composed form
	NamesDropEnd    // dots and spaces at the end of a name are dropped
	NamesReserved   // EINVAL for the characters that Windows forbids
	NamesShort      // ENAMETOOLONG beyond 143 bytes, as eCryptfs
	NamesTiny       // ENAMETOOLONG beyond 100 bytes
	NamesCut        // what is beyond 68 bytes of a name is dropped

	LinkRefused        // EPERM
	SymlinkRefused     // EPERM
	RenameFlagsRefused // EINVAL

	LocksLocal              // the kernel keeps locks, per mount
	LocksGranted            // every lock is granted at once
	LocksENOLCK             // locks are refused
	LocksENOSYS             // locks are refused
	LocksEOPNOTSUPP         // locks are refused
	LocksOutliveHolder      // a lock is released by unlocking only
	LockWaitersSleep        // a release wakes nobody
	LocksSharedAreExclusive // a shared lock excludes another shared one

	TimesCoarse    // times are whole multiples of 2 s
	TimesTick      // times are whole multiples of 10 ms
	TimesStill     // times are those of the share's beginning
	TimesBackwards // a file's times go back by 10 s for each second that passes
	TimesOfLook    // a file's times are those of the look
	TouchIgnored   // a touch moves no time
	TimesNotSet    // a time that is set is accepted, and not kept
	TouchRefused   // EPERM
	TouchSkewed    // a touch stamps with the client's clock, which is off by Skew
	ClientStamps   // every mount but the first stamps with its own clock, which is off by Skew and Drift

	InodesReused // each file has the inode number that the last one had

	SyncEINVAL          // of files
	DirSyncEINVAL       // of directories
	DirSyncEIO          // of directories
	LocksDroppedByClose // a close drops what is locked through any other open file of the same file
	LocksOfProcesses    // a flock belongs to a process: two descriptors in it do not conflict
	LocksNotConverted   // a shared lock is in the way of its own holder who wants it exclusive
	LocksFew            // ENOLCK from the 101st holder of a file on
	FlockByFcntl        // EBADF for an exclusive flock on a read-only descriptor, and a shared one on a write-only

	HangOpen   // open and create do not come back before Close
	HangLock   // taking a lock does not
	HangRemove // unlink and rmdir do not

	kindCount
)

// kinds are their text forms: what, and how.
var kinds = [kindCount]string{
	ExclDropped:             "excl=lookup-create",
	MkdirTakesExisting:      "mkdir=takes-existing",
	SymlinkNotAtomic:        "symlink=lookup-replace",
	LinkNotAtomic:           "link=lookup-replace",
	NoreplaceNotAtomic:      "noreplace=lookup-replace",
	RenameOntoOccupied:      "rename=onto-occupied",
	RenameLosesSource:       "rename=loses-source",
	RenameWithGap:           "rename=gap",
	LoserTruncates:          "loser=truncates",
	LoserReplaces:           "loser=replaces",
	WinnerToldEEXIST:        "winner=eexist",
	WinnerToldEIO:           "winner=eio",
	TakenThoughAbsent:       "taken=absent",
	MadeVanishes:            "made=vanishes",
	NoSpace:                 "space=none",
	Slow:                    "reply=slow",
	NegativeCached:          "negative=cached",
	PositiveCached:          "positive=cached",
	ListingCached:           "listing=cached",
	ContentCached:           "content=cached",
	TimesIgnored:            "times=ignored",
	WritesDelayed:           "write=late",
	OpenStale:               "open=estale",
	LinkCopies:              "link=copy",
	ModesFixed:              "mode=fixed",
	InodesUnstable:          "inode=unstable",
	UnlinkIgnored:           "unlink=ignored",
	ReplacedKept:            "unlink=replaced-busy",
	NamesMerged:             "names=merged",
	NamesPerMount:           "names=per-mount",
	TakenToldEPERM:          "taken=eperm",
	TakenToldENOENT:         "taken=enoent",
	GoneRemoved:             "unlink=gone-ok",
	RmdirRemovesFull:        "rmdir=full-ok",
	UnlinkDenied:            "unlink=eperm",
	WritesDropped:           "write=dropped-when-full",
	NamesFoldCase:           "names=fold-case",
	NamesNormalised:         "names=nfc",
	NamesDropEnd:            "names=drop-end",
	NamesReserved:           "names=reserved",
	NamesShort:              "names=143",
	NamesTiny:               "names=100",
	NamesCut:                "names=cut",
	LinkRefused:             "link=eperm",
	SymlinkRefused:          "symlink=eperm",
	RenameFlagsRefused:      "noreplace=einval",
	LocksLocal:              "lock=local",
	LocksGranted:            "lock=granted",
	LocksENOLCK:             "lock=enolck",
	LocksENOSYS:             "lock=enosys",
	LocksEOPNOTSUPP:         "lock=eopnotsupp",
	LocksOutliveHolder:      "lock=outlives",
	LockWaitersSleep:        "lock=no-wake",
	LocksSharedAreExclusive: "lock=shared-exclusive",
	TimesCoarse:             "times=2s",
	TimesTick:               "times=10ms",
	TimesStill:              "times=still",
	TimesBackwards:          "times=backwards",
	TimesOfLook:             "times=of-look",
	TouchIgnored:            "touch=ignored",
	TimesNotSet:             "times=not-set",
	TouchRefused:            "touch=eperm",
	TouchSkewed:             "touch=skewed",
	ClientStamps:            "times=client",
	InodesReused:            "inode=reused",
	SyncEINVAL:              "fsync=einval",
	DirSyncEINVAL:           "dirsync=einval",
	DirSyncEIO:              "dirsync=eio",
	LocksDroppedByClose:     "lock=dropped-by-close",
	LocksOfProcesses:        "lock=of-process",
	LocksNotConverted:       "lock=not-converted",
	LocksFew:                "lock=few",
	FlockByFcntl:            "lock=by-fcntl",
	HangOpen:                "open=hang",
	HangLock:                "lock=hang",
	HangRemove:              "unlink=hang",
}

func (k Kind) String() string { return kinds[k] }

// refusedLocks are the faults by which a lock is refused.
var refusedLocks = map[Kind]unix.Errno{LocksENOLCK: unix.ENOLCK, LocksENOSYS: unix.ENOSYS, LocksEOPNOTSUPP: unix.EOPNOTSUPP}

// usual are the measures of a fault whose text names none.
var usual = map[Kind]Fault{
	ExclDropped:        {Delay: 300 * time.Microsecond}, // long enough for another contender to come between
	SymlinkNotAtomic:   {Delay: 300 * time.Microsecond},
	LinkNotAtomic:      {Delay: 300 * time.Microsecond},
	NoreplaceNotAtomic: {Delay: 300 * time.Microsecond},
	RenameWithGap:      {Delay: 300 * time.Microsecond},
	MadeVanishes:       {Delay: 2 * time.Millisecond},
	WritesDelayed:      {Delay: 2 * time.Millisecond},
	Slow:               {Delay: 15 * time.Millisecond},
	TouchSkewed:        {Skew: 5 * time.Second},
	ClientStamps:       {Skew: 5 * time.Second},
}

// New is a fault of that kind, with the usual measures, on every occasion.
func (k Kind) New(on ...Call) Fault {
	f := usual[k]
	f.Kind, f.On = k, on
	return f
}
