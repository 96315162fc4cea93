package faultfs

import "slices"

// A Call is one that makes a name or takes a lock.
type Call int

// The calls. CreateNew has O_EXCL, RenameNew has RENAME_NOREPLACE. Flock is flock(2), Fcntl a POSIX or OFD lock.
const (
	CreateNew Call = iota
	Create
	Mkdir
	Symlink
	Link
	RenameNew
	RenameDir
	RenameFile
	Flock
	Fcntl

	callCount
)

// calls are their text forms.
var calls = [callCount]string{"create-new", "create", "mkdir", "symlink", "link", "rename-new", "rename-dir", "rename-file", "flock", "fcntl"}

func (c Call) String() string { return calls[c] }

// A Kind is one way to break a promise.
type Kind int

// The kinds. Those marked (Call) can befall several calls; Fault.On limits them.
const (
	ExclDropped        Kind = iota // O_EXCL is not sent: the kernel's look-up decides, and then comes a plain create
	ExclTruncates                  // O_EXCL is not sent either, and the plain create empties what is there
	CreateTaken                    // a create without O_EXCL gives EEXIST if another is first
	MkdirTakesExisting             // mkdir of an existing directory succeeds
	MkdirNotAtomic                 // look-up, then a mkdir that succeeds whatever has come between
	SymlinkNotAtomic               // look-up, then replace
	LinkNotAtomic                  // look-up, then replace
	NoreplaceNotAtomic             // rename with RENAME_NOREPLACE: look-up, then replace
	NoreplaceIgnored               // RENAME_NOREPLACE is not sent: the kernel's look-up decides, and then comes a plain rename
	RenameOntoOccupied             // rename of a directory removes a non-empty one that is in the way
	RenameLosesSource              // a rename that fails with EEXIST or ENOTEMPTY removes what was to be moved
	RenameWithGap                  // rename onto an existing name removes that first
	RenameBothNames                // rename of a file is a link, and later an unlink: it has both names for a moment
	RenameCopies                   // rename of a file writes the new name as the old one reads, in halves, and then unlinks that
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
	AttrCached     // a mount that has seen an object's attributes goes on saying so until it changes it itself
	ContentCached  // the kernel keeps content and attributes
	TimesIgnored   // times are accepted, and not set
	WritesDelayed  // a write is accepted and done later, after the close too
	WritesTorn     // a write arrives in two halves
	OpenStale      // open of an existing file gives ESTALE
	RemovedStale   // ESTALE for whatever is done with what another mount has removed or replaced
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
	LocksGranted            // (Flock, Fcntl) every lock is granted at once
	LocksGrantedCold        // (Flock, Fcntl) a mount that has not locked the file before, or not within For, does not ask the others
	LocksENOLCK             // (Flock, Fcntl) locks are refused
	LocksENOSYS             // (Flock, Fcntl) locks are refused
	LocksEOPNOTSUPP         // (Flock, Fcntl) locks are refused
	LocksEIO                // (Flock, Fcntl) an I/O error
	LocksEDEADLK            // (Flock, Fcntl) waiting for a lock is said to be a deadlock
	LocksOutliveHolder      // a lock is released by unlocking only
	LocksReleasedLate       // or For after its holder has closed or is gone
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
	TimesSkewed    // all times that a mount gives are off by Skew and Drift
	MountSkewed    // all times that every mount but the first gives are
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

func (k Kind) String() string { return kinds[k] }

// New is a fault of that kind, with the usual measures, on every occasion.
func (k Kind) New(on ...Call) Fault {
	f := usual[k]
	f.Kind, f.On = k, on
	return f
}

// befalls reports whether the fault is one of that call.
func (f *Fault) befalls(c Call) bool { return len(f.On) == 0 || slices.Contains(f.On, c) }
