package facts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
)

func TestAFileOfTheSameNameReplacesALaterOne(t *testing.T) {
	etc, usr := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		filepath.Join(etc, "tmp.conf"): "# none\nq /tmp 1777 root root -\n\n", filepath.Join(usr, "tmp.conf"): "q /tmp 1777 root root 10d\n",
		filepath.Join(usr, "a.conf"): "  d /a - - - 1d\n", filepath.Join(usr, "README"): "d /b - - - 1d\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"d /a - - - 1d", "q /tmp 1777 root root -"}
	if got := tmpfilesLines(etc, filepath.Join(etc, "absent"), usr); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestACacheIsKnownByItsTagOnly(t *testing.T) {
	dir := t.TempDir()
	tag, empty, fifo := filepath.Join(dir, "CACHEDIR.TAG"), filepath.Join(dir, "empty"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(tag, []byte(cacheTag+"\n# by a test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{tag: true, empty: false, fifo: false, dir: false, filepath.Join(dir, "absent"): false} {
		if got := isCacheTag(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	sub := filepath.Join(dir, "claims")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(sub, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{sub, link} {
		got := Warnings(&result.Route{Path: path, Mount: dir}, &result.Host{PIDNamespace: InitialPIDNamespace})
		if !slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, "it has a CACHEDIR.TAG") }) {
			t.Errorf("%s: %q", path, got)
		}
	}
}
