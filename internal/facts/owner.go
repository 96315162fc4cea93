package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// An Owner identifies a process, so that somebody who finds what it left behind can say whether it is gone. It
// may be written to a shared directory: it holds no raw machine id.
type Owner struct {
	Host          string `json:"host"`
	BootID        string `json:"boot_id"`
	MachineID     string `json:"machine_id,omitempty"` // a hash that only equals itself; empty where the machine can't be told from a clone
	PIDNamespace  string `json:"pid_namespace"`
	TimeNamespace string `json:"time_namespace,omitempty"` // StartTicks are counted in it
	PID           int    `json:"pid"`
	StartTicks    uint64 `json:"start_ticks"` // starttime of proc_pid_stat(5)
}

// A sighting is what a look at a process id in one's own pid namespace showed.
type sighting struct {
	absent bool   // ESRCH: no process has that id
	ended  bool   // a zombie whose threads have all ended, which its parent has not collected
	ticks  uint64 // its start, 0 where unreadable
}

// provablyGone says whether o can't run any more, given who asks and what was seen at o.PID where that asker is.
//
// A process on the same boot and in the same pid namespace is gone when its id is free, is a zombie's, or
// has gone to a process that started at another time. Ids are unique in a namespace, and the inode number of a
// namespace that is reused names one whose processes have all ended.
//
// A process of an earlier boot of the same machine is gone. That it was the same machine takes more than the
// machine id, which all containers of an image and all clones of a disk share: the firmware's id must be equal,
// the host name, and both processes must be in the initial pid namespace, in which no ordinary container is.
//
// One case can't be told: copies of a running virtual machine, resumed from one snapshot under one host name.
// They agree in everything that a process can read.
func provablyGone(o, self Owner, seen sighting) (bool, string) {
	switch {
	case o.PID <= 0 || o.Host == "" || o.BootID == "" || o.PIDNamespace == "":
		return false, "its record does not identify a process"
	case self.BootID == "" || self.PIDNamespace == "":
		return false, "the boot id or pid namespace of this process can't be read"
	case o.Host != self.Host:
		return false, "it ran on host " + o.Host + ", and this is " + self.Host
	case o.BootID != self.BootID:
		return earlierBoot(o, self)
	case o.PIDNamespace != self.PIDNamespace:
		return false, "it ran in another pid namespace of this machine, where its process id can't be looked up"
	default:
		return sameNamespace(o, self, seen)
	}
}

func earlierBoot(o, self Owner) (bool, string) {
	switch {
	case o.MachineID == "" || self.MachineID == "":
		return false, "it ran under another boot id, and that it ran on this machine can't be shown: firmware or machine id is not readable"
	case o.MachineID != self.MachineID:
		return false, "it ran on another machine of the name " + o.Host
	case o.PIDNamespace != InitialPIDNamespace || self.PIDNamespace != InitialPIDNamespace:
		return false, "it ran under another boot id, and one of the two processes is in a container, whose ids are not those of a machine"
	default:
		return true, "this machine has been booted since"
	}
}

func sameNamespace(o, self Owner, seen sighting) (bool, string) {
	switch {
	case seen.absent:
		return true, "no process has its id any more"
	case o.StartTicks == 0 || seen.ticks == 0:
		return false, "a process has its id, and when one of the two started is not known"
	case o.TimeNamespace != self.TimeNamespace:
		return false, "a process has its id, and start times of different time namespaces can't be compared"
	case o.StartTicks != seen.ticks:
		return true, "its id has gone to a process that started at another time"
	case seen.ended:
		return true, "it has ended and waits for its parent to collect it"
	default:
		return false, "it is running"
	}
}

// hashMachine makes one opaque word of the machine id, machine-id(5), and the firmware's id of the machine. Neither
// can be had back from it, as machine-id(5) asks. It is "" unless both are real ids.
func hashMachine(machineID, productUUID string) string {
	if !isHexID(machineID) || !isHexID(productUUID) {
		return ""
	}
	sum := sha256.Sum256([]byte("claimbench owner\n" + machineID + "\n" + strings.ToLower(productUUID)))
	return hex.EncodeToString(sum[:])
}

// vendorUUID is what firmware carries whose maker never set an id, in a great many machines.
const vendorUUID = "03000200040005000006000700080009"

// isHexID reports whether s is 128 bits in hexadecimal, hyphens aside, that somebody has really drawn.
func isHexID(s string) bool {
	s = strings.ToLower(strings.ReplaceAll(s, "-", ""))
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 32 && strings.Trim(s, s[:1]) != "" && s != vendorUUID
}
