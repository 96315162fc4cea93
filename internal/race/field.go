package race

import "context"

// A Field is the contenders of a race and what can be done with them. A Line has them on this host; others have them on
// several. It is not safe for concurrent use. Line says what each method does.
type Field interface {
	Contenders() int
	Contender(i int) Identity
	Routes() int
	Route(i int) int
	Enter(ctx context.Context, dirs ...string) error
	Close() error

	Meets(op string) func(*Event) bool
	Race(ctx context.Context, op string, plan Plan, each func(*Round) bool) (Tally, error)
	Trial(ctx context.Context, op string, contenders int, arg uint64) (Round, error)

	Name() int64
	Words(i int) []uint64
	Do(ctx context.Context, who int, op string, number int64, arg uint64) (Event, error)
	Begin(who int, op string, number int64, arg uint64)
	Await(ctx context.Context, who int, op string) (Event, error)
	Pending(who int) (pending bool, invoke int64)

	Kill(i int)
	Restart(ctx context.Context, i int) error
	Gone(i int) bool
	Stopped(i int) bool
	Continue(i int)
	Became(i int) bool
	EndChild(i int)
	Abandoned() int

	Clock(i int) (which int, unsure int64)
}

// An Identity names the process of a contender.
type Identity struct {
	Host string // "" is the host of the parent
	PID  int
	TID  int
	CPU  int // that it is pinned to
}
