package facts

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Self identifies this process. What can't be read is left empty, and then nobody will call this process gone for
// that reason. The error is non-nil when not even its start time can be read.
func Self() (Owner, error) {
	if err := needProc(); err != nil {
		return Owner{}, err
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return Owner{}, fmt.Errorf("read /proc: %w", err)
	}
	self, err := fs.Self()
	if err != nil {
		return Owner{}, fmt.Errorf("read /proc/self: %w", err)
	}
	stat, err := self.Stat()
	if err != nil {
		return Owner{}, fmt.Errorf("read /proc/self/stat: %w", err)
	}
	return Owner{
		Host:          hostname(),
		BootID:        bootID(),
		MachineID:     hashMachine(text("/etc/machine-id"), text("/sys/class/dmi/id/product_uuid")),
		PIDNamespace:  namespace("pid"),
		TimeNamespace: namespace("time"),
		PID:           os.Getpid(),
		StartTicks:    stat.Starttime,
	}, nil
}

// OwnerGone says whether the process o is provably gone: whether nothing it left behind can still be used by it.
// false means that it runs or that nobody here can tell; why says which, in words that follow "because".
func OwnerGone(o Owner) (gone bool, why string) {
	self, err := Self()
	if err != nil {
		return false, "this process can't be identified: " + err.Error()
	}
	return provablyGone(o, self, look(o.PID))
}

// look asks kill(2), signal 0, whether a process has that id. /proc would not do: with hidepid= it hides the
// processes of others.
func look(pid int) sighting {
	if pid <= 0 {
		return sighting{}
	}
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return sighting{absent: true}
	}
	stat, err := readStat(pid)
	if err != nil {
		return sighting{absent: errors.Is(unix.Kill(pid, 0), unix.ESRCH)}
	}
	// A zombie that leads a process whose other threads run counts them in num_threads.
	return sighting{ticks: stat.Starttime, ended: stat.State == "Z" && stat.NumThreads <= 1}
}

var errForeignProc = errors.New("/proc belongs to another pid namespace")

// readStat reads /proc/PID/stat, provided that /proc counts process ids as this process does. After an unshare(1)
// without --mount-proc it does not, and PID is somebody else there.
func readStat(pid int) (procfs.ProcStat, error) {
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return procfs.ProcStat{}, err
	}
	if self != strconv.Itoa(os.Getpid()) {
		return procfs.ProcStat{}, errForeignProc
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return procfs.ProcStat{}, err
	}
	proc, err := fs.Proc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return proc.Stat()
}
