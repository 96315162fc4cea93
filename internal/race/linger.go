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

// Linger starts a child that inherits the descriptor, and outlives this contender. Line.EndChild ends it.
func (e *Env) Linger(fd int) unix.Errno {
	pid, errno := linger(fd)
	e.child.Store(int32(pid))
	return errno
}

// EndChild ends the child that contender i has left, and sees to it that its exit status is taken. It goes by what the
// contender's own host knows: a process number from another host would name another process here.
func (l *Line) EndChild(i int) {
	pid := int(l.sh.slots[i].child.Swap(0))
	if pid <= 0 {
		return
	}
	_ = unix.Kill(pid, unix.SIGKILL)
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); got == pid || err != nil {
			return
		}
	}
}

// linger starts the child. It has none of the contender's other descriptors, and no descriptor of the file is closed
// here: that would drop a POSIX lock.
func linger(fd int) (pid int, errno unix.Errno) {
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
