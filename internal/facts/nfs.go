package facts

import (
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/result"
)

// nfsView is what this process's network namespace knows of NFS.
type nfsView struct {
	volumes  string // /proc/fs/nfsfs/volumes: the superblocks mounted from this network namespace, and no others
	readable bool   // whether volumes could be read
	clientID string // /sys/fs/nfs/net/nfs_client/identifier; "(null)" when nobody set one
}

func isNFS(fstype string) bool { return fstype == "nfs" || fstype == "nfs4" }

// nfsFacts reads an NFS mount's superblock options, which nfs_show_options prints (fs/nfs/super.c). The client
// identifier is that of this network namespace, so it is left out for a mount made from another one.
func nfsFacts(r result.Route, view nfsView) *result.NFS {
	n := &result.NFS{
		Version:    optionValue(r.SuperOpts, "vers"),
		Server:     optionValue(r.SuperOpts, "addr"),
		ClientAddr: optionValue(r.SuperOpts, "clientaddr"),
		LocalLock:  optionValue(r.SuperOpts, "local_lock"),
		Foreign:    view.readable && !listsVolume(view.volumes, r.Superblock),
	}
	if !n.Foreign && view.clientID != "(null)" {
		n.ClientID = view.clientID
	}
	return n
}

// listsVolume looks for a superblock in the column DEV, the fourth:
//
//	NV SERVER   PORT DEV          FSID                              FSC
//	v4 0a4d0001  801 0:45         0:0                               no
func listsVolume(volumes, superblock string) bool {
	for line := range strings.Lines(volumes) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[3] == superblock {
			return true
		}
	}
	return false
}

// missingOptions are those of all that options does not name, sorted.
func missingOptions(options []string, all map[string]string) []string {
	var missing []string
	for name, value := range all {
		option := name
		if value != "" {
			option += "=" + value
		}
		if optionValue(options, name) == "" && !slices.Contains(options, option) {
			missing = append(missing, option)
		}
	}
	slices.Sort(missing)
	return missing
}
