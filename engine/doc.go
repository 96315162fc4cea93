// Package engine gets each piece of work done exactly once by programs that
// share nothing but a directory.
//
// A piece of work has a [Key]. Programs race to claim it through files in a
// claim directory. All of them derive the same file name from the same key, and
// all have to use the same [Options]:
//
//	guard, err := engine.New("/shared/claims", engine.Options{})
//	...
//	outcome, err := guard.Do(ctx, engine.Key{"report", "2024-06"},
//		func(ctx context.Context, token engine.Token) error {
//			return makeReport(ctx, token.Generation)
//		})
//
// [Guard.Do] runs the work, or waits until another program has done it. A
// program that dies leaves its claim behind, and another takes it over once it
// is older than the TTL. What is done is never done again. [Guard.Claim] and
// the [Lease] that it returns are the same in single steps, for programs that
// would rather do something else than wait.
//
// # What is promised, and what no files can promise
//
// At most one program executes a generation of a claim, and the work is not
// lost with a program that dies. But a lease is a lease: a program that was
// stopped for longer than the TTL, by SIGSTOP, a suspended laptop or a paused
// virtual machine, can wake up and go on for a moment while its successor
// runs already. Whatever the work writes to has to refuse the late writer: it
// compares [Token].Generation with the highest one it has seen. The engine sees
// to the rest: the context of the work ends when the lease does, and a late
// finisher is refused.
//
// The promise rests on the directory's filesystem. generations, the default,
// needs the least: an exclusive create with one winner, timestamps from one
// clock, and a renewal or a new name seen by other hosts within Slack. Whether
// a filesystem keeps that between two hosts should be measured, not believed;
// that is what the program claimbench is for. The other protocols of
// [Protocols] are there to be measured too. Those that are not Safe are wrong,
// and kept to show that a measurement would notice.
//
// Without Options.Sync the promise survives the death of programs, but not of
// the machine that has the filesystem.
//
// # Time
//
// The age of a claim is the difference between two readings of the filesystem's
// clock: the claim's own time, and the time of a file touched just now. The
// clocks of two hosts are never compared. An owner times its lease by its own
// clock, from a moment before it claimed, and gives up Slack earlier than
// others may take over.
//
// On some filesystems the client stamps files by its own clock: over SMB, with
// delegated timestamps over NFSv4.2, and on CephFS, Lustre and GlusterFS. There
// the hosts' clocks do take part, and Slack has to cover their difference. If
// the filesystem's clock is put forward by more than the TTL, all claims expire
// at once, and only the fencing token is left.
//
// Times are read past the client's caches, with AT_STATX_FORCE_SYNC, so that a
// mount with cached attributes (nocto, actimeo, the attr_timeout of FUSE) does
// not take a renewed claim for expired. Before Linux 4.11, and where the
// program behind a FUSE mount has a cache of its own, that is not to be had, and
// Slack has to cover the age of what is cached.
//
// # Errors
//
// A [*ContractError] names the field that is wrong, a [*ParamsError] the field
// that differs from what other programs use. [ErrLost] means that the claim is
// no longer this program's. [ErrUnknown] means that the outcome is not known:
// an I/O error or a stale handle never makes a claim this program's own, nor
// another's claim expired. [*ForeignError], [*ClockError] and [ErrVersion] tell
// why a file cannot be judged; [*RecordError] refuses a record that is too long.
// Errors from the system keep their errno.
//
// # What is in the directory
//
// <sig> is the [Signature] of a key and <fan> its first two digits. There
// are at most 256 fan-out directories, and no claim lists any of them.
//
//	params.gen1             what all programs have to agree on
//	clock/00 to clock/ff    touched to read the filesystem's clock
//	<fan>/<sig>.gen<N>.claim    the claims of a key, and after the last its done record
//
// These are never removed, and must not be by anybody else: a cleaner of old
// files would have finished work done again. A key costs two small files for
// ever, and one more for each time its work failed or its owner died. Protocols
// other than generations also have
//
//	<fan>/<sig>.new-<nonce>     private names, until they are published
//	<fan>/<sig>.claim           the claim of the protocols that replace it
//	<fan>/<sig>.done            the done record of all but the two generations
//	<fan>/<sig>.flock, sentinel.flock           locked, never removed
//	<fan>/<sig>.lock/owner/record               quarantine's claim
//	<fan>/<sig>.lock.stale-<claimed_at_ms>-<nonce>/    and what became of it
//
// Of these, [Reclaim] removes the private names and the .stale- directories,
// once nobody can still act on them, and [Quarantines] says when that is.
//
// Files and directories are made with the modes 0666 and 0777 less the umask.
// Programs of several users need a umask that lets them write to the
// directories and read the files of each other.
package engine
