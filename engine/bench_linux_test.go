package engine

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var benchKeys = flag.Int("engine.keys", 1_000_000, "keys in the larger directory of BenchmarkClaimAmong")

func benchGuard(b *testing.B, dir string) *Guard {
	b.Helper()
	g, err := New(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { g.Close() })
	return g
}

// BenchmarkClaimAndDone takes turns between a claim with its done record and
// the system calls that these consist of, as strace lists them: eleven on files
// and three readings of CLOCK_BOOTTIME. The fan-out directories are made
// already. It reports the medians and their ratio.
func BenchmarkClaimAndDone(b *testing.B) {
	for _, parent := range []string{os.TempDir(), "/dev/shm"} {
		b.Run(filepath.Base(parent), func(b *testing.B) {
			dir, err := os.MkdirTemp(parent, "engine-bench-")
			if err != nil {
				b.Fatal(err)
			}
			defer os.RemoveAll(dir)
			g := benchGuard(b, dir)
			raw, err := OpenDir(dir)
			if err != nil {
				b.Fatal(err)
			}
			defer raw.Close()
			makeFans(b, dir)
			var ours, theirs []time.Duration
			for n := 0; b.Loop(); n++ {
				key := Key{"ours", strconv.Itoa(n)}
				other := Key{"theirs", strconv.Itoa(n)}.Sign()
				claimName, doneName := other.claim(1), other.claim(2)
				calls := func() { rawClaimAndDone(b, int(raw.root.Fd()), claimName, doneName) }
				claims := func() { claimAndDone(b, g, key) }
				// Whoever comes second finds the caches warm.
				if n%2 == 0 {
					ours = append(ours, timed(claims))
					theirs = append(theirs, timed(calls))
				} else {
					theirs = append(theirs, timed(calls))
					ours = append(ours, timed(claims))
				}
			}
			report(b, ours, theirs)
		})
	}
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func makeFans(b *testing.B, dir string) {
	b.Helper()
	for n := range 256 {
		fan := strconv.FormatInt(int64(n)+0x100, 16)[1:]
		if err := os.MkdirAll(filepath.Join(dir, fan), 0o755); err != nil {
			b.Fatal(err)
		}
	}
}

func report(b *testing.B, ours, theirs []time.Duration) {
	slices.Sort(ours)
	slices.Sort(theirs)
	o, t := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(o.Nanoseconds()), "claim_done_p50_ns")
	b.ReportMetric(float64(t.Nanoseconds()), "raw_p50_ns")
	b.ReportMetric(float64(o)/float64(t), "ratio")
}

func claimAndDone(b *testing.B, g *Guard, key Key) {
	out, err := g.Claim(context.Background(), key)
	if err != nil || out.State != Won {
		b.Fatal(out.State, err)
	}
	if err := out.Lease.Done(nil); err != nil {
		b.Fatal(err)
	}
}

var rawRecord = record{state: stateClaimed, nonce: "00112233445566778899aabbccddeeff", generation: 1}.encode()

func rawClaimAndDone(b *testing.B, dir int, claim, done string) {
	const flags = unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	var st unix.Statx_t
	var ts unix.Timespec
	must(b, unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts))
	fd, err := unix.Openat(dir, claim, flags, 0o666)
	must(b, err)
	rawWrite(b, fd)
	must(b, unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, &st))
	must(b, unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts))
	next, err := unix.Openat(dir, done, flags, 0o666)
	must(b, err)
	rawWrite(b, next)
	must(b, unix.Close(next))
	must(b, unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts))
	must(b, unix.Close(fd))
}

func rawWrite(b *testing.B, fd int) {
	_, err := unix.Pwrite(fd, rawRecord, 0)
	must(b, err)
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	must(b, err)
	must(b, unix.Close(dup))
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkClaimAmong takes turns between claims in a directory of 1 000 keys
// and in one of -engine.keys, which it fills first.
func BenchmarkClaimAmong(b *testing.B) {
	for _, parent := range []string{os.TempDir(), "/dev/shm"} {
		b.Run(filepath.Base(parent), func(b *testing.B) {
			few := filledGuard(b, parent, 1000)
			many := filledGuard(b, parent, *benchKeys)
			var a, z []time.Duration
			for n := 0; b.Loop(); n++ {
				key := Key{"fresh", strconv.Itoa(n)}
				inFew := func() { claimAndDone(b, few, key) }
				inMany := func() { claimAndDone(b, many, key) }
				if n%2 == 0 {
					a = append(a, timed(inFew))
					z = append(z, timed(inMany))
				} else {
					z = append(z, timed(inMany))
					a = append(a, timed(inFew))
				}
			}
			slices.Sort(a)
			slices.Sort(z)
			b.ReportMetric(float64(a[len(a)/2].Nanoseconds()), "among_1000_p50_ns")
			b.ReportMetric(float64(z[len(z)/2].Nanoseconds()), "among_many_p50_ns")
			b.ReportMetric(float64(z[len(z)/2])/float64(a[len(a)/2]), "ratio")
		})
	}
}

// filledGuard makes all fan-out directories first, in which the larger one
// would otherwise have the advantage.
func filledGuard(b *testing.B, parent string, keys int) *Guard {
	b.Helper()
	dir, err := os.MkdirTemp(parent, "engine-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	makeFans(b, dir)
	g := benchGuard(b, dir)
	for n := range keys {
		claimAndDone(b, g, Key{"old", strconv.Itoa(n)})
	}
	return g
}
