package facts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
)

// TestHostAgreesWithOtherSources holds each fact against another way to learn it.
func TestHostAgreesWithOtherSources(t *testing.T) {
	h, err := ReadHost()
	if err != nil {
		t.Fatal(err)
	}
	uname := func(flag string) string {
		out, err := exec.Command("uname", flag).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	for _, tt := range []struct{ fact, got, want string }{
		{"name", h.Name, uname("-n")},
		{"kernel", h.Kernel, uname("-r")},
		{"arch", h.Arch, uname("-m")},
		{"allowed CPUs", h.CPUsAllowed, statusField(t, "Cpus_allowed_list")},
		{"online CPUs", strconv.Itoa(h.CPUs), strconv.Itoa(countCPUs(t, text("/sys/devices/system/cpu/online")))},
		{"boot id", h.BootID, text("/proc/sys/kernel/random/boot_id")},
		{"clock", h.Clock, text("/sys/devices/system/clocksource/clocksource0/current_clocksource")},
		{"pid namespace", h.PIDNamespace, linkTo(t, "/proc/self/ns/pid")},
		{"uid", strconv.Itoa(h.UID), strings.Fields(statusField(t, "Uid"))[1]},
	} {
		if tt.got != tt.want || tt.got == "" {
			t.Errorf("%s: got %q, want %q", tt.fact, tt.got, tt.want)
		}
	}
	if osRelease := text("/etc/os-release"); osRelease != "" && !strings.Contains(osRelease, h.OS) || h.OS == "" {
		t.Errorf("os %q is not in os-release", h.OS)
	}
	if h.NTP != "synchronised" && h.NTP != "unsynchronised" {
		t.Errorf("ntp %q", h.NTP)
	}
}

func statusField(t *testing.T, name string) string {
	t.Helper()
	for line := range strings.Lines(text("/proc/self/status")) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no %s in /proc/self/status", name)
	return ""
}

func countCPUs(t *testing.T, list string) int {
	t.Helper()
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		n += b - a + 1
	}
	return n
}

func linkTo(t *testing.T, path string) string {
	t.Helper()
	target, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// onPinnedThread runs f on a thread that may use one CPU alone, and that is not the main thread: what pins that one
// pins the process as its observers see it. f must not end the test.
func onPinnedThread(cpu int, f func()) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: a pinned thread ends with its goroutine
		if unix.Gettid() == os.Getpid() {
			err = onPinnedThread(cpu, f) // the main thread waits here, so this takes another one
			runtime.UnlockOSThread()
			return
		}
		var one unix.CPUSet
		one.Set(cpu)
		if err = unix.SchedSetaffinity(0, &one); err == nil {
			f()
		}
	}()
	<-done
	return err
}

func TestAPinnedThreadDoesNotNarrowTheAllowedCPUs(t *testing.T) {
	all := allowedCPUs()
	if len(all) < 2 {
		t.Skip("one CPU can't be narrowed")
	}
	var got []int
	if err := onPinnedThread(all[len(all)-1], func() { got = allowedCPUs() }); err != nil {
		t.Fatal(err)
	}
	if cpuList(got) != cpuList(all) {
		t.Errorf("got %v, want %v", got, all)
	}
}

func TestAPinnedProcessSaysSo(t *testing.T) {
	all := allowedCPUs()
	last := all[len(all)-1]
	var h result.Host
	var spawnErr error
	err := onPinnedThread(last, func() {
		var c child
		if c, spawnErr = spawn("host", nil, nil, &h); spawnErr == nil {
			spawnErr = c.end()
		}
	})
	if err := errors.Join(err, spawnErr); err != nil {
		t.Fatal(err)
	}
	if h.CPUsAllowed != strconv.Itoa(last) || h.CPUs < len(all) {
		t.Errorf("allowed %q of %d, want %d of at least %d", h.CPUsAllowed, h.CPUs, last, len(all))
	}
}

func TestWithoutProcThereIsOneClearError(t *testing.T) {
	ownMounts(t)
	mount(t, "none", "/proc", "tmpfs", 0, "")
	_, hostErr := ReadHost()
	_, selfErr := Self()
	_, routeErr := ReadRoute("/")
	for _, err := range []error{hostErr, selfErr, routeErr} {
		if !errors.Is(err, ErrNoProc) || !strings.Contains(err.Error(), "/proc") || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	}
}

// TestAMaskedBootIDIsNotTheKernels does what systemd-nspawn and LXC do to their containers.
func TestAMaskedBootIDIsNotTheKernels(t *testing.T) {
	ownMounts(t)
	before, err := Self()
	if err != nil || before.BootID == "" {
		t.Fatalf("%+v, %v", before, err)
	}
	made := filepath.Join(t.TempDir(), "boot_id")
	if err := os.WriteFile(made, []byte("11111111-2222-4333-8444-555555555555\n"), 0o444); err != nil {
		t.Fatal(err)
	}
	mount(t, made, "/proc/sys/kernel/random/boot_id", "", unix.MS_BIND, "")
	h, err := ReadHost()
	if err != nil || h.BootID != "" {
		t.Errorf("boot id %q, %v; want none", h.BootID, err)
	}
	if gone, why := OwnerGone(Owner{Host: before.Host, BootID: before.BootID, PIDNamespace: before.PIDNamespace, PID: 1 << 30, StartTicks: 1}); gone {
		t.Errorf("gone, without a boot id to compare: %s", why)
	}
}

func TestAPIDNamespaceOfItsOwnIsAContainer(t *testing.T) {
	needRoot(t)
	var h result.Host
	start(t, "host", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, nil, &h)
	if h.Container == "" || h.PIDNamespace == namespace("pid") {
		t.Errorf("container %q, pid namespace %s", h.Container, h.PIDNamespace)
	}
}

func TestContainerSigns(t *testing.T) {
	initial := initialNamespaces
	own := []string{"ipc:[4026531839]", "uts:[4026532000]", "", "pid:[4026531836]"}
	for _, tt := range []struct {
		name  string
		signs containerSigns
		want  string
	}{
		{"plain host", containerSigns{namespaces: initial, pid: InitialPIDNamespace, rootType: "ext4"}, ""},
		{"virtual machine made from an image", containerSigns{marks: []string{"docker"}, namespaces: initial, pid: InitialPIDNamespace, rootType: "ext4"}, ""},
		{"nothing readable", containerSigns{namespaces: []string{"", "", ""}}, ""},
		{"docker", containerSigns{marks: []string{"docker"}, namespaces: own, pid: "pid:[4026532001]", rootType: "overlay"}, "docker"},
		{"docker --pid=host --uts=host --ipc=host", containerSigns{marks: []string{"docker"}, namespaces: initial, pid: InitialPIDNamespace, rootType: "overlay"}, "docker"},
		{"pod made by docker", containerSigns{marks: []string{"kubernetes", "docker"}, namespaces: own, pid: "pid:[4026532001]"}, "kubernetes"},
		{"system container", containerSigns{manager: "lxc", marks: []string{"docker"}, namespaces: own}, "lxc"},
		{"unmarked", containerSigns{namespaces: own, pid: "pid:[4026532001]"}, "other"},
		{"own host name alone", containerSigns{namespaces: own, pid: InitialPIDNamespace, rootType: "ext4"}, ""},
	} {
		if got := containerFrom(tt.signs); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestMachineSigns(t *testing.T) {
	x86, arm := unameText{machine: "x86_64"}, unameText{machine: "aarch64"}
	vm := []string{"fpu", "hypervisor"}
	for _, tt := range []struct {
		name  string
		signs machineSigns
		want  string
	}{
		{"bare metal", machineSigns{uname: x86, cpuFlags: []string{"fpu"}, clocks: []string{"tsc", "hpet"}, dmi: "Dell Inc.\nPowerEdge"}, ""},
		{"bare metal of a cloud", machineSigns{uname: x86, cpuFlags: []string{"fpu"}, dmi: "Google\nGoogle Compute Engine"}, ""},
		{"bare metal, ARM", machineSigns{uname: arm, cpuFlags: []string{"fp", "asimd"}}, ""},
		{"user-mode Linux on a virtual machine", machineSigns{uname: x86, cpuVendor: "User Mode Linux", cpuFlags: vm}, "uml"},
		{"WSL 2", machineSigns{uname: unameText{"5.15.90.1-microsoft-standard-WSL2", "", "x86_64"}, cpuFlags: vm}, "wsl"},
		{"WSL 1", machineSigns{uname: unameText{"4.4.0-19041-Microsoft", "", "x86_64"}}, "wsl"},
		{"gVisor", machineSigns{uname: unameText{"4.19.0-gvisor", "#1 SMP Sun Jan 10 15:06:54 PST 2016", "x86_64"}}, "gvisor"},
		{"gVisor, older", machineSigns{uname: unameText{"4.4.0", "#1 SMP Sun Jan 10 15:06:54 PST 2016", "x86_64"}}, "gvisor"},
		{"KVM", machineSigns{uname: x86, cpuFlags: vm, clocks: []string{"tsc", "kvm-clock"}, dmi: "QEMU"}, "kvm"},
		{"KVM, ARM", machineSigns{uname: arm, deviceTree: "linux,kvm"}, "kvm"},
		{"Hyper-V", machineSigns{uname: x86, cpuFlags: vm, clocks: []string{"hyperv_clocksource_tsc_page"}}, "microsoft"},
		{"Xen", machineSigns{uname: x86, cpuFlags: vm, hypervisor: "xen"}, "xen"},
		{"VMware", machineSigns{uname: x86, cpuFlags: vm, dmi: "VMware, Inc."}, "vmware"},
		{"QEMU without KVM", machineSigns{uname: x86, cpuFlags: vm, dmi: "QEMU\nStandard PC"}, "qemu"},
		{"unknown hypervisor", machineSigns{uname: x86, cpuFlags: vm}, "vm-other"},
	} {
		if got := virtualizationFrom(tt.signs); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestPrettyName(t *testing.T) {
	for text, want := range map[string]string{
		"NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n": "Debian GNU/Linux 12 (bookworm)",
		"PRETTY_NAME='a \\ b'":    `a \ b`,
		"PRETTY_NAME=\"a \\\"b\"": `a "b`,
		"PRETTY_NAME=Void":        "Void",
		"PRETTY_NAME=\"":          `"`,
		"PRETTY_NAME=":            "",
		"NOT_PRETTY_NAME=x":       "",
		"":                        "",
	} {
		if got := prettyName(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestCPUList(t *testing.T) {
	for _, tt := range []struct {
		cpus []int
		want string
	}{
		{nil, ""}, {[]int{0}, "0"}, {[]int{0, 1}, "0-1"}, {[]int{0, 2}, "0,2"}, {[]int{0, 1, 2, 3, 8, 10, 11}, "0-3,8,10-11"},
	} {
		if got := cpuList(tt.cpus); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.cpus, got, tt.want)
		}
	}
}
