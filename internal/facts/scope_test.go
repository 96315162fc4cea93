package facts

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/claimbench/claimbench/internal/result"
)

// recording is what ReadHost and ReadRoute said on one kernel with NFS mounts of three network namespaces. Its
// field "recorded" says how it was made.
type recording struct {
	Host       result.Host               `json:"host"`
	Volumes    map[string]string         `json:"volumes"`
	Identifier map[string]string         `json:"identifier"`
	Views      map[string][]result.Route `json:"views"`
}

func readRecording(t *testing.T) recording {
	t.Helper()
	b, err := os.ReadFile("testdata/nfs-one-kernel.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// seen are the recorded routes by the names of their mount points, from the view of a process in that namespace.
func (r recording) seen(t *testing.T, view, names string) []result.Route {
	t.Helper()
	var routes []result.Route
	for _, name := range strings.Fields(names) {
		i := slices.IndexFunc(r.Views[view], func(r result.Route) bool { return r.Path == "/mnt/"+name })
		if i < 0 {
			t.Fatalf("no mount %s in view %s", name, view)
		}
		routes = append(routes, r.Views[view][i])
	}
	return routes
}

func wantScope(t *testing.T, want result.Scope, says []string, routes ...result.Route) {
	t.Helper()
	checkScope(t, result.Host{BootID: "boot"}, routes, nil, want, says)
}

func checkScope(t *testing.T, host result.Host, routes []result.Route, remote []result.Host, want result.Scope, says []string) {
	t.Helper()
	scope, why := Scope(host, routes, remote...)
	if scope != want {
		t.Errorf("got %s, want %s: %s", scope, want, why)
	}
	for _, s := range says {
		if !strings.Contains(why, s) {
			t.Errorf("%q is not said: %s", s, why)
		}
	}
}

func TestScopeOfRecordedNFSMounts(t *testing.T) {
	rec := readRecording(t)
	for _, tt := range []struct {
		view, mounts string
		want         result.Scope
		says         string
	}{
		{"init", "a", result.ScopeProcess, "one route"},
		{"init", "a b", result.ScopeProcess, "one superblock, 0:28"},
		{"init", "a c", result.ScopeMount, "one network namespace and taken for one client"},
		{"init", "a h", result.ScopeMount, "taken for one client"},
		{"init", "a w", result.ScopeMount, "taken for one client"},
		{"init", "v w", result.ScopeMount, "taken for one client"},
		{"init", "a d", result.ScopeClient, "10.77.0.1 and 10.77.0.11"},
		{"init", "d e", result.ScopeClient, "10.77.0.11 and 10.77.0.12 (whether the server"},
		{"n1", "d e", result.ScopeClient, "10.77.0.11 and 10.77.0.12"},
		{"init", "v f", result.ScopeClient, "mounted from another network namespace"},
		{"n1", "f g", result.ScopeClient, "mounted from another network namespace"},
		{"init", "f g", result.ScopeMount, "whether they are two clients is not shown"},
		{"n2", "v w", result.ScopeMount, "whether they are two clients is not shown"},
		{"init", "srv a", result.ScopeMount, "different sources"},
		{"init", "a b d", result.ScopeClient, "only process: /mnt/a and /mnt/b are one superblock"},
		{"init", "a b c", result.ScopeMount, "only process: /mnt/a and /mnt/b"},
		{"init", "d a c b", result.ScopeClient, "only mount: /mnt/a and /mnt/c"},
	} {
		t.Run(tt.view+" "+tt.mounts, func(t *testing.T) {
			checkScope(t, rec.Host, rec.seen(t, tt.view, tt.mounts), nil, tt.want, []string{tt.says})
		})
	}
}

// from marks routes as another process on the given host read them.
func from(host string, routes []result.Route) []result.Route {
	for i := range routes {
		routes[i].Host = host
	}
	return routes
}

func named(h result.Host, name string) result.Host { h.Name = name; return h }

func TestScopeOfContainersOnOneKernel(t *testing.T) {
	rec := readRecording(t)
	remote := []result.Host{named(rec.Host, "c1"), named(rec.Host, "c2")}
	two := func(mount1, mount2 string) []result.Route {
		return append(from("c1", rec.seen(t, "n1", mount1)), from("c2", rec.seen(t, "n2", mount2))...)
	}
	t.Run("two names and one volume", func(t *testing.T) {
		checkScope(t, rec.Host, two("a", "b"), remote, result.ScopeProcess, []string{"c1:/mnt/a and c2:/mnt/b are one superblock"})
	})
	t.Run("a mount each, v3", func(t *testing.T) {
		checkScope(t, rec.Host, two("f", "g"), remote, result.ScopeClient, []string{"of two network namespaces"})
	})
	t.Run("two volumes of the host, v3", func(t *testing.T) {
		checkScope(t, rec.Host, two("v", "w"), remote, result.ScopeMount, []string{"not shown"})
	})
	t.Run("a mount each, namespaces unreadable", func(t *testing.T) {
		routes := two("f", "g")
		routes[0].NetNS, routes[1].NetNS = "", ""
		checkScope(t, rec.Host, routes, remote, result.ScopeClient, []string{"by their identifiers"})
		routes[1].NFS.ClientID = ""
		checkScope(t, rec.Host, routes, remote, result.ScopeMount, []string{"not shown"})
	})
	t.Run("an identifier that was changed in between", func(t *testing.T) {
		routes := append(from("c1", rec.seen(t, "init", "v")), from("c2", rec.seen(t, "init", "w"))...)
		routes[0].NFS.ClientID, routes[1].NFS.ClientID = "before", "after"
		checkScope(t, rec.Host, routes, remote, result.ScopeMount, []string{"taken for one client"})
	})
}

// TestScopeHostTakesTwoBootIDs: the routes are those of two plain mounts, which on two kernels can well have one
// device number.
func TestScopeHostTakesTwoBootIDs(t *testing.T) {
	rec := readRecording(t)
	booted := func(name, boot string) result.Host { return result.Host{Name: name, BootID: boot} }
	local, there := rec.seen(t, "init", "a"), from("b", rec.seen(t, "init", "b"))
	host := booted("a", "1")
	for _, tt := range []struct {
		name   string
		host   result.Host
		remote []result.Host
		want   result.Scope
		says   string
	}{
		{"two boot ids", host, []result.Host{booted("b", "2")}, result.ScopeHost, "/mnt/a and b:/mnt/b are on kernels with different boot ids"},
		{"one boot id", host, []result.Host{booted("b", "1")}, result.ScopeProcess, "one superblock"},
		{"unknown host", host, []result.Host{booted("c", "2")}, result.ScopeProcess, "a boot id is not known"},
		{"no boot id there", host, []result.Host{booted("b", "")}, result.ScopeProcess, "a boot id is not known"},
		{"no boot id here", booted("a", ""), []result.Host{booted("b", "2")}, result.ScopeProcess, "a boot id is not known"},
		{"two hosts of that name", host, []result.Host{booted("b", "2"), booted("b", "3")}, result.ScopeProcess, "a boot id is not known"},
		{"listed twice", host, []result.Host{booted("b", "2"), booted("b", "2")}, result.ScopeHost, ""},
		{"the name of this host", booted("b", "1"), []result.Host{booted("b", "2")}, result.ScopeHost, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkScope(t, tt.host, slices.Concat(local, there), tt.remote, tt.want, []string{tt.says})
		})
	}
	t.Run("two routes on one remote host", func(t *testing.T) {
		routes := from("b", rec.seen(t, "init", "a c"))
		checkScope(t, host, routes, []result.Host{booted("b", "2")}, result.ScopeMount, []string{"b:/mnt/a and b:/mnt/c"})
	})
}

func TestScopeOfOtherFilesystems(t *testing.T) {
	r := func(path, fstype, source, superblock string) result.Route {
		return result.Route{Path: path, FSType: fstype, Source: source, Superblock: superblock}
	}
	for _, tt := range []struct {
		name   string
		routes []result.Route
		want   result.Scope
		says   string
	}{
		{"no route", nil, result.ScopeProcess, "no route"},
		{"sshfs twice", []result.Route{r("/a", "fuse.sshfs", "h:/d", "0:50"), r("/b", "fuse.sshfs", "h:/d", "0:51")}, result.ScopeMount, "FUSE"},
		{"FUSE over what it shows", []result.Route{r("/a", "fuse.bindfs", "/d", "0:50"), r("/d", "ext4", "/dev/sda", "8:0")}, result.ScopeMount, "FUSE"},
		{"SMB twice", []result.Route{r("/a", "cifs", "//h/s", "0:50"), r("/b", "cifs", "//h/s", "0:51")}, result.ScopeMount, "one source, //h/s"},
		{"one of three unknown", []result.Route{r("/a", "cifs", "//h/s", "0:50"), r("/u", "", "", ""), r("/b", "cifs", "//h/s", "0:51")}, result.ScopeMount, "only process: /a and /u can't be told apart"},
		{"the unknown one first", []result.Route{r("/u", "", "", ""), r("/a", "cifs", "//h/s", "0:50"), r("/b", "cifs", "//h/s", "0:51")}, result.ScopeMount, "/a and /b are two superblocks, 0:50 and 0:51"},
	} {
		t.Run(tt.name, func(t *testing.T) { wantScope(t, tt.want, []string{tt.says}, tt.routes...) })
	}
}

func TestScopeOfOneHostNeedsNoBootID(t *testing.T) {
	rec := readRecording(t)
	for _, host := range []string{"", "b"} {
		scope, why := Scope(result.Host{}, from(host, rec.seen(t, "init", "a c")))
		if scope != result.ScopeMount || strings.Contains(why, "boot id") {
			t.Errorf("host %q: got %s, %s", host, scope, why)
		}
	}
}

// TestScopeDoesNotDependOnTheOrder: every order of the recorded routes gives one scope.
func TestScopeDoesNotDependOnTheOrder(t *testing.T) {
	rec := readRecording(t)
	routes := rec.seen(t, "init", "a b c d")
	permute(routes, func(routes []result.Route) {
		if scope, why := Scope(rec.Host, routes); scope != result.ScopeClient {
			t.Errorf("got %s: %s", scope, why)
		}
	})
}

func permute(routes []result.Route, f func([]result.Route)) {
	if len(routes) < 2 {
		f(routes)
		return
	}
	for i := range routes {
		rest := slices.Delete(slices.Clone(routes), i, i+1)
		permute(rest, func(tail []result.Route) { f(append([]result.Route{routes[i]}, tail...)) })
	}
}

// TestNFSFactsOfRecordedMounts makes the recorded facts again from the recorded options and lists of volumes.
func TestNFSFactsOfRecordedMounts(t *testing.T) {
	rec := readRecording(t)
	for view, routes := range rec.Views {
		for _, r := range routes {
			if !isNFS(r.FSType) {
				continue
			}
			got := nfsFacts(r, nfsView{volumes: rec.Volumes[view], readable: true, clientID: rec.Identifier[view]})
			if got.Version != r.NFS.Version || got.Server != "10.77.0.1" || got.ClientAddr != r.NFS.ClientAddr ||
				got.ClientID != r.NFS.ClientID || got.LocalLock != r.NFS.LocalLock || got.Foreign != r.NFS.Foreign {
				t.Errorf("%s of %s: got %+v, want %+v", r.Path, view, got, r.NFS)
			}
			if got := nfsFacts(r, nfsView{}); got.Foreign {
				t.Errorf("%s is foreign, and no list says so", r.Path)
			}
		}
	}
	mine := rec.seen(t, "n1", "d e a")
	if mine[0].NFS.Foreign || !mine[1].NFS.Foreign || !mine[2].NFS.Foreign || mine[0].NFS.ClientID != "client-n1" {
		t.Errorf("from n1, d is its own and e and a are not: %+v %+v %+v", mine[0].NFS, mine[1].NFS, mine[2].NFS)
	}
}

func TestMissingOptions(t *testing.T) {
	got := missingOptions([]string{"rw", "vers=4.2", "hard"},
		map[string]string{"rw": "", "vers": "4.2", "hard": "", "acregmin": "3", "nocto": ""})
	if want := []string{"acregmin=3", "nocto"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
