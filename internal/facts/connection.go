package facts

import (
	"regexp"
	"strings"
)

// ownClient reports whether a superblock is a client of its own to its server, as far as the kernel shows it. Every
// mount of 9p makes a session and a superblock (v9fs_mount in fs/9p/vfs_super.c). Mounts of SMB share a connection
// where they can.
func ownClient(fstype, source string) bool {
	switch fstype {
	case "9p":
		return true
	case "cifs", "smb3":
		return ownConnection(text("/proc/fs/cifs/DebugData"), source)
	}
	return false
}

var (
	smbConnection = regexp.MustCompile(`^\d+\) ConnectionId: `)
	smbShare      = regexp.MustCompile(`^\s+\d+\) (\\\\\S+) Mounts: (\d+) `)
)

// ownConnection reads the list of SMB connections, of all network namespaces: it is true if each connection that has
// the share serves a single mount of it, so that two superblocks of the share cannot be on one.
//
//  1. ConnectionId: 0x2 Hostname: 10.0.0.1
//     Shares:
//  0. IPC: \\10.0.0.1\IPC$ Mounts: 1 DevInfo: 0x0 ...
//  1. \\10.0.0.1\share Mounts: 1 DevInfo: 0x20 ...
func ownConnection(list, source string) bool {
	share := shareOf(source)
	found, here := false, 0
	for line := range strings.Lines(list) {
		if smbConnection.MatchString(line) {
			here = 0
			continue
		}
		m := smbShare.FindStringSubmatch(line)
		if m == nil || !strings.EqualFold(m[1], share) {
			continue
		}
		if here++; here > 1 || m[2] != "1" {
			return false
		}
		found = true
	}
	return found
}

// shareOf is what the list calls the share of //server/share/directory.
func shareOf(source string) string {
	parts := strings.Split(strings.TrimPrefix(source, "//"), "/")
	if len(parts) > 2 {
		parts = parts[:2]
	}
	return `\\` + strings.Join(parts, `\`)
}
