package engine

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func FuzzDecode(f *testing.F) {
	for _, r := range []record{
		{state: stateClaimed, nonce: "00112233445566778899aabbccddeeff", generation: 1},
		{state: stateDone, nonce: "ff", generation: 1<<64 - 1, body: []byte("a\nb\x00c")},
	} {
		f.Add(r.encode())
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		r, err := decode(p)
		if err != nil {
			if !errors.Is(err, errUnreadable) && !errors.Is(err, ErrVersion) {
				t.Errorf("decode: %v", err)
			}
			return
		}
		same, err := decode(r.encode())
		if err != nil || same.state != r.state || same.nonce != r.nonce || same.generation != r.generation || !bytes.Equal(same.body, r.body) {
			t.Errorf("%q is %+v, and written again %+v, %v", p, r, same, err)
		}
	})
}

func FuzzParseClaim(f *testing.F) {
	f.Add(sig.claim(1))
	f.Add(sig.claim(1<<64 - 1))
	f.Add(sig.path(".gen01.claim"))
	f.Fuzz(func(t *testing.T, name string) {
		s, generation, err := parseClaim(name)
		if err != nil {
			return
		}
		if s.claim(generation) != name {
			t.Errorf("%q is generation %d of %s, whose name is %q", name, generation, s, s.claim(generation))
		}
	})
}

// FuzzAttempt puts anything at all in the place of a claim.
func FuzzAttempt(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("d1 00 1 0 00000000\n"))
	f.Add([]byte("x1 00 1 0 00000000\n"))
	f.Add([]byte("c2"))
	f.Fuzz(func(t *testing.T, p []byte) {
		w := newWorld(t)
		plant(t, w, func(path string) error { return os.WriteFile(path, p, 0o600) })
		q, _ := w.join("generations")
		out, err := q.Try(sig)
		if err == nil && out.State == Won && (len(p) == 0 || p[0] != stateDropped) {
			t.Errorf("%q, a moment old, was taken over", p)
		}
	})
}

func TestEveryPrefixIsTorn(t *testing.T) {
	whole := record{state: stateClaimed, nonce: "00112233", generation: 12, body: []byte("body")}.encode()
	for n := range whole {
		if _, err := decode(whole[:n]); !errors.Is(err, errUnreadable) {
			t.Errorf("%q: %v", whole[:n], err)
		}
	}
	if _, err := decode(whole); err != nil {
		t.Error(err)
	}
}

func TestOnlyDocumentedFilesAreLeft(t *testing.T) {
	dir := t.TempDir()
	g := newTestGuard(t, dir, Options{Protocol: "generations-linked"})
	for _, key := range hostileKeys[:10] {
		out := claim(t, g, key, Won)
		claim(t, g, key, Held)
		if err := out.Lease.Done(nil); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		if err != nil || relErr != nil || d.IsDir() {
			return errors.Join(err, relErr)
		}
		_, _, notClaim := parseClaim(name)
		isClock, _ := filepath.Match("clock/[0-9a-f][0-9a-f]", name)
		if notClaim != nil && !isClock && name != paramsName(1) {
			t.Errorf("%s is left", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
