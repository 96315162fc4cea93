package race

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Lists reports whether a listing of a directory contains the name. The directory is opened afresh, so that nothing
// of an earlier listing is left in the descriptor.
func Lists(dir int, path *byte, name string, b []byte) (bool, unix.Errno) {
	fd, errno := Open(dir, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errno != 0 {
		return false, errno
	}
	defer Close(fd)
	for found := false; ; {
		n, _, errno := unix.RawSyscall(unix.SYS_GETDENTS64, uintptr(fd), ptr(unsafe.SliceData(b)), uintptr(len(b)))
		if errno != 0 || n == 0 {
			return found, errno
		}
		found = found || hasEntry(b[:n], name)
	}
}

// hasEntry looks through the records of getdents64(2): inode and offset of 8 bytes each, the record's length of 2, the
// type of 1, and the name, which ends in NUL.
func hasEntry(b []byte, name string) bool {
	const head = 19
	for len(b) > head+len(name) {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size <= head || size > len(b) {
			return false
		}
		if rec := b[head:size]; len(rec) > len(name) && string(rec[:len(name)]) == name && rec[len(name)] == 0 {
			return true
		}
		b = b[size:]
	}
	return false
}

// Futimens is futimens(3): access and modification time, in this order.
func Futimens(fd int, times *[2]unix.Timespec) unix.Errno {
	_, errno := sys(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(times)), 0, 0)
	return errno
}

// StatxSync is statx(2) of an open file as the server has it, not as it is cached. A kernel or sandbox that does not
// know the call gives what fstat(2) does.
func StatxSync(fd int, st *unix.Statx_t) unix.Errno {
	_, errno := sys(unix.SYS_STATX, uintptr(fd), ptr(&noName), unix.AT_EMPTY_PATH|unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, uintptr(unsafe.Pointer(st)))
	if errno != unix.ENOSYS && errno != unix.EPERM {
		return errno
	}
	var old unix.Stat_t
	errno = Fstat(fd, &old)
	st.Mtime = unix.StatxTimestamp{Sec: old.Mtim.Sec, Nsec: uint32(old.Mtim.Nsec)}
	st.Size = uint64(old.Size)
	return errno
}

var noName byte // an empty path
