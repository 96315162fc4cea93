package probes

import (
	"slices"

	"golang.org/x/sys/unix"
)

// The things that may lie under a name.
const (
	aNothing  = "nothing"
	aFile     = "file"
	aDir      = "empty-dir"
	aFullDir  = "full-dir"
	aSymlink  = "symlink"
	aDangling = "dangling-symlink"
	aFifo     = "fifo"
	aGone     = "gone" // the caller has seen a file, and its maker has removed it
)

var things = []string{aNothing, aFile, aDir, aFullDir, aSymlink, aDangling, aFifo, aGone}

var inWords = map[string]string{
	aNothing: "nothing", aFile: "a file", aDir: "an empty directory", aFullDir: "a non-empty directory", aSymlink: "a symlink",
	aDangling: "a dangling symlink", aFifo: "a fifo", aGone: "what another has removed",
}

// existing are the things that are there.
var existing = things[1:7]

// The calls, by the names of their steps.
const (
	callCreate     = "create" // O_CREAT|O_EXCL
	callMkdir      = "mkdir"
	callSymlink    = "symlink"
	callLink       = "link"
	callRenameFile = "rename-file" // a file, to the name
	callRenameDir  = "rename-dir"  // an empty directory, to the name
	callUnlink     = "unlink"
	callRmdir      = "rmdir"
	callMoveAway   = "rename-away" // the name, to another that is free
)

// makers are the calls that only an absent name may satisfy.
var makers = []string{callCreate, callMkdir, callSymlink, callLink}

// A cell is one call on one thing, by the owner of everything or by another user in a directory of that mode.
type cell struct {
	call, thing string
	stranger    bool
	dir         uint32       // mode
	want        []unix.Errno // 0 is success; the first is what Linux gives
}

// The modes of directories: the owner's alone, anybody's, nobody else's, and that of /tmp.
const (
	dirOwn    = 0o700
	dirOpen   = 0o777
	dirClosed = 0o755
	dirSticky = 0o1777
)

func errnos(all ...unix.Errno) []unix.Errno { return all }

// ownerCells are what POSIX.1-2024 and the man pages of section 2 say of calls by the owner.
func ownerCells() []cell {
	var all []cell
	add := func(call, thing string, want ...unix.Errno) {
		all = append(all, cell{call: call, thing: thing, dir: dirOwn, want: want})
	}
	for _, call := range makers {
		add(call, aNothing, 0)
		for _, thing := range existing {
			add(call, thing, unix.EEXIST)
		}
	}
	add(callRenameFile, aNothing, 0)
	add(callRenameDir, aNothing, 0)
	for _, thing := range existing {
		if thing == aDir || thing == aFullDir {
			add(callRenameFile, thing, unix.EISDIR, unix.EEXIST, unix.ENOTEMPTY) // rename(2); NFS servers tell what they met first
		} else {
			add(callRenameFile, thing, 0)
			add(callRenameDir, thing, unix.ENOTDIR, unix.EEXIST)
		}
	}
	add(callRenameDir, aDir, 0)
	add(callRenameDir, aFullDir, unix.ENOTEMPTY, unix.EEXIST)
	for _, call := range []string{callUnlink, callRmdir, callMoveAway} {
		add(call, aNothing, unix.ENOENT)
		add(call, aGone, unix.ENOENT, unix.ESTALE)
	}
	add(callUnlink, aFile, 0)
	add(callUnlink, aDir, unix.EISDIR, unix.EPERM) // unlink(2): EISDIR on Linux, EPERM in POSIX
	add(callRmdir, aDir, 0)
	add(callRmdir, aFullDir, unix.ENOTEMPTY, unix.EEXIST)
	add(callRmdir, aFile, unix.ENOTDIR)
	return all
}

// strangerCells are calls by a second user on what the first one made. In a directory that the second may not write to
// the order of the two errors is nobody's promise.
func strangerCells() []cell {
	var all []cell
	add := func(dir uint32, call, thing string, want ...unix.Errno) {
		all = append(all, cell{call: call, thing: thing, stranger: true, dir: dir, want: want})
	}
	for _, dir := range []uint32{dirOpen, dirSticky, dirClosed} {
		taken := errnos(unix.EEXIST)
		if dir == dirClosed {
			taken = errnos(unix.EEXIST, unix.EACCES, unix.EPERM)
		}
		for _, call := range makers {
			add(dir, call, aFile, taken...)
			add(dir, call, aDir, taken...)
		}
	}
	add(dirOpen, callUnlink, aFile, 0)
	add(dirSticky, callUnlink, aFile, unix.EPERM, unix.EACCES) // unlink(2): the directory is sticky and the file another's
	add(dirClosed, callUnlink, aFile, unix.EACCES, unix.EPERM)
	add(dirOpen, callRenameFile, aFile, 0)
	add(dirSticky, callRenameFile, aFile, unix.EPERM, unix.EACCES)
	add(dirClosed, callCreate, aNothing, unix.EACCES, unix.EPERM)
	add(dirOpen, callUnlink, aGone, unix.ENOENT, unix.ESTALE)
	return all
}

// taken says that the call needs an absent name, and that there is none.
func (c *cell) taken() bool {
	return slices.Contains(makers, c.call) && slices.Contains(existing, c.thing)
}

// onto says that the call puts something under the name.
func (c *cell) onto() bool {
	return slices.Contains(makers, c.call) || c.call == callRenameFile || c.call == callRenameDir
}

// gone says that there is nothing to remove.
func (c *cell) gone() bool {
	return !slices.Contains(existing, c.thing) && !c.onto()
}

// denies says that success would mean that somebody may do what he may not, which some filesystems leave to a server.
func (c *cell) denies() bool {
	return c.stranger && !c.taken() && !c.gone() && (c.want[0] == unix.EACCES || c.want[0] == unix.EPERM)
}
