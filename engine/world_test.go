package engine

import (
	"context"
	"sync"
	"testing"
	"time"
)

const testTTL = 10 * time.Second

func testParams() Params {
	return Params{TTL: testTTL, Deadline: testTTL / 2, Margin: testTTL, Slack: testTTL / 10}
}

// world is a real directory whose clock a test can put forward, together with
// the local clocks of all contenders.
type world struct {
	t   *testing.T
	dir string

	mu    sync.Mutex
	ahead time.Duration
	// dated is how far ahead the clock was when a file was last written.
	dated map[uint64]time.Duration
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir(), dated: map[uint64]time.Duration{}}
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

// Now and Sleep make world a Clock.
func (w *world) Now() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return OSClock{}.Now() + w.ahead
}

func (w *world) Sleep(ctx context.Context, d time.Duration) error {
	w.advance(d)
	return context.Cause(ctx)
}

// join adds a contender. What its hook says happens before each of its steps.
func (w *world) join(protocol string) (Protocol, *hookFS) {
	w.t.Helper()
	return w.joinWith(protocol, testParams())
}

func (w *world) joinWith(protocol string, p Params) (Protocol, *hookFS) {
	w.t.Helper()
	spec, ok := Find(protocol)
	if !ok {
		w.t.Fatalf("no protocol %q", protocol)
	}
	dir, err := OpenDir(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { dir.Close() })
	fs := &hookFS{FullFS: dir, world: w}
	return spec.New(Env{FS: fs, Clock: w, Nonce: RandomNonce, Params: p}), fs
}

func (w *world) try(p Protocol, sig Signature, want State) Outcome {
	w.t.Helper()
	out, err := p.Try(sig)
	if err != nil {
		w.t.Fatal(err)
	}
	if out.State != want {
		w.t.Fatalf("attempt is %v, want %v", out.State, want)
	}
	return out
}

// date notes that a thing was written now.
func (w *world) date(i Info, err error) {
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dated[i.Ino] = w.ahead
}

func (w *world) shift(i Info) Info {
	w.mu.Lock()
	defer w.mu.Unlock()
	i.Mtime = i.Mtime.Add(w.dated[i.Ino])
	i.Ctime = i.Ctime.Add(w.dated[i.Ino])
	return i
}
