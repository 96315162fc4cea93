package faultfs

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

func (m *mount) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	name, errno := m.share.spelt(name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	name = m.called(name)
	at := entryName{in.NodeId, name}
	if fd, cached := m.names.get(at); cached && fd < 0 {
		return fuse.ENOENT
	} else if cached {
		return m.entry(fd, out)
	}
	fd, err := unix.Openat(m.nodes.fd(in.NodeId), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		if err == unix.ENOENT && m.share.has(NegativeCached) {
			m.names.put(at, -1)
			m.expire(NegativeCached, at)
		}
		return fuse.Status(code(err))
	}
	if m.share.has(PositiveCached) {
		m.names.put(at, fd)
		m.expire(PositiveCached, at)
	}
	return m.entry(fd, out)
}

// expire forgets a look-up when the fault that made the mount remember it says so.
func (m *mount) expire(k Kind, at entryName) {
	if d := m.share.the(k).For; d > 0 {
		m.share.later(d, func() { m.names.changed(at.parent, at.name) })
	}
}

func (m *mount) Forget(id, lookups uint64) { m.nodes.forget(id, lookups) }

// before is asked by what makes a name.
func (s *Share) before(c Call) unix.Errno {
	switch {
	case s.firesOn(NoSpace, c):
		return unix.ENOSPC
	case s.firesOn(TakenThoughAbsent, c):
		return unix.EEXIST
	case s.firesOn(Slow, c):
		time.Sleep(s.the(Slow).Delay)
	}
	return 0
}

// makes is before, and the name as the share keeps it.
func (s *Share) makes(c Call, name string) (string, unix.Errno) {
	if errno := s.before(c); errno != 0 {
		return name, errno
	}
	return s.spelt(name)
}

// taken is what is told about a name that another has.
func (s *Share) taken(c Call, err error) unix.Errno {
	switch {
	case err == unix.EEXIST && s.firesOn(TakenToldEPERM, c):
		return unix.EPERM
	case err == unix.EEXIST && s.firesOn(TakenToldENOENT, c):
		return unix.ENOENT
	}
	return code(err)
}

// after spoils what was made.
func (s *Share) after(c Call, undo func()) unix.Errno {
	switch {
	case s.firesOn(MadeVanishes, c):
		s.later(s.the(MadeVanishes).Delay, undo)
	case s.firesOn(WinnerToldEEXIST, c):
		return unix.EEXIST
	case s.firesOn(WinnerToldEIO, c):
		return unix.EIO
	}
	return 0
}

// made answers for what lies under a name, after its making.
func (m *mount) made(c Call, parent uint64, name string, out *fuse.EntryOut) fuse.Status {
	dir := m.nodes.fd(parent)
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fuse.Status(code(err))
	}
	if errno := m.share.after(c, func() { removeTree(dir, name) }); errno != 0 {
		unix.Close(fd)
		return fuse.Status(errno)
	}
	m.names.changed(parent, name)
	return m.entry(fd, out)
}

func (m *mount) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	s, dir := m.share, m.nodes.fd(in.NodeId)
	name, errno := s.makes(Mkdir, name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	name = m.called(name)
	err := unix.Mkdirat(dir, name, in.Mode)
	switch {
	case err == nil:
		err = unix.Fchmodat(dir, name, in.Mode&0o7777, 0)
	case err == unix.EEXIST && s.fires(MkdirTakesExisting):
		err = nil
	}
	if err != nil {
		return fuse.Status(s.taken(Mkdir, err))
	}
	return m.made(Mkdir, in.NodeId, name, out)
}

// Mknod makes fifos and the like.
func (m *mount) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	name, errno := m.share.makes(Create, name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	if err := unix.Mknodat(m.nodes.fd(in.NodeId), name, in.Mode, int(in.Rdev)); err != nil {
		return fuse.Status(code(err))
	}
	return m.made(Create, in.NodeId, name, out)
}

func (m *mount) Symlink(_ <-chan struct{}, in *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	s, dir, name := m.share, m.nodes.fd(in.NodeId), m.called(name)
	if s.fires(SymlinkRefused) {
		return fuse.EPERM
	}
	name, errno := s.makes(Symlink, name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	errno = s.place(dir, name, SymlinkNotAtomic, func(at string) error { return unix.Symlinkat(target, dir, at) })
	if errno != 0 {
		return fuse.Status(s.taken(Symlink, errno))
	}
	return m.made(Symlink, in.NodeId, name, out)
}

func (m *mount) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	s, dir, name := m.share, m.nodes.fd(in.NodeId), m.called(name)
	if s.fires(LinkRefused) {
		return fuse.EPERM
	}
	name, errno := s.makes(Link, name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	from := path(m.nodes.fd(in.Oldnodeid))
	errno = s.place(dir, name, LinkNotAtomic, func(at string) error {
		if s.has(LinkCopies) {
			return copyTo(dir, from, at)
		}
		return unix.Linkat(unix.AT_FDCWD, from, dir, at, unix.AT_SYMLINK_FOLLOW)
	})
	if errno != 0 {
		return fuse.Status(s.taken(Link, errno))
	}
	return m.made(Link, in.NodeId, name, out)
}

// place makes something under a name, or, with the fault, looks first and then replaces what is there.
func (s *Share) place(dir int, name string, notAtomic Kind, at func(string) error) unix.Errno {
	if !s.fires(notAtomic) {
		err := at(name)
		if err == unix.EEXIST && s.fires(LoserReplaces) {
			s.replace(dir, name, at)
		}
		return code(err)
	}
	if !absent(dir, name) {
		return unix.EEXIST
	}
	time.Sleep(s.the(notAtomic).Delay)
	return s.replace(dir, name, at)
}

// replace makes something under a name, whatever is there.
func (s *Share) replace(dir int, name string, at func(string) error) unix.Errno {
	tmp := s.unique()
	if err := at(tmp); err != nil {
		return code(err)
	}
	return code(unix.Renameat(dir, tmp, dir, name))
}

// unique is a name that no contender uses.
func (s *Share) unique() string { return fmt.Sprintf(".faultfs%d", s.serial.Add(1)) }

// copyTo makes a copy of a file, whole at once.
func copyTo(dir int, from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return unix.EIO
	}
	defer src.Close()
	fd, err := unix.Openat(dir, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	dst := os.NewFile(uintptr(fd), to)
	defer dst.Close()
	if _, err := io.Copy(dst, src); err != nil {
		return unix.EIO
	}
	return unix.Linkat(unix.AT_FDCWD, path(fd), dir, to, unix.AT_SYMLINK_FOLLOW)
}

func (m *mount) Readlink(_ <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(m.nodes.fd(in.NodeId), "", buf)
	return buf[:max(n, 0)], fuse.Status(code(err))
}

func (m *mount) Rename(_ <-chan struct{}, in *fuse.RenameIn, name, to string) fuse.Status {
	s, dir, toDir, flags := m.share, m.nodes.fd(in.NodeId), m.nodes.fd(in.Newdir), uint(in.Flags)
	name, to = m.called(name), m.called(to)
	if flags != 0 && s.has(RenameFlagsRefused) {
		return fuse.EINVAL
	}
	name, errno := s.spelt(name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	c := renameCall(dir, name, flags)
	if to, errno = s.makes(c, to); errno != 0 {
		return fuse.Status(errno)
	}
	if errno := s.rename(dir, name, toDir, to, flags); errno != 0 {
		return fuse.Status(errno)
	}
	m.names.changed(in.NodeId, name)
	m.names.changed(in.Newdir, to)
	return fuse.Status(s.after(c, func() { removeTree(toDir, to) }))
}

func renameCall(dir int, name string, flags uint) Call {
	var st unix.Stat_t
	switch {
	case flags&unix.RENAME_NOREPLACE != 0:
		return RenameNew
	case unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return RenameDir
	}
	return RenameFile
}

func (s *Share) rename(dir int, name string, toDir int, to string, flags uint) unix.Errno {
	switch {
	case flags == unix.RENAME_NOREPLACE && s.fires(NoreplaceNotAtomic):
		if !absent(toDir, to) {
			return unix.EEXIST
		}
		time.Sleep(s.the(NoreplaceNotAtomic).Delay)
		flags = 0
	case flags == 0 && s.has(ReplacedKept) && !absent(toDir, to):
		s.replaced.Store(placeOf(toDir, to), true)
	case flags == 0 && s.has(RenameWithGap) && unix.Unlinkat(toDir, to, 0) == nil:
		time.Sleep(s.the(RenameWithGap).Delay)
	}
	err := unix.Renameat2(dir, name, toDir, to, flags)
	switch occupied := err == unix.EEXIST || err == unix.ENOTEMPTY; {
	case occupied && s.fires(RenameOntoOccupied):
		removeTree(toDir, to)
		err = unix.Renameat(dir, name, toDir, to)
	case occupied && s.fires(RenameLosesSource):
		removeTree(dir, name)
	}
	return code(err)
}

// placeOf names a name in a directory, over whatever mount.
func placeOf(dir int, name string) entryName {
	st, _ := status(dir)
	return entryName{st.Ino, name}
}

func (s *Share) wasReplaced(dir int, name string) bool {
	_, yes := s.replaced.Load(placeOf(dir, name))
	return yes
}

// called is the name in the backing directory.
func (m *mount) called(name string) string {
	const long = 32
	switch {
	case len(name) > long && m.share.has(NamesMerged):
		return "long"
	case len(name) > long && m.share.has(NamesPerMount):
		return fmt.Sprintf("%s@%p", name, m)
	}
	return name
}

func (m *mount) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.OK }

func (m *mount) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	switch {
	case m.share.fires(DirSyncEINVAL):
		return fuse.EINVAL
	case m.share.fires(DirSyncEIO):
		return fuse.EIO
	}
	return fuse.OK
}

func (m *mount) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	entries, err := m.names.listing(in.NodeId, m.share.has(ListingCached), func() ([]os.DirEntry, error) {
		return os.ReadDir(path(m.nodes.fd(in.NodeId)))
	})
	if err != nil {
		return fuse.EIO
	}
	for i := int(in.Offset); i < len(entries); i++ {
		if !out.AddDirEntry(fuse.DirEntry{Name: entries[i].Name(), Mode: typeOf(entries[i]), Off: uint64(i + 1)}) {
			break
		}
	}
	return fuse.OK
}

func typeOf(e os.DirEntry) uint32 {
	switch {
	case e.IsDir():
		return unix.S_IFDIR
	case e.Type()&os.ModeSymlink != 0:
		return unix.S_IFLNK
	}
	return unix.S_IFREG
}

func (m *mount) StatFs(_ <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	var st unix.Statfs_t
	err := unix.Fstatfs(m.share.root, &st)
	*out = fuse.StatfsOut{
		Blocks: st.Blocks, Bfree: st.Bfree, Bavail: st.Bavail, Files: st.Files, Ffree: st.Ffree,
		Bsize: uint32(st.Bsize), NameLen: uint32(st.Namelen), Frsize: uint32(st.Frsize),
	}
	return fuse.Status(code(err))
}
