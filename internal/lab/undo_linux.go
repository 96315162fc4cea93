package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// undo makes what the entry tells of not be there; that it never was is no error. all are the entries of its ledger.
func (e Entry) undo(all []Entry) error {
	switch e.Kind {
	case kindDir:
		return removeDir(e.Path)
	case kindMount:
		return unmount(e.Path, all)
	case kindLoop:
		return detachLoop(e.Path)
	case kindProcesses:
		return end(func() ([]int, error) { return processesMarked(e.Mark) })
	case kindGroup:
		return end(func() ([]int, error) { return processesOf(e.PGID, e.Path, e.Mark) })
	}
	return fmt.Errorf("ledger entry of unknown kind %q; a newer claimbench has written it", e.Kind)
}

// removeDir never reaches into another filesystem: while something is mounted below, it refuses.
func removeDir(path string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(path))
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%s: %s is still mounted", path, mounts[0].Mountpoint)
	}
	return os.RemoveAll(path)
}

const patience = 3 * time.Second

// unmount waits a moment for what keeps the mount busy, then ends the ledger's processes, then detaches it.
func unmount(path string, all []Entry) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // not mounted, or not made
			return nil
		case err == nil: // perhaps another one lies below
			continue
		case !errors.Is(err, unix.EBUSY):
			return fmt.Errorf("unmount %s: %w", path, err)
		}
		if time.Since(began) > patience {
			break
		}
	}
	for _, e := range all {
		if e.Kind == kindProcesses || e.Kind == kindGroup {
			if err := e.undo(all); err != nil {
				return err
			}
		}
	}
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) { // a program that served it has unmounted it when it was ended
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return nil
}

// end ends the processes that find finds, politely first.
func end(find func() ([]int, error)) error {
	began := time.Now()
	for {
		pids, err := find()
		if err != nil || len(pids) == 0 {
			return err
		}
		signal := unix.SIGTERM
		if time.Since(began) > patience {
			signal = unix.SIGKILL
		}
		if time.Since(began) > 4*patience {
			return fmt.Errorf("processes %v do not end: they wait for a filesystem that hangs", pids)
		}
		for _, pid := range pids {
			unix.Kill(pid, signal) // ESRCH: it has ended meanwhile
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// processesMarked are the processes in whose environment, as it was when they began, the mark stands, and those in the
// process groups that such a process leads. The leader is the last one: without it the others would not be found.
func processesMarked(mark string) ([]int, error) {
	leaders := map[int]bool{}
	marked, err := processes(func(pid int) bool {
		if !hasMark(pid, mark) {
			return false
		}
		if g, err := unix.Getpgid(pid); err == nil && g == pid {
			leaders[pid] = true
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	led, err := processes(func(pid int) bool {
		g, err := unix.Getpgid(pid)
		return err == nil && leaders[g]
	})
	all := slices.Concat(marked, led)
	slices.Sort(all)
	all = slices.Compact(all)
	if others := slices.DeleteFunc(slices.Clone(all), func(pid int) bool { return leaders[pid] }); len(others) > 0 {
		return others, err
	}
	return all, err
}

func hasMark(pid int, mark string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.Contains(strings.Split(string(environ), "\x00"), MarkVariable+"="+mark)
}

// processesOf are those of a process group that run a program. The group's number may be another's by now: a leader that
// lives has the mark, or runs the program itself, where the group is the one that was meant.
func processesOf(pgid int, program, mark string) ([]int, error) {
	if alive(pgid) && !hasMark(pgid, mark) && !runs(pgid, program) {
		return nil, nil
	}
	return processes(func(pid int) bool {
		g, err := unix.Getpgid(pid)
		return err == nil && g == pgid && runs(pid, program)
	})
}

func runs(pid int, program string) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && exe == program
}

// processes are those that are no zombies and that belong.
func processes(belongs func(pid int) bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscanf(e.Name(), "%d", &pid); err == nil && pid != os.Getpid() && alive(pid) && belongs(pid) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(stat), ") ")
	return ok && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// detachLoop frees the loop device of an image.
func detachLoop(image string) error {
	devices, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return err
	}
	for _, d := range devices {
		backing, err := os.ReadFile(d)
		if err != nil || strings.TrimSuffix(string(backing), "\n") != image {
			continue
		}
		device := "/dev/" + strings.Split(d, "/")[3]
		f, err := os.Open(device)
		if err != nil {
			return err
		}
		err = unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0)
		if err := errors.Join(err, f.Close()); err != nil && !errors.Is(err, unix.ENXIO) {
			return fmt.Errorf("free %s: %w", device, err)
		}
	}
	return nil
}
