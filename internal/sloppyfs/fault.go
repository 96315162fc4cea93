package sloppyfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// A Call is one that makes a name.
type Call int

// The calls. Create is the exclusive one only.
const (
	Create Call = iota
	Mkdir
	Symlink
	Link
	Rename
)

// A Fault is one promise broken.
type Fault int

// The faults.
const (
	ExclDropped             Fault = iota // O_EXCL is a look-up, and then a plain create
	MkdirTakesExisting                   // mkdir of an existing directory succeeds
	SymlinkNotAtomic                     // look-up, then replace
	LinkNotAtomic                        // look-up, then replace
	NoreplaceNotAtomic                   // rename with RENAME_NOREPLACE: look-up, then replace
	RenameOntoOccupied                   // rename of a directory removes a non-empty one that is in the way
	RenameLosesSource                    // a rename that fails with EEXIST or ENOTEMPTY removes what was to be moved
	RenameWithGap                        // rename onto an existing name removes that first
	WinnerToldEEXIST                     // (Call) what was made is there, and its maker is told that another was first
	TakenThoughAbsent                    // (Call) EEXIST, and nothing is there
	CreatedVanishes                      // (Call) success, and nothing is there
	LoserTruncates                       // an exclusive create that fails empties the file
	NegativeCached                       // a name found absent stays absent for the kernel
	PositiveCached                       // a name found present stays present for the kernel
	ContentCached                        // the kernel keeps content and attributes
	WritesDelayed                        // a write is accepted and done later, after the close too
	LinkCopies                           // a hard link is a copy: another inode, link count 1
	ModesFixed                           // 0644 and 0755, whatever was asked for
	LinkRefused                          // EPERM
	SymlinkRefused                       // EPERM
	RenameFlagsRefused                   // EINVAL
	NoSpace                              // (Call) ENOSPC
	LocksLocal                           // the kernel keeps locks, per mount
	LocksGranted                         // every lock is granted at once
	LocksENOLCK                          // locks are refused
	LocksENOSYS                          // locks are refused
	LocksEOPNOTSUPP                      // locks are refused
	LocksOutliveHolder                   // a lock is released by unlocking only
	LockWaitersSleep                     // a release wakes nobody
	LocksSharedAreExclusive              // a shared lock excludes another shared one
	HangOpen                             // open and create do not come back before Close
	HangLock                             // taking a lock does not
	HangRemove                           // unlink and rmdir do not
	Slow                                 // (Call) it takes slow
	faultCount
)

// slow is how long a slow call takes.
const slow = 15 * time.Millisecond

var refusedLocks = map[Fault]unix.Errno{LocksENOLCK: unix.ENOLCK, LocksENOSYS: unix.ENOSYS, LocksEOPNOTSUPP: unix.EOPNOTSUPP}
