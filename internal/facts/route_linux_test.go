package facts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
)

// route reads the route of path, and checks that walking the mount tree by path finds the mount that the kernel
// names, so that old kernels answer the same.
func route(t *testing.T, path string) result.Route {
	t.Helper()
	r, err := ReadRoute(path)
	if err != nil {
		t.Fatal(err)
	}
	mounts, err1 := mountinfo.GetMounts(nil)
	resolved, err2 := filepath.EvalSymlinks(path)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	m := mountByPath(mounts, resolved)
	if m == nil || m.Mountpoint != r.Mount || m.Source != r.Source || fmt.Sprintf("%d:%d", m.Major, m.Minor) != r.Superblock {
		t.Errorf("%s: the kernel says %s %s %s, the mount tree says %+v", path, r.Mount, r.Source, r.Superblock, m)
	}
	return r
}

// TestEveryMountPointIsFoundBothWays leaves out filesystems behind which a server can hang.
func TestEveryMountPointIsFoundBothWays(t *testing.T) {
	ownMounts(t)
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter(
		"proc", "sysfs", "devtmpfs", "devpts", "tmpfs", "cgroup", "cgroup2", "ext4", "xfs", "btrfs", "overlay"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		route(t, m.Mountpoint)
	}
	if len(mounts) < 2 {
		t.Errorf("only %d mounts", len(mounts))
	}
}

func TestOfStackedMountsTheTopmostCounts(t *testing.T) {
	ownMounts(t)
	dir := t.TempDir()
	mount(t, "below", dir, "tmpfs", 0, "")
	mount(t, "above", dir, "tmpfs", 0, "")
	if r := route(t, dir); r.Source != "above" || r.Mount != dir {
		t.Errorf("got %s on %s", r.Source, r.Mount)
	}
}

func TestALaterMountOnAParentHidesALongerMountPoint(t *testing.T) {
	ownMounts(t)
	dir := t.TempDir()
	deep := mkdir(t, dir+"/a/b")
	mount(t, "hidden", deep, "tmpfs", 0, "")
	if err := unix.Mount("cover", dir+"/a", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	mkdir(t, deep)
	if r := route(t, deep); r.Source != "cover" || r.Mount != dir+"/a" {
		t.Errorf("got %s on %s", r.Source, r.Mount)
	}
	if err := unix.Unmount(dir+"/a", unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if r := route(t, deep); r.Source != "hidden" {
		t.Errorf("uncovered: got %s", r.Source)
	}
}

func TestSymbolicLinksAreFollowed(t *testing.T) {
	ownMounts(t)
	dir := t.TempDir()
	mount(t, "behind", mkdir(t, dir+"/real"), "tmpfs", 0, "")
	mkdir(t, dir+"/real/work")
	if err := os.Symlink(dir+"/real/work", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	r := route(t, dir+"/link")
	if r.Source != "behind" || r.Path != dir+"/link" {
		t.Errorf("got %s for %s", r.Source, r.Path)
	}
}

func TestNamesAreUnescaped(t *testing.T) {
	ownMounts(t)
	dir := mkdir(t, t.TempDir()+"/two words, and a\\backslash")
	mount(t, "source with space", dir, "tmpfs", 0, "")
	if r := route(t, dir); r.Mount != dir || r.Source != "source with space" {
		t.Errorf("got %q on %q", r.Source, r.Mount)
	}
}

func TestAPrefixOfANameIsNotAParent(t *testing.T) {
	ownMounts(t)
	dir := t.TempDir()
	mount(t, "short", mkdir(t, dir+"/data"), "tmpfs", 0, "")
	if r := route(t, mkdir(t, dir+"/data2")); r.Source == "short" {
		t.Errorf("%s is said to lie on %s", r.Path, r.Mount)
	}
}

func TestBindMountsAreOneSuperblock(t *testing.T) {
	ownMounts(t)
	dir := t.TempDir()
	mount(t, "base", mkdir(t, dir+"/base"), "tmpfs", 0, "")
	mkdir(t, dir+"/base/part")
	mount(t, dir+"/base/part", mkdir(t, dir+"/a"), "", unix.MS_BIND, "")
	mount(t, dir+"/base/part", mkdir(t, dir+"/b"), "", unix.MS_BIND, "")
	a, b := route(t, dir+"/a"), route(t, dir+"/b")
	if a.Root != "/part" || a.Mount == b.Mount || a.Superblock != b.Superblock {
		t.Errorf("got %+v and %+v", a, b)
	}
	wantScope(t, result.ScopeProcess, []string{"one superblock"}, a, b)
}

func TestOverlaysThatShareAnUpperDirectoryAreTwoMounts(t *testing.T) {
	ownMounts(t)
	dir := t.TempDir()
	mount(t, "layers", dir, "tmpfs", 0, "")
	for _, d := range []string{"lower", "upper", "work1", "work2", "a", "b"} {
		mkdir(t, dir+"/"+d)
	}
	for _, n := range []string{"a:1", "b:2"} {
		name, work, _ := strings.Cut(n, ":")
		layers := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work%[2]s", dir, work)
		mount(t, "overlay", dir+"/"+name, "overlay", 0, layers)
	}
	if err := os.WriteFile(dir+"/a/nonce", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/b/nonce"); err != nil {
		t.Fatalf("the two overlays are not one directory: %v", err)
	}
	a, b := route(t, dir+"/a"), route(t, dir+"/b")
	wantScope(t, result.ScopeMount, []string{"share the upper directory " + dir + "/upper"}, a, b)
}

func TestMountOptions(t *testing.T) {
	ownMounts(t)
	dir := t.TempDir()
	mount(t, "none", dir, "tmpfs", unix.MS_NOSUID, "size=1m,nr_inodes=100")
	r := route(t, dir)
	if !slices.Contains(r.Options, "nosuid") || slices.Contains(r.SuperOpts, "nosuid") {
		t.Errorf("mount options %q, superblock options %q", r.Options, r.SuperOpts)
	}
	if !slices.Contains(r.SuperOpts, "size=1024k") || slices.Contains(r.Options, "size=1024k") {
		t.Errorf("mount options %q, superblock options %q", r.Options, r.SuperOpts)
	}
	if r.FSType != "tmpfs" || r.NetNS != namespace("net") || r.NFS != nil || r.LockOpts != nil || r.Host != "" {
		t.Errorf("got %+v", r)
	}
	want := map[string]uint64{"type": unix.TMPFS_MAGIC, "block_size": 4096, "name_max": 255, "blocks_free": 256, "inodes_free": 99}
	if fmt.Sprint(r.Statfs) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", r.Statfs, want)
	}
}

func TestWhatAFilesystemDoesNotCountIsAbsent(t *testing.T) {
	ownMounts(t)
	dir := t.TempDir()
	mount(t, "none", dir, "ramfs", 0, "")
	figures := route(t, dir).Statfs
	for _, name := range []string{"blocks_free", "inodes_free"} {
		if n, ok := figures[name]; ok {
			t.Errorf("ramfs counts nothing, and %s is %d", name, n)
		}
	}
	if figures["type"] != unix.RAMFS_MAGIC {
		t.Errorf("got %v", figures)
	}
}

func TestARouteThatIsNotThereKeepsItsErrno(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{file + "x": fs.ErrNotExist, file + "/x": unix.ENOTDIR} {
		_, err := ReadRoute(path)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
}

// TestAnUnlistedMountIsNotGuessed reaches a mount that mountinfo no longer lists, as one behind a chroot is not.
func TestAnUnlistedMountIsNotGuessed(t *testing.T) {
	ownMounts(t)
	dir := t.TempDir()
	if err := unix.Mount("detached", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	r, err := ReadRoute(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if r.Mount != "" || r.Superblock != "" || r.Statfs["type"] != unix.TMPFS_MAGIC {
		t.Errorf("got %+v", r)
	}
	wantScope(t, result.ScopeProcess, []string{"can't be told apart"}, r, route(t, dir))
}

func TestLockOptions(t *testing.T) {
	for _, tt := range []struct {
		fstype  string
		options string
		want    string
	}{
		{"nfs", "rw,vers=3,hard,nolock,local_lock=all,addr=10.77.0.1", "nolock,local_lock=all"},
		{"nfs", "rw,vers=3,local_lock=flock", "local_lock=flock"},
		{"nfs4", "rw,vers=4.2,local_lock=none", ""},
		{"cifs", "rw,vers=3.1.1,cache=strict,nounix,nobrl,forcemand", "nobrl,forcemand"},
		{"smb3", "rw,cache=loose", "cache=loose"},
		{"9p", "rw,cache=f,access=client,trans=tcp,version=9p2000.u", "cache=f,version=9p2000.u"},
		{"9p", "rw,cache=5,trans=virtio", ""},
		{"lustre", "rw,flock,user_xattr", ""},
		{"lustre", "rw,localflock", "localflock"},
		{"afs", "rw,flock=local", "flock=local"},
		{"afs", "rw,flock=strict", ""},
		{"fuse.unheard", "rw,user_id=0,noflock,noflock", "noflock"},
		{"ext4", "rw,cache=loose,local_lock", ""},
	} {
		got := strings.Join(lockOptions(tt.fstype, nil, splitOptions(tt.options)), ",")
		if got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.fstype, tt.options, got, tt.want)
		}
	}
}

func TestSplitOptions(t *testing.T) {
	got := splitOptions(`rw,lowerdir=/a\054b,,localflocks,`)
	if want := []string{"rw", `lowerdir=/a\054b`, "localflocks"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
