package faultfs

import (
	"io"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

func (m *mount) Rename(_ <-chan struct{}, in *fuse.RenameIn, name, to string) fuse.Status {
	s, dir, toDir, flags := m.share, m.nodes.fd(in.NodeId), m.nodes.fd(in.Newdir), uint(in.Flags)
	if flags != 0 && s.has(RenameFlagsRefused) {
		return fuse.EINVAL
	}
	name, errno := m.called(name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	c := renameCall(dir, name, flags)
	if to, errno = m.makes(c, to); errno != 0 {
		return fuse.Status(errno)
	}
	m.removes(toDir, to)
	if errno := s.rename(dir, name, toDir, to, flags); errno != 0 {
		return fuse.Status(errno)
	}
	m.nodes.moved(entryName{in.Newdir, to})
	if flags&unix.RENAME_EXCHANGE != 0 {
		m.nodes.moved(entryName{in.NodeId, name})
	}
	m.names.changed(in.NodeId, name)
	m.names.changed(in.Newdir, to)
	return fuse.Status(s.after(c, toDir, func(dir int) { removeTree(dir, to) }))
}

func renameCall(dir int, name string, flags uint) Call {
	var st unix.Stat_t
	switch {
	case flags&unix.RENAME_NOREPLACE != 0:
		return RenameNew
	case unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && isDir(&st):
		return RenameDir
	}
	return RenameFile
}

func (s *Share) rename(dir int, name string, toDir int, to string, flags uint) unix.Errno {
	switch file := renameCall(dir, name, flags) == RenameFile; {
	case file && s.fires(RenameBothNames):
		return code(s.renameByLink(dir, name, toDir, to))
	case !file && flags == 0 && s.fires(RenameDirCopies):
		return code(s.renameDirByCopy(dir, name, toDir, to))
	case file && s.fires(RenameCopies):
		return code(s.renameByCopy(dir, name, toDir, to))
	case flags == unix.RENAME_NOREPLACE && s.firesLate(NoreplaceIgnored):
		flags = 0
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

// renameByLink gives a file the other name first, and takes the old one away later.
func (s *Share) renameByLink(dir int, name string, toDir int, to string) error {
	tmp := s.unique()
	if err := unix.Linkat(dir, name, toDir, tmp, 0); err != nil {
		return err
	}
	if err := unix.Renameat(toDir, tmp, toDir, to); err != nil {
		unix.Unlinkat(toDir, tmp, 0)
		return err
	}
	if unix.Unlinkat(toDir, tmp, 0) == nil {
		return nil // both were names of one file: rename(2) does nothing then
	}
	time.Sleep(s.the(RenameBothNames).Delay)
	return unix.Unlinkat(dir, name, 0)
}

// renameByCopy writes a file anew, under the other name.
func (s *Share) renameByCopy(dir int, name string, toDir int, to string) error {
	src, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	from := os.NewFile(uintptr(src), name)
	defer from.Close()
	data, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	dst, err := unix.Openat(toDir, to, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(dst)
	if _, err := s.halves(RenameCopies, dst, data, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, 0)
}

// renameDirByCopy makes a directory of the new name with what is in the old one, and then removes that: as object
// stores do, of which a directory is no object.
func (s *Share) renameDirByCopy(dir int, name string, toDir int, to string) error {
	from, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	old := os.NewFile(uintptr(from), name)
	defer old.Close()
	if err := unix.Mkdirat(toDir, to, 0o755); err != nil {
		return err
	}
	entries, err := old.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, n := range entries {
		unix.Linkat(from, n, toDir, to+"/"+n, 0) // what another has removed meanwhile is missing
	}
	time.Sleep(s.the(RenameDirCopies).Delay)
	removeTree(dir, name)
	return nil
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
