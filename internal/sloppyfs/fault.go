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

	TakenToldEPERM   // (Call) EPERM in place of EEXIST
	TakenToldENOENT  // (Call) ENOENT in place of EEXIST
	GoneRemoved      // unlink and rmdir of what is gone succeed
	RmdirRemovesFull // rmdir of a directory that is not empty removes it
	UnlinkDenied     // EPERM for unlink; rename is allowed

	NegativeCached // a mount that found a name absent goes on saying so until it makes it itself
	PositiveCached // a mount that found a name present goes on saying so until it removes it itself
	ContentCached  // the kernel keeps content and attributes
	WritesDelayed  // a write is accepted and done later, after the close too
	WritesDropped  // a write that the full disk refuses is accepted
	OpenStale      // open of an existing file gives ESTALE
	LinkCopies     // a hard link is a copy: another inode, link count 1
	ModesFixed     // 0644 and 0755, whatever was asked for
	InodesUnstable // an object has another inode number at each look-up

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

// slow is how long a slow call takes.
const slow = 15 * time.Millisecond

var refusedLocks = map[Fault]unix.Errno{LocksENOLCK: unix.ENOLCK, LocksENOSYS: unix.ENOSYS, LocksEOPNOTSUPP: unix.EOPNOTSUPP}
