package facts

import "fmt"

// A candidate is a directory that could be surveyed.
type candidate struct {
	name       string // what the user calls it
	path       string
	fstype     string
	superblock string
	problem    string // why it can't be surveyed, "" if it can
}

// pseudoFilesystems hold the kernel's state, not files. filesystems(5), /proc/filesystems.
var pseudoFilesystems = map[string]bool{
	"autofs": true, "binder": true, "binfmt_misc": true, "bpf": true, "cgroup": true, "cgroup2": true,
	"configfs": true, "debugfs": true, "devpts": true, "devtmpfs": true, "efivarfs": true, "fusectl": true,
	"hugetlbfs": true, "mqueue": true, "nfsd": true, "nsfs": true, "proc": true, "pstore": true, "resctrl": true,
	"rpc_pipefs": true, "securityfs": true, "selinuxfs": true, "smackfs": true, "sysfs": true, "tracefs": true,
}

// chooseTargets keeps one directory of each filesystem, in their order, and says why it left out the others.
func chooseTargets(candidates []candidate) (targets, skipped []string) {
	chosen := map[string]string{}
	for _, c := range candidates {
		first, seen := chosen[c.superblock]
		switch {
		case c.problem != "":
			skipped = append(skipped, c.name+": "+c.problem)
		case pseudoFilesystems[c.fstype]:
			skipped = append(skipped, fmt.Sprintf("%s: %s is no filesystem for files", c.name, c.fstype))
		case seen && c.superblock != "":
			skipped = append(skipped, fmt.Sprintf("%s: on the same filesystem as %s (%s)", c.name, first, c.superblock))
		default:
			chosen[c.superblock] = c.path
			targets = append(targets, c.path)
		}
	}
	return targets, skipped
}
