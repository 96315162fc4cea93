package faultfs

import (
	"fmt"
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

func (m *mount) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	name, errno := m.called(name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	at := entryName{in.NodeId, name}
	if fd, cached := m.names.get(at); cached && fd < 0 {
		return fuse.ENOENT
	} else if cached {
		return m.entry(fd, at, out)
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
	return m.entry(fd, at, out)
}

// expire forgets a look-up when the fault that made the mount remember it says so.
func (m *mount) expire(k Kind, at entryName) {
	if d := m.share.the(k).For; d > 0 {
		m.share.later(d, func() { m.names.changed(at.parent, at.name) })
	}
}

func (m *mount) Forget(id, lookups uint64) { m.nodes.forget(id, lookups) }

func (m *mount) Readlink(_ <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(m.nodes.fd(in.NodeId), "", buf)
	return buf[:max(n, 0)], fuse.Status(code(err))
}

// called is the name in the backing directory: as the share spells it, and then as this mount does.
func (m *mount) called(name string) (string, unix.Errno) {
	const long = 32
	name, errno := m.share.spelt(name)
	switch {
	case errno != 0:
	case len(name) > long && m.share.has(NamesMerged):
		name = "long"
	case len(name) > long && m.share.has(NamesPerMount):
		name = fmt.Sprintf("%s@%p", name, m)
	}
	return name, errno
}

// OpenDir makes a handle that holds what is listed: a position in it must mean the same from call to call.
func (m *mount) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.listed[m.last] = nil
	out.Fh = m.last
	return fuse.OK
}

func (m *mount) ReleaseDir(in *fuse.ReleaseIn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.listed, in.Fh)
}

func (m *mount) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	switch {
	case m.share.fires(DirSyncEINVAL):
		return fuse.EINVAL
	case m.share.fires(DirSyncEIO):
		return fuse.EIO
	}
	fd, err := unix.Open(path(m.nodes.fd(in.NodeId)), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fuse.Status(code(err))
	}
	defer unix.Close(fd)
	return fuse.Status(code(unix.Fsync(fd)))
}

func (m *mount) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	entries, err := m.list(in)
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

// list lists a directory anew whenever it is read from its beginning.
func (m *mount) list(in *fuse.ReadIn) ([]os.DirEntry, error) {
	if in.Offset > 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.listed[in.Fh], nil
	}
	entries, err := m.entries(in.NodeId)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed[in.Fh] = entries
	return entries, err
}

func (m *mount) entries(dir uint64) ([]os.DirEntry, error) {
	list := func() ([]os.DirEntry, error) { return os.ReadDir(path(m.nodes.fd(dir))) }
	if m.share.has(ListingCached) {
		return m.names.listing(dir, m.share.the(ListingCached).For, list)
	}
	return list()
}

// typeOf is the type of an entry as in a mode.
func typeOf(e os.DirEntry) uint32 {
	switch e.Type() {
	case os.ModeDir:
		return unix.S_IFDIR
	case os.ModeSymlink:
		return unix.S_IFLNK
	case os.ModeNamedPipe:
		return unix.S_IFIFO
	case os.ModeSocket:
		return unix.S_IFSOCK
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
