package facts

import (
	"strings"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/sysfs"
)

func readMachineSigns(uts unameText) machineSigns {
	s := machineSigns{
		uname:      uts,
		hypervisor: text("/sys/hypervisor/type"),
		dmi:        dmiNames(),
		deviceTree: text("/proc/device-tree/hypervisor/compatible"),
	}
	s.cpuVendor, s.cpuFlags = cpuVendorAndFlags()
	for _, c := range clockSources() {
		s.clocks = append(s.clocks, c.Available...)
	}
	return s
}

func cpuVendorAndFlags() (string, []string) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return "", nil
	}
	cpus, err := fs.CPUInfo()
	if err != nil || len(cpus) == 0 {
		return "", nil
	}
	return cpus[0].VendorID, cpus[0].Flags
}

// dmiNames joins the DMI names that hypervisors are known to fill in.
func dmiNames() string {
	fs, err := sysfs.NewDefaultFS()
	if err != nil {
		return ""
	}
	dmi, err := fs.DMIClass()
	if err != nil {
		return ""
	}
	var names []string
	for _, name := range []*string{dmi.SystemVendor, dmi.ProductName, dmi.ProductVersion, dmi.BoardVendor, dmi.BiosVendor} {
		if name != nil {
			names = append(names, *name)
		}
	}
	return strings.Join(names, "\n")
}
