// Package engine gets each piece of work done exactly once by programs that
// share nothing but a directory.
//
// A piece of work has a [Key]. Programs race to claim it through files in the
// claim directory, which all of them name the same and use with the same
// [Options]:
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
// is older than the TTL. What is done is never done again. [Guard.Claim] is
// the same in single steps, for programs that would rather do something else
// than wait.
//
// # What is promised, and what no files can promise
//
// At most one program executes a generation of a claim, and the work is not
// lost with a program that dies. But a lease is a lease: a program that was
// stopped for longer than the TTL, by SIGSTOP, a suspended laptop or a paused
// virtual machine, can wake up and go on for a moment while its successor
// runs already. Whatever the work writes to has to refuse it: compare
// [Token].Generation with the highest one seen. The engine sees to the rest: the
// context of the work ends when the lease does, and a late finisher is refused.
//
// The promise rests on the directory's filesystem. generations, the default,
// needs the least: exclusive create with one winner, and timestamps from one
// clock. Whether a filesystem keeps that between two hosts is not to be
// believed but measured; that is what the program claimbench is for.
// The other protocols of [Protocols] are there to be measured too. Those that
// are not Safe are wrong, and kept to show that a measurement would notice.
//
// Without Options.Sync what is promised survives the death of programs, but
// not of the machine that has the filesystem.
//
// # Time
//
// How old a claim is, is judged on the filesystem's clock at both ends: its
// own time against that of a file touched just now. No two hosts' clocks are
// ever compared. An owner times its lease by its own clock from before it
// claimed, and gives up Slack earlier than others may take over.
//
// Where a client stamps files itself, as over SMB or with delegated timestamps
// over NFSv4.2, the hosts' clocks are back in, and Slack has to cover their
// difference. If the filesystem's clock is put forward by more than the TTL,
// all claims expire at once, and the fencing token is what is left.
//
// # Errors
//
// A [*ContractError] names the field that is wrong, a [*ParamsError] the one
// that another program has otherwise. [ErrLost] means that the key is
// another's now. [ErrUnknown] means that nobody can know: an I/O error or a
// stale handle never makes a claim this program's, and never another's stale.
// [*ForeignError], [*ClockError] and [ErrVersion] say of a file why it is not
// judged. Errors from the system keep their errno.
//
// # What is in the directory
//
// <sig> is the [Signature] of a key and <fan> its first three digits. There
// are at most 4096 fan-out directories, and no claim lists any of them.
//
//	params.gen1             what all programs have to agree on
//	clock/00 to clock/ff    touched to read the filesystem's clock
//	<fan>/<sig>.gen<N>.claim    the claims of a key, and after the last its done record
//
// These are never removed: a key costs two small files for ever, and one more
// for each time its work failed or its owner died. Protocols other than
// generations also have
//
//	<fan>/<sig>.new-<nonce>     private names, until they are published
//	<fan>/<sig>.claim           the claim of the protocols that replace it
//	<fan>/<sig>.done            the done record of all but generations
//	<fan>/<sig>.flock, sentinel.flock           locked, never removed
//	<fan>/<sig>.lock/owner/record               quarantine's claim
//	<fan>/<sig>.lock.stale-<claimed_at_ms>-<nonce>/    and what became of it
//
// Files and directories are made with the modes 0666 and 0777 less the umask.
// Programs of several users need a umask by which they can write to each
// other's.
//
// [Reclaim] removes the first and the last of these once nobody can be after
// them any more, and [Quarantines] says when that is.
package engine
