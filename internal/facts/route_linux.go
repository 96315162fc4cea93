package facts

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
)

// ReadRoute describes the mount that path really lies on, as this process reaches it. A path that can't be looked
// up is an error that keeps the errno. A mount that this process's mountinfo does not list (one behind a chroot)
// is not: then everything about the mount is empty, and Scope takes the narrowest.
//
// Looking the path up triggers an automount. NetNS is left empty beside an NFS mount when the kernel would not say
// whether that mount belongs to it.
func ReadRoute(path string) (result.Route, error) {
	if err := needProc(); err != nil {
		return result.Route{}, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return result.Route{}, fmt.Errorf("route %s: %w", path, err)
	}
	mount, err := mountOf(abs)
	if err != nil {
		return result.Route{}, fmt.Errorf("route %s: %w", path, err)
	}
	figures, err := statfs(abs)
	if err != nil {
		return result.Route{}, fmt.Errorf("route %s: %w", path, err)
	}
	r := result.Route{Path: abs, NetNS: namespace("net"), Statfs: figures}
	if mount != nil {
		describeMount(&r, mount)
	}
	return r, nil
}

func describeMount(r *result.Route, m *mountinfo.Info) {
	r.Mount, r.FSType, r.Source, r.Root = m.Mountpoint, m.FSType, m.Source, m.Root
	r.Superblock = fmt.Sprintf("%d:%d", m.Major, m.Minor)
	r.Options, r.SuperOpts = splitOptions(m.Options), splitOptions(m.VFSOptions)
	if isNFS(r.FSType) {
		describeNFS(r)
	}
	r.OwnClient = ownClient(r.FSType, r.Source)
	r.LockOpts = lockOptions(r.FSType, r.Options, r.SuperOpts)
}

// mountOf finds the mount that an absolute path lies on, or nil when it is not among this process's mounts.
//
// The kernel names the mount itself by statx(2), STATX_MNT_ID, since Linux 5.8. Device numbers would not do: a
// btrfs subvolume has one of its own, and bind mounts share theirs.
func mountOf(path string) (*mountinfo.Info, error) {
	id, err := mountID(path)
	if err != nil && !errors.Is(err, errNoMountID) {
		return nil, err
	}
	mounts, listErr := mountinfo.GetMounts(nil)
	if listErr != nil {
		return nil, fmt.Errorf("read mountinfo: %w", listErr)
	}
	if err == nil {
		return mountByID(mounts, id), nil
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return mountByPath(mounts, resolved), nil
}

var errNoMountID = errors.New("statx gives no mount id")

// mountID follows symbolic links. ENOSYS is a kernel before 4.11, EPERM a seccomp filter older than statx.
func mountID(path string) (uint64, error) {
	var st unix.Statx_t
	err := retry(func() error { return unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &st) })
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return 0, errNoMountID
	case err != nil:
		return 0, fmt.Errorf("statx: %w", err)
	case st.Mask&unix.STATX_MNT_ID == 0:
		return 0, errNoMountID
	default:
		return st.Mnt_id, nil
	}
}

// statfs reads the figures of statfs(2). A filesystem without a fixed number of blocks or inodes says that it has
// none at all: what is left of none is not a figure.
func statfs(path string) (map[string]uint64, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(path, &st) }); err != nil {
		return nil, fmt.Errorf("statfs: %w", err)
	}
	figures := map[string]uint64{"type": uint64(uint32(st.Type)), "block_size": uint64(st.Bsize)}
	if st.Namelen > 0 {
		figures["name_max"] = uint64(st.Namelen)
	}
	if st.Blocks > 0 {
		figures["blocks_free"] = st.Bfree
	}
	if st.Files > 0 {
		figures["inodes_free"] = st.Ffree
	}
	return figures, nil
}
