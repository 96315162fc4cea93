package race

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	maxBatch = 2048 // rounds per batch at most
	maxPath  = 4096 // PATH_MAX
)

// shared is the memory that parent and contenders have in common. Words that different CPUs write lie on
// different cache lines.
type shared struct {
	bell    atomic.Uint32 // futex: moved by every contender that has done its job; the parent sleeps on it
	_       [124]byte
	stop    atomic.Uint32 // the running batch is given up
	_       [124]byte
	clock   clock
	_       [64]byte
	arrived atomic.Uint32 // arrivals at the barrier since the batch began
	_       [124]byte
	gen     gate          // the last round whose contenders have all arrived
	met     atomic.Uint32 // leaders that stand at the line; of a heat: starts that were heard of too late
	_       [124]byte
	start   atomic.Int64 // the instant agreed for the round, CLOCK_MONOTONIC ns
	_       [120]byte
	agreed  gate // the last round whose start instant is set
	lanes   [MaxContenders]gate
	slots   [MaxContenders]slot
	after   [maxBatch]After
	events  [maxBatch * MaxContenders]Event
	words   [MaxContenders][Words]uint64
}

// Words is how many words of the shared memory each contender has for its operations' own use.
const Words = 1 << 15

// A gate is a number that only grows and that contenders wait for.
type gate struct {
	at       atomic.Uint32 // futex
	sleepers atomic.Uint32
	_        [120]byte
}

// A slot is one contender's mailbox: the parent writes the job and moves gen, the contender answers in done.
type slot struct {
	gen      atomic.Uint32 // futex: the contender sleeps on it
	done     atomic.Uint32 // equals gen when the job is done
	progress atomic.Uint32 // moves with every round: a parent that sees it stand still knows that this contender hangs
	_        [116]byte
	job      job
	tid      int32
	child    atomic.Int32  // the process that was left behind on purpose; 0 is none
	path     [maxPath]byte // of the route's directory, NUL-terminated
}

type jobKind uint32

const (
	jobDir   jobKind = iota // open the directory named by slot.path
	jobRace                 // take part in a batch
	jobStep                 // one attempt, alone
	jobHeat                 // rounds whose starts somebody else sets
	jobLook                 // look at what the last heat left
	jobClean                // remove it
)

// A job is what a contender is asked to do next.
type job struct {
	kind   jobKind
	op     uint32
	n      int32 // contenders in the batch
	lanes  int32 // CPUs among which they are spread
	first  int64 // number of the first round
	rounds int32
	phase  Phase
	pause  int64 // before each cold round, ns
	width  int64 // of the operation, ns
	offset int64 // of this contender's start, ns
	jitter int64 // of a tight round's start, at most, ns
	seed   uint64
	arg    uint64
}

const shmSize = int(unsafe.Sizeof(shared{}))

// shmFD is the descriptor at which a contender finds the shared memory.
const shmFD = 3

func newShared() (*shared, *os.File, error) {
	fd, err := unix.MemfdCreate("claimbench", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memfd:claimbench")
	if err := f.Truncate(int64(shmSize)); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("shared memory of %d bytes: %w", shmSize, err)
	}
	sh, err := mapShared(fd)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return sh, f, nil
}

func mapShared(fd int) (*shared, error) {
	b, err := unix.Mmap(fd, 0, shmSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d shared bytes: %w", shmSize, err)
	}
	return (*shared)(unsafe.Pointer(unsafe.SliceData(b))), nil
}

func (sh *shared) unmap() error {
	return unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(sh)), shmSize))
}

func (sh *shared) roundEvents(i, n int) []Event { return sh.events[i*n : (i+1)*n] }
