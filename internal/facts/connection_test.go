package facts

import (
	"strings"
	"testing"

	"github.com/claimbench/claimbench/internal/result"
)

const connections = `Servers: 
1) ConnectionId: 0x2 Hostname: 10.0.0.1 
	Sessions: 
	1) Address: 10.0.0.1 Uses: 1 Capability: 0x300047	Session Status: 1 
	Shares: 
	0) IPC: \\10.0.0.1\IPC$ Mounts: 1 DevInfo: 0x0 Attributes: 0x0
	1) \\10.0.0.1\share Mounts: 1 DevInfo: 0x20 Attributes: 0x1006f
2) ConnectionId: 0x1 Hostname: 10.0.0.1 
	Shares: 
	0) IPC: \\10.0.0.1\IPC$ Mounts: 1 DevInfo: 0x0 Attributes: 0x0
	1) \\10.0.0.1\share Mounts: 1 DevInfo: 0x20 Attributes: 0x1006f
	2) \\10.0.0.1\other Mounts: 1 DevInfo: 0x20 Attributes: 0x1006f
`

func TestASuperblockOfSMBIsAClientOfItsOwnIfNoConnectionServesTwo(t *testing.T) {
	secondMount := strings.Replace(connections, `share Mounts: 1`, `share Mounts: 2`, 1)
	secondTree := strings.Replace(connections, `\other Mounts`, `\share Mounts`, 1)
	for _, c := range []struct {
		name, list, source string
		want               bool
	}{
		{"one mount each", connections, "//10.0.0.1/share", true},
		{"a directory below it", connections, "//10.0.0.1/share/a/b", true},
		{"another letter case", connections, "//10.0.0.1/SHARE", true},
		{"two mounts on one", secondMount, "//10.0.0.1/share", false},
		{"two sessions on one", secondTree, "//10.0.0.1/share", false},
		{"not in the list", connections, "//10.0.0.2/share", false},
		{"no list", "", "//10.0.0.1/share", false},
	} {
		if got := ownConnection(c.list, c.source); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestSuperblocksWithConnectionsOfTheirOwnAreClients(t *testing.T) {
	a := result.Route{Path: "/a", FSType: "cifs", Superblock: "0:30", OwnClient: true}
	b := result.Route{Path: "/b", FSType: "cifs", Superblock: "0:31", OwnClient: true}
	scope, why := Scope(result.Host{}, []result.Route{a, b})
	if want := "/a and /b are distinct cifs clients: two superblocks, 0:30 and 0:31, with a connection to the server each"; scope != result.ScopeClient || why != want {
		t.Errorf("%s: %s", scope, why)
	}
	b.OwnClient = false
	if scope, _ := Scope(result.Host{}, []result.Route{a, b}); scope != result.ScopeMount {
		t.Errorf("one without: %s", scope)
	}
	b.OwnClient, b.Superblock = true, a.Superblock
	if scope, _ := Scope(result.Host{}, []result.Route{a, b}); scope != result.ScopeProcess {
		t.Errorf("one superblock: %s", scope)
	}
}
