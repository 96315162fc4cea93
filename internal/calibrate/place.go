package calibrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/faultfs"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// smallBench does little, and enough to see what is planted.
func smallBench(n int) probes.Bench {
	return probes.Bench{
		Scope: result.ScopeProcess, Contenders: []int{n}, Rounds: 400, Time: 300 * time.Millisecond, Spare: 2 * time.Second,
		ScanShare: 0.25, ColdRounds: 8, ColdPause: time.Millisecond, MinProof: 20, HoldWait: 3 * time.Second,
	}
}

// inside takes the contenders to a fresh directory, and removes it afterwards.
func (r *run) inside(name string, dirs []string, do func()) error {
	r.rooms++
	name = fmt.Sprintf("%s-%d", name, r.rooms)
	if err := os.Mkdir(filepath.Join(dirs[0], name), 0o777); err != nil {
		return err
	}
	fresh := make([]string, len(dirs))
	for i, d := range dirs {
		fresh[i] = filepath.Join(d, name)
	}
	err := r.line.Enter(r.ctx, fresh...)
	if err == nil {
		do()
	}
	return errors.Join(err, r.leave(fresh[0]))
}

// leave takes the contenders out of a directory that is no longer needed.
func (r *run) leave(dir string) error {
	return errors.Join(r.line.Enter(context.WithoutCancel(r.ctx), "/"), os.RemoveAll(dir))
}

// A ground is what was mounted: the directories to race in, and how to take it away.
type ground struct {
	back string // the directory that faulty mounts show, without the faults
	dirs []string
	undo []func() error
}

// close takes away what was mounted, the last first.
func (r *run) close(g *ground) error {
	err := r.line.Enter(context.WithoutCancel(r.ctx), "/")
	for i := len(g.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, g.undo[i]())
	}
	return err
}

// dir makes a directory for a mount.
func (r *run) dir(g *ground) (string, error) {
	r.rooms++
	dir := filepath.Join(r.place, fmt.Sprintf("m%d", r.rooms))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	g.undo = append(g.undo, func() error { return os.Remove(dir) })
	return dir, nil
}

// mount mounts in a directory of its own.
func (r *run) mount(g *ground, fstype, options string) (string, error) {
	dir, err := r.dir(g)
	if err != nil {
		return "", err
	}
	if err := unix.Mount("claimbench", dir, fstype, 0, options); err != nil {
		return "", fmt.Errorf("mount %s on %s: %w", fstype, dir, err)
	}
	g.undo = append(g.undo, func() error { return unmount(dir) })
	return dir, nil
}

// unmount waits a moment for processes that are just ending. What is still in use then is detached.
func unmount(dir string) error {
	err := unix.Unmount(dir, 0)
	for until := time.Now().Add(2 * time.Second); errors.Is(err, unix.EBUSY) && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
		err = unix.Unmount(dir, 0)
	}
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(dir, unix.MNT_DETACH)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}

// faulty mounts a share with faults, once or several times, over a tmpfs. After an error nothing is left.
func (r *run) faulty(size string, mounts int, faults string) (g *ground, err error) {
	g = new(ground)
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close(g))
		}
	}()
	planted, err := faultfs.Parse(faults)
	if err != nil {
		return g, err
	}
	if g.back, err = r.mount(g, "tmpfs", "mode=0755,size="+size); err != nil {
		return g, err
	}
	share, err := faultfs.New(g.back, uint64(r.nextSeed()), planted...)
	if err != nil {
		return g, err
	}
	g.undo = append(g.undo, share.Close)
	for range max(1, mounts) {
		at, err := r.dir(g)
		if err != nil {
			return g, err
		}
		// The directory is removed when the share is closed.
		g.undo[len(g.undo)-1], g.undo[len(g.undo)-2] = g.undo[len(g.undo)-2], g.undo[len(g.undo)-1]
		if err := share.Mount(at); err != nil {
			return g, err
		}
		g.dirs = append(g.dirs, at)
	}
	return g, nil
}

// scopeOf is how far apart contenders over so many mounts of one share are.
func scopeOf(mounts int) result.Scope {
	if mounts > 1 {
		return result.ScopeMount
	}
	return result.ScopeProcess
}

// mountRefused says why nothing can be mounted; "" is that it can be.
func mountRefused() string {
	dir, err := os.MkdirTemp("", "claimbench-calibrate-")
	if err != nil {
		return err.Error()
	}
	defer os.Remove(dir)
	if err := unix.Mount("claimbench", dir, "tmpfs", 0, ""); err != nil {
		return "mounting is refused: " + err.Error()
	}
	if err := unmount(dir); err != nil {
		return err.Error()
	}
	return ""
}

// command runs a program of the system's.
func (r *run) command(name string, args ...string) error {
	if out, err := exec.CommandContext(r.ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, firstLine(string(out)))
	}
	return nil
}
