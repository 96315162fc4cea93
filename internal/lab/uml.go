package lab

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A UML target is a share that is served and mounted within one kernel of its own, User-mode Linux: a process of this
// machine, which has the machine's files to read, and no network but its own. The server is in its first network
// namespace; clients are in others, behind a bridge.
type UML struct {
	Server      string   `yaml:"server"`      // one of servers
	Share       string   `yaml:"share"`       // more options of the export (nfs) or lines of the share (smb)
	Options     string   `yaml:"options"`     // of every mount
	Mounts      int      `yaml:"mounts"`      // 1 or 2
	Clients     int      `yaml:"clients"`     // network namespaces to mount from; 0 is 1
	Hosts       int      `yaml:"hosts"`       // instead of these two: kernels that mount it once each, while one more serves it
	Clones      bool     `yaml:"clones"`      // the hosts have one name and one machine id
	Together    bool     `yaml:"together"`    // the hosts boot at one instant, as clones do in any case
	Identifiers []string `yaml:"identifiers"` // nfs_client/identifier of each
	Overlay     string   `yaml:"overlay"`     // lower: an overlay over the share, with its upper layer in memory
	Faults      []Fault  `yaml:"faults"`
	MemMiB      int      `yaml:"mem_mib"`
}

// servers are the programs that each kind of server and its clients need, with their Debian packages.
var servers = map[string]map[string]string{
	"nfs": {"rpc.nfsd": "nfs-kernel-server", "mount.nfs": "nfs-common", "rpc.statd": "nfs-common", "rpcbind": "rpcbind"},
	"smb": {"smbd": "samba", "mount.cifs": "cifs-utils"},
	"9p":  {"diod": "diod"},
}

func (u *UML) validate() error {
	switch {
	case servers[u.Server] == nil:
		return fmt.Errorf("server %q is none; there are %s", u.Server, strings.Join(slices.Sorted(maps.Keys(servers)), ", "))
	case u.Hosts != 0:
		return u.validateHosts()
	case u.Clones, u.Together:
		return errors.New("clones, or what boots together, are hosts, of which there are none")
	case u.Mounts < 1 || u.Mounts > 2:
		return errors.New("mounts must be 1 or 2")
	case u.Clients < 0 || u.Clients > u.Mounts:
		return errors.New("clients must not be more than mounts")
	case len(u.Identifiers) > 0 && len(u.Identifiers) != u.clients():
		return errors.New("identifiers must be one for each client")
	case !slices.Contains([]string{"", "lower"}, u.Overlay):
		return fmt.Errorf("overlay %q is none; there is lower", u.Overlay)
	}
	return u.validateFaults()
}

func (u *UML) validateFaults() error {
	for _, f := range u.Faults {
		if (f.Kind == "restart" || f.Kind == "reboot" || f.Kind == "lost-reply") && u.Server != "nfs" {
			return fmt.Errorf("fault %q: only of nfs servers", f)
		}
		if (f.Kind == "reboot" || f.Kind == "death") && u.Hosts == 0 {
			return fmt.Errorf("fault %q: with hosts only, which are kernels of their own", f)
		}
		if u.disk() && f.within() {
			return fmt.Errorf("fault %q: not beside reboot, which would end the server in the middle of it", f)
		}
	}
	return nil
}

const mostHosts = 8

// validateHosts is about several kernels, which leave some of the rest no sense.
func (u *UML) validateHosts() error {
	switch {
	case u.Hosts < 2 || u.Hosts > mostHosts:
		return fmt.Errorf("hosts must be 2 to %d", mostHosts)
	case u.Mounts != 0 || u.Clients != 0 || len(u.Identifiers) > 0 || u.Overlay != "":
		return errors.New("hosts mount the share once each, so that there are no mounts, clients, identifiers or overlay to name")
	}
	return u.validateFaults()
}

// clients is how many there are in the server's kernel.
func (u *UML) clients() int {
	if u.Hosts > 0 {
		return 0
	}
	return max(1, u.Clients)
}

// disk says that what the server keeps has to survive it.
func (u *UML) disk() bool {
	return slices.ContainsFunc(u.Faults, func(f Fault) bool { return f.Kind == "reboot" })
}

// nodeName is what the lab calls one of several kernels.
func (u *UML) nodeName(node int) string {
	if node == 0 {
		return "server"
	}
	return fmt.Sprintf("client-%d", node)
}

// hostName is what it calls itself.
func (u *UML) hostName(node int) string {
	if node > 0 && u.Clones {
		return "clone"
	}
	return u.nodeName(node)
}

func (u *UML) needs() map[string]string {
	all := map[string]string{"linux.uml": "user-mode-linux", "ip": "iproute2", "modprobe": "kmod", "nsenter": "util-linux"}
	maps.Copy(all, servers[u.Server])
	if u.Hosts > 0 {
		all["unshare"] = "util-linux"
	}
	if u.disk() {
		all["mkfs.ext4"] = "e2fsprogs"
	}
	return all
}

// A plan is what a guest is told: what to make, and what to run in it.
type plan struct {
	Target string
	UML    UML
	Dir    string   // the scratch directory, by its path on the host
	Survey []string // the arguments of claimbench, but for the routes
	Shell  bool     // a shell on the console instead
	Node   int      // which of several kernels this is: 0 is the server
}

// The names of the files in a scratch directory that host and guest share.
const (
	binaryName  = "claimbench"
	diskName    = "disk.img" // of a server that reboots
	initName    = "init"     // what the guest's kernel starts
	planName    = "plan.json"
	stateName   = "state"       // one word: how far the guest is
	failureName = "failure"     // one line: why it gave up
	consoleName = "console.log" // what its kernel and its programs say
	resultName  = "result.json"
	surveyLog   = "survey.log"
	joinLog     = "join.log"
	faultLog    = "faults.log" // what went wrong on purpose, and when
	faultTimes  = "faults.json"
	configName  = "survey.yaml"
)

// GuestVariable is the kernel parameter, and so the environment variable of init, that names the scratch directory.
const GuestVariable = "claimbench_lab"

// The words of the state file.
const (
	stateUp        = "up"        // the guest's init runs
	stateSurveying = "surveying" // everything is mounted
	stateDone      = "done"
)
