package facts

import (
	"io/fs"
	"strings"
	"testing"
)

var systemd = []string{
	"q /tmp 1777 root root 10d", "q /var/tmp 1777 root root 30d", "d /run/user 0755 root root -", "x /tmp/systemd-private-*",
	"d /srv/scratch 0777 root root bmA:6h -", "d /srv/scratch/kept 0777 - - -", "X /tmp/only-itself", "L /tmp/link - - - - /dev/null",
	"e /srv/*/short - - - ~2h", "d %C/app - - - 1w", "bad",
	"d /srv/early/kept - - - -", "d /srv/early - - - 3h",
}

func TestSurroundingsAreWarnedOf(t *testing.T) {
	const sticky, world = fs.ModeDir | fs.ModeSticky | 0o777, fs.ModeDir | 0o777
	for _, c := range []struct {
		what string
		s    surroundings
		want string // part of the only warning; "" is none
	}{
		{"a plain directory", surroundings{path: "/srv/claims", mount: "/", mode: fs.ModeDir | 0o755, protectedRegular: "2", cleaned: systemd}, ""},

		{"sticky, open to all", surroundings{path: "/srv/shared", mode: sticky, protectedRegular: "1"}, "fs.protected_regular is 1"},
		{"sticky, open to all, strictly", surroundings{path: "/srv/shared", mode: sticky, protectedRegular: "2"}, "fs.protected_regular is 2"},
		{"sticky, and nothing is protected", surroundings{path: "/srv/shared", mode: sticky, protectedRegular: "0"}, ""},
		{"sticky, and nothing is known", surroundings{path: "/srv/shared", mode: sticky}, ""},
		{"open to all, not sticky", surroundings{path: "/srv/shared", mode: world, protectedRegular: "2"}, ""},
		{"sticky, open to a group", surroundings{path: "/srv/shared", mode: fs.ModeDir | fs.ModeSticky | 0o770, protectedRegular: "2"}, "fs.protected_regular is 2"},
		{"sticky, open to a group, less strictly", surroundings{path: "/srv/shared", mode: fs.ModeDir | fs.ModeSticky | 0o770, protectedRegular: "1"}, ""},
		{"sticky, the owner's alone", surroundings{path: "/srv/shared", mode: fs.ModeDir | fs.ModeSticky | 0o755, protectedRegular: "2"}, ""},

		{"cleaned", surroundings{path: "/tmp", mount: "/", cleaned: systemd}, `older than 10d here ("q /tmp 1777 root root 10d")`},
		{"below what is cleaned", surroundings{path: "/var/tmp/a/b", mount: "/", cleaned: systemd}, "older than 30d"},
		{"a name that begins alike", surroundings{path: "/tmpfs/a", mount: "/", cleaned: systemd}, ""},
		{"another mount below", surroundings{path: "/tmp/mnt/a", mount: "/tmp/mnt", cleaned: systemd}, ""},
		{"the mount itself is cleaned", surroundings{path: "/tmp/a", mount: "/tmp", cleaned: systemd}, "older than 10d"},
		{"left out by a pattern", surroundings{path: "/tmp/systemd-private-1/tmp", mount: "/", cleaned: systemd}, ""},
		{"left out itself, and not what is below", surroundings{path: "/tmp/only-itself/a", mount: "/", cleaned: systemd}, "older than 10d"},
		{"left out itself", surroundings{path: "/tmp/only-itself", mount: "/", cleaned: systemd}, ""},
		{"no age", surroundings{path: "/run/user/1", mount: "/", cleaned: systemd}, ""},
		{"an age by some times", surroundings{path: "/srv/scratch/x", mount: "/", cleaned: systemd}, "older than 6h"},
		{"a line of its own", surroundings{path: "/srv/scratch/kept/x", mount: "/", cleaned: systemd}, ""},
		{"a line of its own, before the other", surroundings{path: "/srv/early/kept", mount: "/", cleaned: systemd}, ""},
		{"beside it", surroundings{path: "/srv/early/other", mount: "/", cleaned: systemd}, "older than 3h"},
		{"a pattern", surroundings{path: "/srv/any/short/x", mount: "/", cleaned: systemd}, "older than 2h"},
		{"a specifier", surroundings{path: "/var/cache/app", mount: "/var/cache/app", cleaned: systemd}, "older than 1w"},
		{"a cron job", surroundings{path: "/tmp/a", mount: "/", cron: "tmpreaper"}, "tmpreaper removes old files here"},
		{"a cron job elsewhere", surroundings{path: "/srv/a", mount: "/", cron: "tmpreaper"}, ""},

		{"a cache by its name", surroundings{path: "/home/u/.cache/app/claims"}, "/home/u/.cache is a cache (by its name)"},
		{"a cache by its tag", surroundings{path: "/home/u/build/claims", tagged: []string{"/home/u/build"}}, "/home/u/build is a cache (it has a CACHEDIR.TAG)"},
		{"a name that ends alike", surroundings{path: "/home/u/my.cache/claims"}, ""},
		{"a relative path", surroundings{path: "claims"}, ""},

		{"a plain host", surroundings{path: "/srv", pidNamespace: InitialPIDNamespace}, ""},
		{"a container", surroundings{path: "/srv", pidNamespace: "pid:[4026532198]"}, "process numbers of its own"},
	} {
		got := c.s.warnings()
		if c.what == "a specifier" { // it is a cache as well
			got = got[:1]
		}
		switch {
		case c.want == "" && len(got) > 0, c.want != "" && len(got) != 1:
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		case c.want != "" && !strings.Contains(got[0], c.want):
			t.Errorf("%s: %q, want %q", c.what, got[0], c.want)
		}
	}
}
