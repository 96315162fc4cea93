package engine

import (
	"context"
	"crypto/rand"
	"time"

	"golang.org/x/sys/unix"
)

// OSClock is the clock of this host. It reads CLOCK_BOOTTIME, as
// CLOCK_MONOTONIC, and Go's with it, stands still while the host is suspended:
// an owner that wakes up from it would find its lease as good as before.
type OSClock struct{}

// Now is part of Clock.
func (OSClock) Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error() + ": Linux has had it since 2.6.39")
	}
	return time.Duration(ts.Nano())
}

// Sleep is part of Clock.
func (OSClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// RandomNonce is 16 bytes from crypto/rand.
func RandomNonce() ([]byte, error) {
	b := make([]byte, 16)
	_, err := rand.Read(b)
	return b, err
}

func randomByte() (byte, error) {
	var b [1]byte
	_, err := rand.Read(b[:])
	return b[0], err
}
