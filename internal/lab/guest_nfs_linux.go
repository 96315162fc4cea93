package lab

import (
	"fmt"
	"os"
	"strings"
)

// serveNFS starts the kernel's NFS server, and what NFSv3 needs beside it: for the server and for each client an
// rpcbind and a statd of its own. Each pair has a /run of its own as well: rpcbind's socket there is not bound to a
// network namespace, and where the kernel finds one it registers every namespace's lock manager at that same rpcbind.
func (p *plan) serveNFS() error {
	if err := modules("sunrpc", "nfsd", "nfs", "nfsv3", "nfsv4", "lockd"); err != nil {
		return err
	}
	options := "rw,no_root_squash,no_subtree_check,fsid=0,insecure,sync"
	if p.UML.Share != "" {
		options += "," + p.UML.Share
	}
	if err := os.WriteFile("/run/exports", []byte(guestShare+" *("+options+")\n"), 0o644); err != nil {
		return err
	}
	err := guestRun(
		"cd /var/lib/nfs && mkdir -p v4recovery rpc_pipefs sm sm.bak nfsdcld && touch etab rmtab state"+
			" && mount -t rpc_pipefs lab rpc_pipefs && mount -t nfsd lab /proc/fs/nfsd && mount --bind /run/exports /etc/exports && nfsdcld",
		"unshare -m sh -c 'mount -t tmpfs lab /run && "+p.rpcServices()+"exportfs -ra && rpc.mountd"+p.onlyVersion4(" -N 2 -N 3")+" && "+p.startNFS()+"'",
	)
	if err != nil {
		return err
	}
	for n := 1; n <= p.UML.clients(); n++ {
		if err := p.nfsClient(n); err != nil {
			return err
		}
	}
	return nil
}

// startNFS is the command that starts the server's threads. The lease is short, so that what waits for one need not wait
// long.
func (p *plan) startNFS() string {
	return "rpc.nfsd " + p.onlyVersion4("-N 3 ") + "--lease-time 15 --grace-time 10 8"
}

// rpcServices are the commands that start what NFSv3 needs on each machine; NFSv4 needs nothing.
func (p *plan) rpcServices() string {
	if !p.version3() {
		return ""
	}
	return "mkdir /run/sm /run/sm.bak && rpcbind -w && rpc.statd --no-notify -P /run && "
}

// onlyVersion4 are arguments for servers that would register with rpcbind for the sake of older versions.
func (p *plan) onlyVersion4(args string) string {
	if p.version3() {
		return ""
	}
	return args
}

func (p *plan) version3() bool { return strings.Contains(p.UML.Options, "vers=3") }

// nfsClient makes a namespace a client: its identifier must be set before its first mount.
func (p *plan) nfsClient(n int) error {
	do := "true"
	if p.version3() {
		do = "mount -t tmpfs lab /run && " + p.rpcServices() + do
	}
	if len(p.UML.Identifiers) > 0 {
		do = "echo " + p.UML.Identifiers[n-1] + " >/sys/fs/nfs/net/nfs_client/identifier && " + do
	}
	return guestRun(fmt.Sprintf("ip netns exec n%d sh -c '%s'", n, do))
}
