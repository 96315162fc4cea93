package faultfs

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

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

// makes is before, and the name in the backing directory.
func (m *mount) makes(c Call, name string) (string, unix.Errno) {
	if errno := m.share.before(c); errno != 0 {
		return name, errno
	}
	return m.called(name)
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

// after spoils what was made in a directory. Until it is undone, the kernel may have forgotten the directory.
func (s *Share) after(c Call, dir int, undo func(dir int)) unix.Errno {
	switch {
	case s.firesOn(MadeVanishes, c):
		own, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return code(err)
		}
		s.later(s.the(MadeVanishes).Delay, func() {
			undo(own)
			unix.Close(own)
		})
	case s.firesOn(WinnerToldEEXIST, c):
		return unix.EEXIST
	case s.firesOn(WinnerToldENOENT, c):
		return unix.ENOENT
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
	if errno := m.share.after(c, dir, func(dir int) { removeTree(dir, name) }); errno != 0 {
		unix.Close(fd)
		return fuse.Status(errno)
	}
	m.names.changed(parent, name)
	return m.entry(fd, entryName{parent, name}, out)
}

func (m *mount) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	s, dir := m.share, m.nodes.fd(in.NodeId)
	name, errno := m.makes(Mkdir, name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	if errno := s.mkdir(dir, name, in.Mode); errno != 0 {
		return fuse.Status(s.taken(Mkdir, errno))
	}
	return m.made(Mkdir, in.NodeId, name, out)
}

// mkdir makes a directory with exactly the mode asked for.
func (s *Share) mkdir(dir int, name string, mode uint32) unix.Errno {
	takes := s.fires(MkdirTakesExisting)
	if s.fires(MkdirNotAtomic) {
		if !absent(dir, name) {
			return unix.EEXIST
		}
		time.Sleep(s.the(MkdirNotAtomic).Delay)
		takes = true
	}
	err := unix.Mkdirat(dir, name, mode)
	if err == unix.EEXIST && takes {
		return 0
	}
	if err == nil {
		err = unix.Fchmodat(dir, name, mode&0o7777, 0)
	}
	return code(err)
}

// Mknod makes fifos and the like.
func (m *mount) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	name, errno := m.makes(Create, name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	if err := unix.Mknodat(m.nodes.fd(in.NodeId), name, in.Mode, int(in.Rdev)); err != nil {
		return fuse.Status(code(err))
	}
	return m.made(Create, in.NodeId, name, out)
}

func (m *mount) Symlink(_ <-chan struct{}, in *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	s, dir := m.share, m.nodes.fd(in.NodeId)
	if s.fires(SymlinkRefused) {
		return fuse.EPERM
	}
	name, errno := m.makes(Symlink, name)
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
	s, dir := m.share, m.nodes.fd(in.NodeId)
	if s.fires(LinkRefused) {
		return fuse.EPERM
	}
	name, errno := m.makes(Link, name)
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
	m.changed(m.nodes.fd(in.Oldnodeid))
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
