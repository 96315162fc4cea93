package sloppyfs

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
)

// A Fault is one promise broken.
type Fault int

// The faults. Those marked (Call) can befall several calls; Plant limits them.
const (
	ExclDropped        Fault = iota // O_EXCL is not sent: the kernel's look-up decides, and then comes a plain create
	MkdirTakesExisting              // mkdir of an existing directory succeeds
	SymlinkNotAtomic                // look-up, then replace
	LinkNotAtomic                   // look-up, then replace
	NoreplaceNotAtomic              // rename with RENAME_NOREPLACE: look-up, then replace
	RenameOntoOccupied              // rename of a directory removes a non-empty one that is in the way
	RenameLosesSource               // a rename that fails with EEXIST or ENOTEMPTY removes what was to be moved
	RenameWithGap                   // rename onto an existing name removes that first
	LoserTruncates                  // an exclusive create that fails empties the file
	LoserReplaces                   // a symlink or link that fails with EEXIST replaces what is there

	WinnerToldEEXIST  // (Call) what was made is there, and its maker is told that another was first
	WinnerToldEIO     // (Call) what was made is there, and its maker is told of an I/O error
	TakenThoughAbsent // (Call) EEXIST, and nothing is there
	MadeVanishes      // (Call) what was made is gone a moment later
	NoSpace           // (Call) ENOSPC
	Slow              // (Call) it takes a while

	NegativeCached  // a mount that found a name absent goes on saying so until it makes it itself
	NegativeBriefly // the same, but only for a moment: see brief
	PositiveCached  // a mount that found a name present goes on saying so until it removes it itself
	ListingCached   // a mount that has listed a directory goes on saying so until it changes it itself
	ContentCached   // the kernel keeps content and attributes
	TimesIgnored    // times are accepted, and not set
	WritesDelayed   // a write is accepted and done later, after the close too
	OpenStale       // open of an existing file gives ESTALE
	LinkCopies      // a hard link is a copy: another inode, link count 1
	ModesFixed      // 0644 and 0755, whatever was asked for
	InodesUnstable  // an object has another inode number at each look-up

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
	TouchSkewed    // a touch stamps with the client's clock, which is Skew ahead
	ClientStamps   // every mount but the first stamps with its own clock, which is Skew ahead

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

	faultCount
)

// Skew is how far ahead a wrong clock is.
const Skew = 5 * time.Second

// slow is how long a slow call takes.
const slow = 15 * time.Millisecond

var refusedLocks = map[Fault]unix.Errno{LocksENOLCK: unix.ENOLCK, LocksENOSYS: unix.ENOSYS, LocksEOPNOTSUPP: unix.EOPNOTSUPP}
