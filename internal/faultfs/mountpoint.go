package faultfs

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	fstype  = "fuse.faultfs"
	maxRead = 128 << 10
)

// attach mounts on a directory and returns the descriptor by which the kernel is answered. It is done here, and not by
// the library, for two reasons: no other program may inherit the descriptor, since the mount of a dead server hangs for
// as long as that is open anywhere; and the mount's source says who serves it, which Sweep reads.
func attach(at string) (fd int, err error) {
	fd, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/fuse: %w", err)
	}
	self, err := self()
	if err == nil {
		options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d,max_read=%d", fd, unix.S_IFDIR, os.Geteuid(), os.Getegid(), maxRead)
		err = unix.Mount(self.String(), at, fstype, unix.MS_NOSUID|unix.MS_NODEV, options)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// awaken has the kernel ask once whether files can be polled. Later it could ask when this process has no thread left
// to say no: Go's poller asks for each file that it opens.
func awaken(at string) error {
	fd, err := unix.Open(at+"/.go-fuse-epoll-hack", unix.O_RDONLY|unix.O_CLOEXEC, 0) // the library answers for it
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err
}
