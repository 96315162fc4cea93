package race

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below are about the times of files. Like the others they are made without the scheduler's knowledge.

// Wall is CLOCK_REALTIME in nanoseconds.
//
//go:nosplit
func Wall() int64 {
	var ts unix.Timespec
	sys(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return ts.Nano()
}

// Touch sets the times of an open file to what the filesystem takes for now: utimensat(2) without times.
//
//go:nosplit
func Touch(fd int) unix.Errno {
	_, errno := sys(unix.SYS_UTIMENSAT, uintptr(fd), 0, 0, 0, 0)
	return errno
}

// SetTimes sets both times of an open file: utimensat(2). The time is in nanoseconds since 1970.
func SetTimes(fd int, at int64) unix.Errno {
	ts := [2]unix.Timespec{unix.NsecToTimespec(at), unix.NsecToTimespec(at)}
	_, errno := sys(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts)), 0, 0)
	return errno
}

// Fsync is fsync(2).
//
//go:nosplit
func Fsync(fd int) unix.Errno {
	_, errno := sys(unix.SYS_FSYNC, uintptr(fd), 0, 0, 0, 0)
	return errno
}

// here is the empty path: the descriptor itself.
var here [1]byte

// Fstatx is Statx of an open file.
func Fstatx(fd int, st *unix.Statx_t) unix.Errno { return Statx(fd, &here[0], st) }

// Statx is statx(2) without following a symlink, and asks the server whatever the client has cached. Where a kernel
// before 4.11, or a sandbox, does not know the call, it is fstatat(2): Mask tells that there is no time of birth.
func Statx(dir int, name *byte, st *unix.Statx_t) unix.Errno {
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_EMPTY_PATH | unix.AT_STATX_FORCE_SYNC
	_, errno := sys(unix.SYS_STATX, uintptr(dir), ptr(name), flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, uintptr(unsafe.Pointer(st)))
	if errno == unix.ENOSYS || errno == unix.EPERM {
		return oldStat(dir, name, st)
	}
	return errno
}

func oldStat(dir int, name *byte, out *unix.Statx_t) unix.Errno {
	var st unix.Stat_t
	_, errno := sys(unix.SYS_NEWFSTATAT, uintptr(dir), ptr(name), uintptr(unsafe.Pointer(&st)), unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH, 0)
	*out = unix.Statx_t{
		Mask: unix.STATX_BASIC_STATS, Ino: st.Ino, Size: uint64(st.Size), Mode: uint16(st.Mode), Nlink: uint32(st.Nlink),
		Mtime: unix.StatxTimestamp{Sec: st.Mtim.Sec, Nsec: uint32(st.Mtim.Nsec)},
		Ctime: unix.StatxTimestamp{Sec: st.Ctim.Sec, Nsec: uint32(st.Ctim.Nsec)},
	}
	return errno
}

// Nanos is a time of a file in nanoseconds since 1970.
func Nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
