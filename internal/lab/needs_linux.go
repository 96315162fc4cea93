package lab

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Lacks says what this machine lacks to make a target, and what to do about it; nil is nothing.
func (t *Target) Lacks() error {
	var lacks []error
	if os.Geteuid() != 0 {
		lacks = append(lacks, errors.New("not root: mounts, loop devices and network namespaces need it"))
	}
	if err := t.lacksPrograms(); err != nil {
		lacks = append(lacks, err)
	}
	for _, f := range t.kernelFilesystems() {
		if !kernelHas(f) {
			lacks = append(lacks, fmt.Errorf("this kernel has no %s, and no module for it", f))
		}
	}
	for _, d := range t.devices() {
		if _, err := os.Stat(d); err != nil {
			lacks = append(lacks, fmt.Errorf("no %s in this kernel or container", d))
		}
	}
	return joinLine(lacks)
}

// joinLine joins errors in one line.
func joinLine(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	var words []string
	for _, e := range errs {
		words = append(words, e.Error())
	}
	return errors.New(strings.Join(words, "; "))
}

func (t *Target) lacksPrograms() error {
	var missing, packages, commands []string
	for _, name := range slices.Sorted(maps.Keys(t.needs())) {
		if _, err := os.Stat(program(name)); err == nil {
			continue
		}
		missing = append(missing, name)
		switch p := t.needs()[name]; {
		case strings.Contains(p, " "): // a command, of what Debian has no package of
			commands = append(commands, p)
		case !slices.Contains(packages, p):
			packages = append(packages, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if len(packages) > 0 {
		commands = slices.Insert(commands, 0, "apt-get install "+strings.Join(packages, " "))
	}
	return fmt.Errorf("no %s: %s", strings.Join(missing, ", "), strings.Join(commands, " && "))
}

// needs are the programs that the target names, and those of its builder.
func (t *Target) needs() map[string]string {
	all := map[string]string{}
	maps.Copy(all, t.Needs)
	if t.UML != nil {
		maps.Copy(all, t.UML.needs())
	}
	if t.ownNetwork() {
		all["nsenter"] = "util-linux"
	}
	return all
}

// program is where a program is; system programs are often not on the PATH.
func program(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

func (t *Target) kernelFilesystems() []string {
	var all []string
	if t.Disk != nil {
		all = append(all, t.Disk.Type)
	}
	if t.Overlay != nil {
		all = append(all, "overlay")
	}
	return all
}

// kernelHas looks for a filesystem in the running kernel, and for a module of it.
func kernelHas(fstype string) bool {
	list, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return false
	}
	if slices.Contains(strings.Fields(string(list)), fstype) {
		return true
	}
	return exec.Command(program("modprobe"), "-n", "-q", fstype).Run() == nil
}

func (t *Target) devices() []string {
	var all []string
	if t.Disk != nil && len(t.Disk.Mkfs) > 0 {
		all = append(all, "/dev/loop-control")
	}
	if t.FUSE != nil {
		all = append(all, "/dev/fuse")
	}
	if t.UML != nil && t.UML.Hosts > 0 {
		all = append(all, "/dev/net/tun")
	}
	return all
}
