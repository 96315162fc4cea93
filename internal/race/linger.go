package race

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lingerArg is the hidden argument of a program that does nothing for a while: the child to which a contender leaves a
// descriptor.
const lingerArg = "linger"

// lingers is how long that is at most, should nobody end it before.
const lingers = 15 * time.Second

// Linger starts a child that inherits the descriptor, and outlives the calling contender. It has none of the
// contender's other descriptors, and no descriptor of the file is closed here: that would drop a POSIX lock. Whoever
// asks for a child ends it.
func Linger(fd int) (pid int, errno unix.Errno) {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err.(unix.Errno)
	}
	defer unix.Close(null)
	n := uintptr(null)
	pid, err = syscall.ForkExec("/proc/self/exe", []string{os.Args[0], lingerArg}, &syscall.ProcAttr{
		Env: []string{"GOMAXPROCS=1"}, Files: []uintptr{n, n, n, uintptr(fd)},
	})
	errno, _ = err.(unix.Errno)
	return pid, errno
}
