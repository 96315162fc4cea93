package facts

import (
	"slices"
	"strings"
)

// A lockOption is a mount option after which a lock, or what is read under it, does not reach other clients.
type lockOption struct {
	fs     string // filesystem type; "" for any, also for filesystems not known here
	option string // as mountinfo prints it
}

var knownLockOptions = []lockOption{
	{"nfs", "nolock"},                 // nfs(5): no lock manager (versions 2 and 3), locks are local
	{"nfs", "local_lock=all"},         // nfs(5): flock and fcntl locks are local; printed for nolock as well
	{"nfs", "local_lock=flock"},       // nfs(5): flock locks are local
	{"nfs", "local_lock=posix"},       // nfs(5): fcntl locks are local
	{"cifs", "nobrl"},                 // mount.cifs(8): no byte range locks are sent to the server
	{"cifs", "forcemand"},             // mount.cifs(8), forcemandatorylock: mandatory SMB locks in place of POSIX ones
	{"cifs", "cache=loose"},           // mount.cifs(8): cached data is served beyond what oplocks allow
	{"cifs", "cache=singleclient"},    // fs/smb/client/fs_context.c: one client alone is assumed
	{"9p", "noextend"},                // net/9p/client.c, protocol 9P2000: v9fs_file_lock does nothing and returns 0
	{"9p", "version=9p2000.u"},        // net/9p/client.c: the same v9fs_file_lock
	{"9p", "cache=loose"},             // Documentation/filesystems/9p.rst: no consistency with other clients
	{"9p", "cache=fscache"},           // as loose, and kept on disk
	{"9p", "cache=f"},                 // fs/9p/v9fs.h, CACHE_SC_LOOSE: printed as hexadecimal bits since Linux 6.4
	{"9p", "cache=8f"},                // fs/9p/v9fs.h, CACHE_SC_FSCACHE
	{"lustre", "localflock"},          // mount.lustre(8): flock is local to the client
	{"lustre", "noflock"},             // mount.lustre(8): locks are refused with ENOSYS
	{"gfs2", "localflocks"},           // gfs2(5): the VFS does all locking, locally
	{"gfs2", "lockproto=lock_nolock"}, // gfs2(5): one node alone
	{"ocfs2", "localflocks"},          // Documentation/filesystems/ocfs2.rst: no cluster-aware flock
	{"orangefs", "local_lock"},        // fs/orangefs/super.c: locks are local to the client
	{"afs", "flock=local"},            // Documentation/filesystems/afs.rst: locks without the server
	{"afs", "flock=openafs"},          // Documentation/filesystems/afs.rst: byte range locks are local
	// The names above that mean one thing wherever they appear.
	{"", "nolock"},
	{"", "nolocks"},
	{"", "noflock"},
	{"", "localflock"},
	{"", "localflocks"},
	{"", "nobrl"},
}

// lockOptions picks, in their order and once each, those options that switch locks off or make them local.
func lockOptions(fstype string, options ...[]string) []string {
	var found []string
	for _, option := range slices.Concat(options...) {
		if isLockOption(fstype, option) && !slices.Contains(found, option) {
			found = append(found, option)
		}
	}
	return found
}

func isLockOption(fstype, option string) bool {
	return slices.ContainsFunc(knownLockOptions, func(known lockOption) bool {
		return known.option == option && (known.fs == "" || known.fs == family(fstype))
	})
}

// family folds the several names that one client has in mountinfo.
func family(fstype string) string {
	switch fstype {
	case "nfs4":
		return "nfs"
	case "smb3", "smbfs":
		return "cifs"
	default:
		return strings.TrimPrefix(fstype, "fuse.")
	}
}
