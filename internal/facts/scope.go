package facts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// Scope says how far apart the routes of one target are, and by what evidence. host is the machine of the routes
// that name no host, remote are the machines of those that do, by name.
//
// It is pure, and it takes for granted that the routes reach one directory, which something else has proved. It
// believes what the kernel and the mounts show and nothing that a user called them:
//
//   - one superblock is process, however many mounts show it;
//   - several superblocks are mount;
//   - NFS clients that provably differ are client;
//   - kernels with different boot ids are host. Different host names alone are not: two containers have those.
//
// Where that leaves a doubt the narrower scope is returned and why says what was not known. Of three routes and
// more the scope is that of the two that are farthest apart, since contenders on those two do span it; why also
// says which routes are closer, and that their contenders span less.
func Scope(host result.Host, routes []result.Route, remote ...result.Host) (scope result.Scope, why string) {
	switch len(routes) {
	case 0:
		return result.ScopeProcess, "no route"
	case 1:
		return result.ScopeProcess, "one route"
	}
	pairs := compareAll(machines{host, remote}, routes)
	widest := slices.MaxFunc(pairs, func(a, b relation) int { return width(a.scope) - width(b.scope) })
	sentences := []string{widest.sentence()}
	for _, p := range pairs {
		if width(p.scope) < width(widest.scope) {
			sentences = append(sentences, fmt.Sprintf("only %s: %s", p.scope, p.sentence()))
		}
	}
	return widest.scope, strings.Join(sentences, "; ")
}

// A relation is how far apart two routes are.
type relation struct {
	a, b  string // the names of the routes
	scope result.Scope
	why   string
}

func (r relation) sentence() string { return fmt.Sprintf("%s and %s %s", r.a, r.b, r.why) }

func width(s result.Scope) int {
	return slices.Index([]result.Scope{result.ScopeProcess, result.ScopeMount, result.ScopeClient, result.ScopeHost}, s)
}

// compareAll compares every two routes, except that of routes known to be on one superblock only the first meets
// the others.
func compareAll(m machines, routes []result.Route) []relation {
	var pairs []relation
	var represented []result.Route
	for _, b := range routes {
		same := slices.IndexFunc(represented, func(a result.Route) bool {
			return a.Superblock != "" && b.Superblock != "" && m.compare(a, b).scope == result.ScopeProcess
		})
		if same >= 0 {
			pairs = append(pairs, m.compare(represented[same], b))
			continue
		}
		for _, a := range represented {
			pairs = append(pairs, m.compare(a, b))
		}
		represented = append(represented, b)
	}
	return pairs
}

// machines knows the boot ids of the hosts that routes name.
type machines struct {
	local  result.Host
	remote []result.Host
}

// bootID is "" for a host that is not known, or whose name two machines with different boot ids carry.
func (m machines) bootID(name string) string {
	if name == "" {
		return m.local.BootID
	}
	id := ""
	for _, h := range m.remote {
		switch {
		case h.Name != name:
		case id != "" && h.BootID != id, h.BootID == "":
			return ""
		default:
			id = h.BootID
		}
	}
	return id
}

func (m machines) compare(a, b result.Route) relation {
	if a.Host == b.Host {
		return oneKernel(a, b)
	}
	bootA, bootB := m.bootID(a.Host), m.bootID(b.Host)
	switch {
	case bootA == "" || bootB == "":
		r := oneKernel(a, b)
		r.why += " (taken to be on one kernel: a boot id is not known)"
		return r
	case bootA != bootB:
		return relation{routeName(a), routeName(b), result.ScopeHost, "are on kernels with different boot ids"}
	default:
		return oneKernel(a, b)
	}
}

func routeName(r result.Route) string {
	if r.Host != "" {
		return r.Host + ":" + r.Path
	}
	return r.Path
}

// oneKernel compares routes on one kernel, where equal device numbers mean one superblock.
func oneKernel(a, b result.Route) relation {
	scope, why := result.ScopeMount, ""
	switch {
	case a.Superblock == "" || b.Superblock == "":
		scope, why = result.ScopeProcess, "can't be told apart: the mount of one is not known"
	case a.Superblock == b.Superblock:
		scope, why = result.ScopeProcess, "are one superblock, "+a.Superblock
	case a.NFS != nil && b.NFS != nil:
		scope, why = nfsClients(a, b)
	case a.OwnClient && b.OwnClient && a.FSType == b.FSType:
		scope, why = result.ScopeClient, fmt.Sprintf("are distinct %s clients: two superblocks, %s and %s, with a connection to the server each", a.FSType, a.Superblock, b.Superblock)
	default:
		why = "are two superblocks, " + a.Superblock + " and " + b.Superblock + ", " + share(a, b)
	}
	return relation{routeName(a), routeName(b), scope, why}
}

// share says what two superblocks on one kernel have in common.
func share(a, b result.Route) string {
	upper := optionValue(a.SuperOpts, "upperdir")
	switch {
	case isFUSE(a.FSType) || isFUSE(b.FSType):
		return "whose FUSE servers may be clients of their own, which no mount can show"
	case upper != "" && upper == optionValue(b.SuperOpts, "upperdir"):
		return "of overlays that share the upper directory " + upper
	case a.FSType == b.FSType && a.Source == b.Source:
		return "of one source, " + a.Source + "; whether they are two clients of it is not shown"
	default:
		return "of different sources; that they are one directory is not shown by the mounts"
	}
}

func isFUSE(fstype string) bool {
	return fstype == "fuse" || fstype == "fuseblk" || fstype == "virtiofs" || strings.HasPrefix(fstype, "fuse.")
}

// nfsClients compares two superblocks that are NFS mounts on one kernel.
//
// The kernel keeps one client for each network namespace, server address and minor version (nfs_match_client in
// fs/nfs/client.c), and mountinfo prints the address of the client that a mount really uses. So different
// addresses, and mounts made from different network namespaces, are different clients. The namespace of a process
// says where a mount was made only if the mount is not foreign to it. Client identifiers count between different
// namespaces alone: within one they only tell that it was changed between two readings.
func nfsClients(a, b result.Route) (result.Scope, string) {
	apart := a.NetNS != "" && b.NetNS != "" && a.NetNS != b.NetNS
	together := a.NetNS != "" && a.NetNS == b.NetNS
	switch {
	case differ(a.NFS.ClientAddr, b.NFS.ClientAddr):
		return result.ScopeClient, fmt.Sprintf("are distinct NFS clients, %s and %s%s", a.NFS.ClientAddr, b.NFS.ClientAddr, identity(a, b))
	case together && a.NFS.Foreign != b.NFS.Foreign:
		return result.ScopeClient, "are distinct NFS clients: one was mounted from another network namespace" + identity(a, b)
	case apart && !a.NFS.Foreign && !b.NFS.Foreign:
		return result.ScopeClient, "are distinct NFS clients, of two network namespaces" + identity(a, b)
	case !together && differ(a.NFS.ClientID, b.NFS.ClientID):
		return result.ScopeClient, "are distinct NFS clients, by their identifiers"
	case a.NFS.Foreign || b.NFS.Foreign || !together:
		return result.ScopeMount, "are two NFS superblocks, " + a.Superblock + " and " + b.Superblock + "; whether they are two clients is not shown"
	default:
		return result.ScopeMount, "are two NFS superblocks, " + a.Superblock + " and " + b.Superblock + ", of one network namespace and taken for one client"
	}
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

// identity adds the doubt that goes with NFSv4 clients whose identifier is unset or unknown: both then call
// themselves by the host name, and if that is one name the server takes them for one client that restarts
// (Documentation/filesystems/nfs/client-identifier.rst).
func identity(a, b result.Route) string {
	v4 := strings.HasPrefix(a.NFS.Version, "4") && strings.HasPrefix(b.NFS.Version, "4")
	if !v4 || differ(a.NFS.ClientID, b.NFS.ClientID) {
		return ""
	}
	return " (whether the server can tell them apart is not shown: set nfs_client/identifier in each)"
}
