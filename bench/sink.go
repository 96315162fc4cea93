package bench

import "sync/atomic"

// writeToSink is the other end of a fencing token: it refuses a generation lower than the highest it has seen.
func writeToSink(highest *uint64, generation uint64) int64 {
	for {
		old := atomic.LoadUint64(highest)
		if generation < old {
			return sinkRefused
		}
		if atomic.CompareAndSwapUint64(highest, old, generation) {
			return sinkAccepted
		}
	}
}
