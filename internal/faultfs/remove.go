package faultfs

import (
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

func (m *mount) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return m.remove(in.NodeId, name, 0)
}

func (m *mount) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return m.remove(in.NodeId, name, unix.AT_REMOVEDIR)
}

func (m *mount) remove(dir uint64, name string, flags int) fuse.Status {
	if m.share.fires(HangRemove) {
		return m.hang()
	}
	name, errno := m.called(name)
	if errno != 0 {
		return fuse.Status(errno)
	}
	switch fd := m.nodes.fd(dir); {
	case flags == 0 && m.share.fires(UnlinkDenied):
		return fuse.EPERM
	case flags == 0 && m.share.fires(UnlinkIgnored):
		return fuse.OK
	case flags == 0 && m.share.has(ReplacedKept) && m.share.wasReplaced(fd, name):
		return fuse.EBUSY
	}
	m.removes(m.nodes.fd(dir), name)
	err := unix.Unlinkat(m.nodes.fd(dir), name, flags)
	switch {
	case err == unix.ENOENT && m.share.fires(GoneRemoved):
		err = nil
	case err == unix.ENOTEMPTY && m.share.fires(RmdirRemovesFull):
		removeTree(m.nodes.fd(dir), name)
		err = nil
	}
	if err == nil {
		m.names.changed(dir, name)
	}
	return fuse.Status(code(err))
}

// removeTree removes a name and, if it is a directory, the files in it.
func removeTree(dir int, name string) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Unlinkat(dir, name, 0)
		return
	}
	d := os.NewFile(uintptr(fd), name)
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, n := range names {
		unix.Unlinkat(fd, n, 0)
	}
	unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}
