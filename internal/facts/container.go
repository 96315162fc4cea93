package facts

import "slices"

// containerSigns are what a process can see of the container it runs in.
type containerSigns struct {
	manager    string   // written by systemd or by the engine for the container's init: the engine's own name
	marks      []string // names of the engines whose mark is there, in the order of engines
	namespaces []string // of the kinds in initialNamespaces, as namespaces(7) prints them; "" where unreadable
	pid        string   // the pid namespace among them
	rootType   string   // filesystem type of /
}

// An engine is recognised by a file or an environment variable that it puts into its containers.
type engine struct {
	name  string
	files []string
	env   string
}

// engines lists the outermost first: a Kubernetes container made by docker has both marks.
var engines = []engine{
	{"kubernetes", []string{"/var/run/secrets/kubernetes.io/serviceaccount"}, "KUBERNETES_SERVICE_HOST"}, // kubernetes.io, "Accessing the API from a Pod"
	{"apptainer", []string{"/.singularity.d"}, "APPTAINER_CONTAINER"},                                    // apptainer.org, "Environment Overview"
	{"podman", []string{"/run/.containerenv"}, ""},                                                       // podman-run(1)
	{"docker", []string{"/.dockerenv"}, ""},                                                              // moby, daemon/initlayer
}

// InitialPIDNamespace is the kernel's own, by whose thread ids it goes: PROC_PID_INIT_INO, 0xEFFFFFFC.
const InitialPIDNamespace = "pid:[4026531836]"

// initialNamespaces are those that the kernel boots with. Their inode numbers are fixed (include/linux/proc_ns.h,
// since Linux 3.8; cgroup since 4.6).
var initialNamespaces = []string{
	"ipc:[4026531839]",
	"uts:[4026531838]",
	"user:[4026531837]",
	InitialPIDNamespace,
	"cgroup:[4026531835]",
}

// containerFrom names the container engine, or "other" for a pid namespace of its own without an engine's mark,
// or "" on a plain host. Marks alone are not believed: a virtual machine whose disk was made from a container
// image carries the image's marks. They count only beside a namespace or a root filesystem that plain hosts do
// not have.
func containerFrom(s containerSigns) string {
	switch {
	case s.manager != "":
		return s.manager
	case len(s.marks) > 0 && s.confined():
		return s.marks[0]
	case foreignNamespace(s.pid):
		return "other"
	default:
		return ""
	}
}

func (s containerSigns) confined() bool {
	return slices.ContainsFunc(s.namespaces, foreignNamespace) ||
		slices.Contains([]string{"overlay", "fuse.fuse-overlayfs", "squashfs", "fuse.squashfuse"}, s.rootType)
}

func foreignNamespace(name string) bool {
	return name != "" && !slices.Contains(initialNamespaces, name)
}
