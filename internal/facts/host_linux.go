package facts

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/sysfs"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
)

// ErrNoProc says that there is no proc filesystem at /proc, without which nothing can be said about the host.
var ErrNoProc = errors.New("no proc filesystem there: mount one with \"mount -t proc proc /proc\"")

// ReadHost describes the machine this process runs on. What can't be read is left empty. The error is non-nil
// only when /proc is not mounted, and wraps ErrNoProc.
func ReadHost() (result.Host, error) {
	if err := needProc(); err != nil {
		return result.Host{}, err
	}
	uts := uname()
	return result.Host{
		Name:           hostname(),
		Kernel:         uts.release,
		OS:             osName(),
		Arch:           uts.machine,
		CPUs:           onlineCPUs(),
		CPUsAllowed:    cpuList(allowedCPUs()),
		Container:      containerFrom(readContainerSigns()),
		Virtualization: virtualizationFrom(readMachineSigns(uts)),
		BootID:         bootID(),
		Clock:          clockSource(),
		NTP:            ntpState(),
		PIDNamespace:   namespace("pid"),
		UID:            os.Geteuid(),
	}, nil
}

func needProc() error {
	if !onProc("/proc") {
		return fmt.Errorf("read /proc: %w", ErrNoProc)
	}
	return nil
}

// onProc reports whether path lies on a proc filesystem, and not on something mounted over it.
func onProc(path string) bool {
	var st unix.Statfs_t
	err := retry(func() error { return unix.Statfs(path, &st) })
	return err == nil && st.Type == unix.PROC_SUPER_MAGIC
}

// retry calls f until it is not interrupted. A signal can interrupt statx and statfs on network and FUSE mounts.
func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// text is the content of a small file without surrounding white space, or "".
func text(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// namespace names the namespace of this process as namespaces(7) prints it, for example "pid:[4026531836]".
func namespace(kind string) string {
	name, err := os.Readlink("/proc/self/ns/" + kind)
	if err != nil {
		return ""
	}
	return name
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

func uname() unameText {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return unameText{}
	}
	return unameText{
		release: unix.ByteSliceToString(u.Release[:]),
		version: unix.ByteSliceToString(u.Version[:]),
		machine: unix.ByteSliceToString(u.Machine[:]),
	}
}

// bootID is the random id that the kernel draws once per boot, random(4). systemd-nspawn and LXC mount a made-up
// one of the container over it; that one says nothing about the kernel and is treated as unreadable.
func bootID() string {
	const path = "/proc/sys/kernel/random/boot_id"
	if !onProc(path) {
		return ""
	}
	return text(path)
}

// osName is PRETTY_NAME of os-release(5).
func osName() string {
	for _, path := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		if name := prettyName(text(path)); name != "" {
			return name
		}
	}
	return ""
}

// onlineCPUs counts the cpuN lines of /proc/stat, which the kernel prints for online CPUs only.
func onlineCPUs() int {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	stat, err := fs.Stat()
	if err != nil {
		return 0
	}
	return len(stat.CPU)
}

// allowedCPUs are those that sched_getaffinity(2) gives for the main thread. A thread that the caller has pinned
// does not narrow the answer.
func allowedCPUs() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(os.Getpid(), &set) != nil {
		return nil
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

func clockSource() string {
	if clocks := clockSources(); len(clocks) > 0 {
		return clocks[0].Current
	}
	return ""
}

func clockSources() []sysfs.ClockSource {
	fs, err := sysfs.NewDefaultFS()
	if err != nil {
		return nil
	}
	clocks, err := fs.ClockSources()
	if err != nil {
		return nil
	}
	return clocks
}

// ntpState is what adjtimex(2) says of the kernel clock: STA_UNSYNC stays set until a time daemon clears it.
func ntpState() string {
	var tx unix.Timex
	state, err := unix.Adjtimex(&tx)
	switch {
	case err != nil:
		return ""
	case state == unix.TIME_ERROR || tx.Status&unix.STA_UNSYNC != 0:
		return "unsynchronised"
	default:
		return "synchronised"
	}
}
