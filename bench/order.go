package bench

import (
	"unsafe"

	"github.com/claimbench/claimbench/internal/race"
)

// An order is what the parent wants of one contender. It lies at the beginning of the contender's words. Durations
// and instants are nanoseconds, instants those of race.Now.
type order struct {
	Entrant  int64 // index in entrants
	Trial    int64 // the number of the claim directory
	First    int64 // the keys are First and the Keys-1 after it
	Keys     int64
	Start    int64 // where among the keys to begin
	TTL      int64
	Poll     int64 // between two tries of the same key
	Patience int64 // how long to go on trying; 0 is one try
	Until    int64 // the instant at which to give up; it can be moved meanwhile. 0 is Patience from now
	Linger   int64 // how long an execution takes
	Renew    int64 // 1: renew the lease while executing
	Abandon  int64 // 1: claim, and execute nothing
	Follow   int64 // 1: leave keys alone until the horizon is beyond them
	Hold     int64 // 1: SIGSTOP itself in the middle of the execution
	PauseAt  int64 // SIGSTOP itself before an operation of this kind ...
	PauseNth int64 // ... the so many'th; 0 is never
	KillStep int64 // SIGKILL itself before this step, counted from 1; 0 is never
	Reclaim  int64 // 1: reclaim, and claim nothing
	Leave    int64 // 1: close what is open
	Remove   int64 // 1: remove the claim directory
	Clock    int64 // 1: see how finely the filesystem's clock is divided
}

func (o *order) hooks() bool { return o.PauseNth != 0 || o.KillStep != 0 }

// A record is what a contender did about one key. It is written field by field, as things happen, so that it tells
// how far a contender came that was killed.
type record struct {
	Tries       int64
	FirstInvoke int64 // of the first try
	FirstReturn int64
	Invoke      int64 // of the last try
	Return      int64
	Outcome     int64 // of the last try
	Generation  int64
	Expires     int64 // of the lease
	Began       int64 // the execution
	Ended       int64
	Done        int64 // recorded as done, and told so
	Died        int64
	Sink        int64 // what became of the write to the fencing sink
	Errno       int64 // of the last answer that was none; a later answer leaves it
	PID         int64 // of the process that wrote this
	Left        int64 // gave the work up, without having it recorded as done
}

const (
	wordsOfOrder  = 64
	wordsOfSink   = 640 // of contender 0: the highest generation that each key's sink has seen
	wordsOfRecord = 16
	maxKeys       = (race.Words - wordsOfOrder - wordsOfSink) / wordsOfRecord
)

func orderIn(words []uint64) *order { return (*order)(unsafe.Pointer(&words[0])) }

// horizonIn is the number of keys that are ready for those who follow. It lies in the words of contender 0.
func horizonIn(words []uint64) *uint64 { return &words[wordsOfOrder-1] }

func sinkIn(words []uint64, key int64) *uint64 { return &words[wordsOfOrder+key%wordsOfSink] }

func recordsIn(words []uint64) []record {
	return unsafe.Slice((*record)(unsafe.Pointer(&words[wordsOfOrder+wordsOfSink])), maxKeys)
}

// What became of a try.
const (
	outcomeWon = iota + 1
	outcomeHeld
	outcomeDone
	outcomeUnknown
)

var outcomes = [...]string{"", "won", "held", "done", "unknown"}

// What became of a write to the fencing sink.
const (
	sinkAccepted = iota + 1
	sinkRefused
)
