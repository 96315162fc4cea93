package facts

import (
	"slices"
	"strings"
)

// machineSigns are what a process can see of the virtual machine it runs in, without privileges.
type machineSigns struct {
	uname      unameText
	cpuVendor  string   // of /proc/cpuinfo
	cpuFlags   []string // of /proc/cpuinfo
	hypervisor string   // /sys/hypervisor/type
	clocks     []string // clock sources that the kernel can choose from
	dmi        string   // vendor and product names of the firmware
	deviceTree string   // hypervisor/compatible of the device tree
}

// clockHypervisors: a paravirtual clock is offered by its hypervisor alone.
var clockHypervisors = []struct{ prefix, name string }{
	{"kvm-clock", "kvm"},
	{"hyperv_clocksource", "microsoft"},
	{"xen", "xen"},
}

// firmwareHypervisors are names that hypervisors write into DMI, and their names in systemd-detect-virt(1).
var firmwareHypervisors = []struct{ substring, name string }{
	{"VMware", "vmware"},
	{"VirtualBox", "oracle"},
	{"innotek GmbH", "oracle"},
	{"Parallels", "parallels"},
	{"BHYVE", "bhyve"},
	{"Apple Virtualization", "apple"},
	{"Google Compute Engine", "google"},
	{"Hyper-V", "microsoft"},
	{"Bochs", "bochs"},
	{"Xen", "xen"},
	{"KVM", "kvm"},
	{"QEMU", "qemu"},
}

// virtualizationFrom names what the kernel runs on in the words of systemd-detect-virt(1), or "" on bare metal.
// A virtual machine of an unknown kind is "vm-other". gvisor stands here, too: it is a kernel of its own, and
// what is measured in it is that kernel.
func virtualizationFrom(s machineSigns) string {
	if name := kernelKind(s); name != "" {
		return name
	}
	for _, c := range clockHypervisors {
		offered := func(clock string) bool { return strings.HasPrefix(clock, c.prefix) }
		if slices.ContainsFunc(s.clocks, offered) {
			return c.name
		}
	}
	// Clouds write the same DMI names into their bare-metal machines. On x86 CPUID settles it (the flag "hypervisor").
	if s.x86() && !slices.Contains(s.cpuFlags, "hypervisor") {
		return ""
	}
	return firmwareKind(s)
}

func (s machineSigns) x86() bool {
	return strings.HasSuffix(s.uname.machine, "86") || s.uname.machine == "x86_64"
}

func kernelKind(s machineSigns) string {
	release := s.uname.release
	switch {
	// gVisor's source fixes both.
	case strings.HasSuffix(release, "-gvisor"), s.uname.version == "#1 SMP Sun Jan 10 15:06:54 PST 2016":
		return "gvisor"
	case s.cpuVendor == "User Mode Linux":
		return "uml"
	case strings.Contains(release, "WSL"), strings.Contains(release, "Microsoft"):
		return "wsl"
	default:
		return s.hypervisor
	}
}

func firmwareKind(s machineSigns) string {
	for _, f := range firmwareHypervisors {
		if strings.Contains(s.dmi, f.substring) {
			return f.name
		}
	}
	switch {
	case strings.Contains(s.deviceTree, "kvm"):
		return "kvm"
	case s.deviceTree != "", s.x86():
		return "vm-other"
	default:
		return ""
	}
}

// unameText is the part of uname(2) that tells kernels apart.
type unameText struct{ release, version, machine string }
