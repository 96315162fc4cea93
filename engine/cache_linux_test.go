package engine

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// cachedNode lets the kernel keep what it knows of a file when it is opened
// again.
type cachedNode struct{ *fs.LoopbackNode }

func (n cachedNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return cachedNode{child.(*fs.LoopbackNode)}
}

// cachedFile has no more methods than it needs. With all of them the kernel
// would go to the file itself.
type cachedFile struct {
	fs.FileReader
	fs.FileReleaser
}

func (n cachedNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, _, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 || flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return f, 0, errno
	}
	return cachedFile{f.(fs.FileReader), f.(fs.FileReleaser)}, fuse.FOPEN_KEEP_CACHE, 0
}

// mountCached mounts the directory so that names and times are cached for an hour.
func mountCached(t *testing.T, dir string) string {
	t.Helper()
	root, err := fs.NewLoopbackRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	hour, at := time.Hour, t.TempDir()
	server, err := fs.Mount(at, cachedNode{root.(*fs.LoopbackNode)}, &fs.Options{AttrTimeout: &hour, EntryTimeout: &hour})
	if err != nil {
		cannot(t, "no FUSE here: "+err.Error())
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err, unix.Unmount(at, unix.MNT_DETACH))
		}
	})
	return at
}

// A mount may be told to rely on cached times for longer than the TTL. Over it
// a claim that is renewed over another mount must not look expired. The claim
// is of generation 2, as trying to create generation 1 refreshes what is cached
// of it.
func TestRenewalIsSeenPastCachedTimes(t *testing.T) {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		cannot(t, err.Error())
	}
	dir := t.TempDir()
	a := newTestGuard(t, mountCached(t, dir), Options{TTL: time.Second})
	b := newTestGuard(t, mountCached(t, dir), Options{TTL: time.Second})
	if err := claim(t, a, Key{"k"}, Won).Lease.Drop(); err != nil {
		t.Fatal(err)
	}
	_, err := a.Do(context.Background(), Key{"k"}, func(ctx context.Context, _ Token) error {
		for start := time.Now(); time.Since(start) < 2*time.Second; time.Sleep(50 * time.Millisecond) {
			out, err := b.Claim(ctx, Key{"k"})
			if out.State == Won { // an open file would keep the mount busy
				err = out.Lease.Drop()
			}
			if err != nil || out.State != Held {
				return fmt.Errorf("claim is %v, %v", out.State, err)
			}
		}
		return context.Cause(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}
