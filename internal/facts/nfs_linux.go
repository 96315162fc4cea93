package facts

import (
	"os"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/claimbench/claimbench/internal/result"
)

func describeNFS(r *result.Route) {
	view := readNFSView()
	r.NFS = nfsFacts(*r, view)
	if !view.readable {
		r.NetNS = ""
	}
	r.SuperOpts = append(r.SuperOpts, missingOptions(r.SuperOpts, nfsOptions(*r))...)
}

func readNFSView() nfsView {
	volumes, err := os.ReadFile("/proc/fs/nfsfs/volumes")
	return nfsView{
		volumes:  string(volumes),
		readable: err == nil,
		clientID: text("/sys/fs/nfs/net/nfs_client/identifier"),
	}
}

// nfsOptions are the options that mountstats prints, which leaves out no default: the times of the attribute cache
// are always there. Two NFS mounts of one export stacked on one mount point can't be told apart by it; the later
// one is taken.
func nfsOptions(r result.Route) map[string]string {
	mountPoint := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(r.Mount)
	var options map[string]string
	for _, m := range mountStats() {
		nfs, ok := m.Stats.(*procfs.MountStatsNFS)
		if ok && m.Device == r.Source && m.Mount == mountPoint {
			options = nfs.Opts
		}
	}
	return options
}

func mountStats() []*procfs.Mount {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil
	}
	self, err := fs.Self()
	if err != nil {
		return nil
	}
	mounts, err := self.MountStats()
	if err != nil {
		return nil
	}
	return mounts
}
