//go:build !linux

package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// DirFS exists on Linux only: the rules about which clock a touch uses, and
// which errno means what, were read and tried there.
type DirFS struct{ FullFS }

// OpenDir fails.
func OpenDir(string) (*DirFS, error) { return nil, errors.ErrUnsupported }

// Close is part of DirFS.
func (*DirFS) Close() error { return nil }

// OSClock is the clock of this host. It stands still while the host is
// suspended.
type OSClock struct{}

var started = time.Now()

// Now is part of Clock.
func (OSClock) Now() time.Duration { return time.Since(started) }

// Sleep is part of Clock.
func (OSClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// RandomNonce is 16 bytes from crypto/rand.
func RandomNonce() ([]byte, error) {
	b := make([]byte, 16)
	_, err := rand.Read(b)
	return b, err
}
