package faultfs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A serverID says which process serves a mount. A process number alone comes back, and means something else in another
// namespace. Its text is the source of the mount.
type serverID struct {
	pid   int
	start uint64 // of the process, in ticks since the boot
	space string // the namespace of its number
}

const idFormat = "faultfs:%d:%d:%s"

func (id serverID) String() string { return fmt.Sprintf(idFormat, id.pid, id.start, id.space) }

func self() (serverID, error) {
	pid := os.Getpid()
	start, _, err := processOf(pid)
	space, e := os.Readlink("/proc/self/ns/pid")
	return serverID{pid, start, space}, errors.Join(err, e)
}

// readID reads the source of a mount.
func readID(source string) (id serverID, ok bool) {
	_, err := fmt.Sscanf(source, idFormat, &id.pid, &id.start, &id.space)
	return id, err == nil && id.String() == source
}

// dead is said only where it is certain. A process of another namespace is none of those seen here.
func (id serverID) dead() bool {
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || space != id.space {
		return false
	}
	if unix.Kill(id.pid, 0) == unix.ESRCH {
		return true
	}
	start, ending, err := processOf(id.pid)
	return err == nil && (start != id.start || ending)
}

// exiting is PF_EXITING of linux/sched.h.
const exiting = 4

// processOf reads when a process has started, and whether it is over or about to be: one that was killed while it had
// a file open in its own mount stays in close(2), which waits for an answer from itself.
func processOf(pid int) (start uint64, ending bool, err error) {
	name := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false, err
	}
	const state, flags, starttime = 0, 6, 19 // of what comes after the name, in proc_pid_stat(5)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= starttime {
		return 0, false, fmt.Errorf("%s has %d fields", name, len(fields))
	}
	start, err = strconv.ParseUint(fields[starttime], 10, 64)
	has, e := strconv.ParseUint(fields[flags], 10, 64)
	return start, fields[state] == "Z" || fields[state] == "X" || has&exiting != 0, errors.Join(err, e)
}
