package faultfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Sweep detaches the mounts of this package whose servers are dead, and says where they were. What waits for an answer
// there gets an error first. No mount of another program is touched, nor one that a living process serves; a dead
// mount with another program's in it stays, which is an error.
func Sweep() (swept []string, err error) {
	all, err := mountTable()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, m := range all {
		if !m.abandoned() {
			continue
		}
		done, err := sweep(m.at)
		if err != nil {
			errs = append(errs, fmt.Errorf("sweep %s: %w", m.at, err))
		}
		if done {
			swept = append(swept, m.at)
		}
	}
	return swept, errors.Join(errs...)
}

// sweep detaches what is mounted at a path, if that is an abandoned mount. The table was read a while ago: what is
// there now is held fast, and looked at again.
func sweep(at string) (done bool, err error) {
	fd, err := unix.Open(at, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, ignore(err, unix.ENOENT, unix.ENOTCONN) // gone, or inside of one that was swept
	}
	defer unix.Close(fd)
	id, err := mountOf(fd)
	if err != nil {
		return false, err
	}
	all, err := mountTable()
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(all, func(m mounted) bool { return m.id == id })
	if i < 0 || !all[i].abandoned() {
		return false, nil
	}
	aborted := abort(all[i].minor)
	if other, there := foreign(all, id); there {
		return false, errors.Join(aborted, fmt.Errorf("%s is mounted in it, and is another program's", other))
	}
	err = unix.Unmount(path(fd), unix.MNT_DETACH)
	return err == nil, errors.Join(aborted, err)
}

// foreign finds a mount below that is not abandoned.
func foreign(all []mounted, top int) (at string, there bool) {
	for _, m := range all {
		if m.parent == top && m.id != top {
			if !m.abandoned() {
				return m.at, true
			}
			if at, there := foreign(all, m.id); there {
				return at, true
			}
		}
	}
	return "", false
}

// abort ends a connection of which the server's end is still open: the calls that wait for it fail. Unmounting would
// leave them waiting.
func abort(minor uint32) error {
	control := "/sys/fs/fuse/connections"
	name := filepath.Join(control, strconv.Itoa(int(minor)), "abort")
	if _, err := os.Stat(name); err == nil {
		return os.WriteFile(name, []byte("1"), 0)
	}
	dir, err := os.MkdirTemp("", "faultfs-control-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := unix.Mount("fusectl", dir, "fusectl", 0, ""); err != nil {
		return fmt.Errorf("mount fusectl: %w", err)
	}
	err = os.WriteFile(filepath.Join(dir, strconv.Itoa(int(minor)), "abort"), []byte("1"), 0)
	return errors.Join(ignore(err, unix.ENOENT), unix.Unmount(dir, unix.MNT_DETACH))
}

func ignore(err error, harmless ...unix.Errno) error {
	for _, errno := range harmless {
		if errors.Is(err, errno) {
			return nil
		}
	}
	return err
}

// mounted is a line of proc_pid_mountinfo(5).
type mounted struct {
	id, parent   int
	minor        uint32
	at           string
	kind, source string
}

// abandoned says that the mount is this package's, and its server dead.
func (m *mounted) abandoned() bool {
	id, ok := readID(m.source)
	return ok && m.kind == fstype && id.dead()
}

func mountTable() (all []mounted, err error) {
	const table = "/proc/self/mountinfo"
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		m, err := readMounted(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", table, line, err)
		}
		all = append(all, m)
	}
	return all, nil
}

func readMounted(line string) (m mounted, err error) {
	here, there, ok := strings.Cut(line, " - ")
	fields, kind := strings.Fields(here), strings.Fields(there)
	if !ok || len(fields) < 5 || len(kind) < 2 {
		return m, errors.New("not a mount")
	}
	var major uint32
	_, err = fmt.Sscanf(strings.Join(fields[:3], " "), "%d %d %d:%d", &m.id, &m.parent, &major, &m.minor)
	m.at, m.kind, m.source = unescape.Replace(fields[4]), kind[0], unescape.Replace(kind[1])
	return m, err
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mountOf is the number of the mount that a descriptor is in.
func mountOf(fd int) (id int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, errors.New("no mnt_id in fdinfo")
}
