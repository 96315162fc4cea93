package engine

import "time"

// Quarantine is one thing that was left behind and may go one day.
type Quarantine struct {
	Name string
	// Age is how long ago it was left, on the filesystem's clock.
	Age time.Duration
	// Why says why it may not go yet; "" says that it may.
	Why string
}

// Reclaimed is what one call of Reclaim did.
type Reclaimed struct {
	Removed []string
	// Kept counts what may not go yet, Left what may but was over the limit.
	Kept, Left int
}
