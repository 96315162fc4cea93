package race

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	testOps = append(testOps, Op{Name: "reference", Attempt: func(e *Env, ev *Event) unix.Errno {
		name := [...]byte{'r', 'e', 'f', 0}
		for range e.Arg {
			fd, errno := Open(e.Dir, &name[0], unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600)
			if errno == 0 {
				Close(fd)
				Unlink(e.Dir, &name[0], 0)
			}
		}
		return 0
	}})
}

func TestRef(t *testing.T) {
	for _, root := range []string{"/dev/shm", "/root"} {
		for _, n := range []int{2, 4, 8, 16, 40} {
			dir, _ := os.MkdirTemp(root, "cb")
			defer os.RemoveAll(dir)
			l := newLine(t, n, dir)
			for range 3 {
				tally, err := l.Race(t.Context(), "excl", Plan{Contenders: n, Rounds: 1 << 30, Time: 700 * time.Millisecond, ScanShare: 0.25}, func(r *Round) bool { return true })
				if err != nil {
					t.Fatal(err)
				}
				_, contested := tally.Total()
				ours := float64(contested) / tally.Elapsed.Seconds()
				rounds := contested
				began := time.Now()
				for c := range l.CPUs() {
					l.Begin(c, "reference", l.Name(), uint64(rounds*n/l.CPUs()))
				}
				for c := range l.CPUs() {
					if _, err := l.Await(t.Context(), c, "reference"); err != nil {
						t.Fatal(err)
					}
				}
				ref := float64(rounds) / time.Since(began).Seconds()
				fmt.Printf("%-9s n=%2d ours=%.0f ref=%.0f ratio=%.2f\n", root, n, ours, ref, ours/ref)
			}
		}
	}
}
