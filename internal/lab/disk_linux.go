package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

const imageMiB = 512

// makeDisk mounts the disk of a target.
func (s *Stand) makeDisk(ctx context.Context, d *Disk) error {
	if len(d.Mkfs) == 0 {
		return s.mount(s.disk, "claimbench-lab", d.Type, 0, d.Options)
	}
	image := filepath.Join(s.Dir, "image")
	if err := makeImage(image, int64(cmp.Or(d.SizeMiB, imageMiB))<<20); err != nil {
		return err
	}
	if err := s.run(ctx, append(slices.Clone(d.Mkfs), image)); err != nil {
		return err
	}
	if err := s.ledger.Note(Entry{Kind: kindLoop, Path: image}); err != nil {
		return err
	}
	device, err := attach(image)
	if err != nil {
		return err
	}
	defer device.Close()
	return s.mount(s.disk, device.Name(), d.Type, 0, d.Options)
}

// makeImage makes a sparse file, if there would be room for all of it.
func makeImage(path string, size int64) error {
	var st unix.Statfs_t
	dir := filepath.Dir(path)
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < size {
		return fmt.Errorf("%s: no space: %d MiB free, %d needed; name another directory with --scratch", dir, free>>20, size>>20)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// attach puts an image behind a free loop device. The kernel frees the device again when its last user has gone, which
// is the returned file until something is mounted from it.
func attach(image string) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w; loop devices are needed", err)
	}
	defer control.Close()
	backing, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	for range 20 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("a free loop device: %w", err)
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		config := &unix.LoopConfig{Fd: uint32(backing.Fd())}
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		copy(config.Info.File_name[:], image)
		err = unix.IoctlLoopConfigure(int(device.Fd()), config)
		if err == nil {
			return device, nil
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) { // another has taken this one in the meantime
			return nil, fmt.Errorf("loop device %s: %w", device.Name(), err)
		}
	}
	return nil, errors.New("no free loop device: others take each one first")
}
