package engine

import (
	"context"
	"time"
)

// FS is all of a filesystem that generations is given. Unlink, rename, link and
// locks do not exist in it, so no code that has only an FS can take a claim away.
//
// Names are relative to the claim directory and separated by slashes. Every
// method is one step that another contender can come before or after. Errors
// keep the errno: errors.Is(err, syscall.EEXIST) and the like decide, never
// the text.
type FS interface {
	// Create makes a regular file and opens it for writing, or fails with
	// EEXIST if the name is taken by anything at all, a dangling symlink
	// included: open(O_CREAT|O_EXCL|O_WRONLY|O_NOFOLLOW). The file is empty
	// until WriteAt, and others can see it so.
	Create(name string) (File, error)

	// Open opens whatever the name is, for reading. It neither follows a
	// symlink in the last element (ELOOP) nor waits for a writer of a FIFO.
	Open(name string) (Reader, error)

	// Lstat describes what the name is, without following a symlink.
	Lstat(name string) (Info, error)

	// Mkdir makes a directory, or fails with EEXIST.
	Mkdir(name string) error

	// Now is the filesystem's clock, read by touching a file that belongs to
	// no claim and reading its time back. Ages are differences between it and
	// a time in an Info, so that no host's own clock takes part. The touch
	// happens within the call: a time stamped before the call is not later
	// than the result, apart from the granularity of timestamps.
	Now() (time.Time, error)
}

// File is a file that this contender created, held open. It stays the same file
// whatever happens to its name.
type File interface {
	// WriteAt is io.WriterAt. Whoever opens the file afterwards, on whatever
	// host, reads what was written.
	WriteAt(p []byte, off int64) (int, error)
	// Touch sets the times of the file to the filesystem's clock:
	// futimens(UTIME_NOW). The kernel of a network filesystem leaves the value
	// to the server.
	Touch() error
	// Stat describes the file as the server has it, not as it is cached.
	Stat() (Info, error)
	// Sync makes what was written durable, and the file's name as well.
	Sync() error
	Close() error
}

// Reader is a file opened for reading.
type Reader interface {
	// ReadAt is io.ReaderAt: fewer bytes than asked for come with io.EOF.
	ReadAt(p []byte, off int64) (int, error)
	// Stat describes the file as the server has it, not as it is cached: its
	// times decide whether a claim is taken over.
	Stat() (Info, error)
	Close() error
}

// LinkFS is what generations-linked is given. It unlinks nothing but its own
// private names.
type LinkFS interface {
	FS
	// Link gives the file another name, or fails with EEXIST.
	Link(name, another string) error
	// Unlink removes whatever file has the name by then.
	Unlink(name string) error
}

// FullFS is for the protocols that take away what others made: the controls,
// quarantine, and those under a lock.
type FullFS interface {
	LinkFS
	// Overwrite opens a file for writing, makes it if it is not there, and
	// empties it if it is: open(O_CREAT|O_TRUNC|O_WRONLY).
	Overwrite(name string) (File, error)
	// Rename moves a file or a directory. A directory replaces an empty
	// directory and fails on one that is not, with ENOTEMPTY or EEXIST.
	Rename(from, to string) error
	// Rmdir removes an empty directory.
	Rmdir(name string) error
	// List names the entries of a directory. No claim lists a directory that
	// grows with the number of keys.
	List(name string) ([]string, error)
	// OpenLock opens a file to be locked, and makes it if it is not there.
	OpenLock(name string) (LockFile, error)
}

// LockFile is an open file that flock(2) can lock.
type LockFile interface {
	// TryLock is flock(LOCK_EX|LOCK_NB); EWOULDBLOCK means another holds it.
	TryLock() error
	Stat() (Info, error)
	// Close closes the file, which releases the lock.
	Close() error
}

// Kind is what a name stands for.
type Kind uint8

// The kinds of things. Only Regular can be a claim.
const (
	Regular Kind = iota + 1
	Directory
	Symlink
	Other
)

func (k Kind) String() string {
	switch k {
	case Regular:
		return "regular file"
	case Directory:
		return "directory"
	case Symlink:
		return "symlink"
	default:
		return "special file"
	}
}

// Info is the part of stat(2) that the protocols use.
type Info struct {
	Kind  Kind
	Size  int64
	Ino   uint64
	Nlink uint64
	Mtime time.Time
	Ctime time.Time
}

// Clock is the local clock. Its readings are compared only with each other, never
// with those of another host or of a filesystem.
type Clock interface {
	// Now is the time since some fixed moment. It goes on while the host is
	// suspended: a lease that ran out in the meantime must look so.
	Now() time.Duration
	// Sleep returns nil after d, or the cause of the context's end.
	Sleep(ctx context.Context, d time.Duration) error
}

// Nonce makes the random bytes by which a contender recognises its own claim.
type Nonce func() ([]byte, error)
