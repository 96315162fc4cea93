package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A trouble is what goes wrong on purpose in a guest.
type trouble struct {
	diary
	p         *plan
	lasting   string // arguments of netem
	recurring []Fault
}

// misbehave makes the lasting faults of a plan come true.
func (p *plan) misbehave() (*trouble, error) {
	t := &trouble{p: p, diary: diary{dir: guestDir, began: booted}}
	network := false
	for _, f := range p.UML.Faults {
		switch f.Kind {
		case "latency":
			t.lasting += " delay " + f.For.String()
		case "loss":
			t.lasting += fmt.Sprintf(" loss %d%%", f.Percent)
		default:
			t.recurring = append(t.recurring, f)
			network = network || f.Kind == "lost-reply"
			if f.Kind == "full" {
				if err := smallShare(); err != nil {
					return nil, err
				}
			}
			continue
		}
		t.begins(f)
	}
	if t.lasting != "" || network {
		if err := modules("sch_netem"); err != nil {
			return nil, err
		}
	}
	if t.lasting != "" {
		return t, t.netem(t.lasting)
	}
	return t, nil
}

// netem delays or loses what the server sends to its clients; without arguments it does neither.
func (t *trouble) netem(how string) error {
	var devices []string
	if t.p.UML.Hosts > 0 {
		devices = []string{"vec0"}
	}
	for n := 1; n <= t.p.UML.clients(); n++ {
		devices = append(devices, fmt.Sprintf("v%d", n))
	}
	lines := ""
	for _, device := range devices {
		lines += fmt.Sprintf("qdisc replace dev %s root netem limit 10000%s\n", device, how)
	}
	return batch("tc", lines)
}

// recur lets the recurring faults happen from when the survey has made its directory, without which there would be none,
// until stop is closed, each at its own pace. Where a guest takes its time to begin and to end one, the next comes later:
// what is between two faults has to show that everything recovers. One that fails is the last, and failed says so.
func (t *trouble) recur(stop <-chan struct{}) {
	for _, f := range t.recurring {
		go func() {
			for waitForSteps(guestDir, stop) {
				select {
				case <-stop:
					return
				case <-time.After(f.Every - f.For):
				}
				over := t.begins(f)
				if err := t.happen(f); err != nil {
					t.fail(fmt.Errorf("fault %q: %w", f, err))
					return
				}
				over()
			}
		}()
	}
}

// obey makes a fault happen each time that the lab, whose clock it is told by, asks for it: by a file, which is gone when
// the fault is over. It returns when one fails.
func (t *trouble) obey(f Fault) error {
	order := filepath.Join(guestDir, f.order())
	for ; ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(order); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := errors.Join(t.happen(f), os.Remove(order)); err != nil {
			return fmt.Errorf("fault %q: %w", f, err)
		}
	}
}

// waitForSteps waits until the survey says, in its log in dir, how many steps it takes; not if stop is closed.
func waitForSteps(dir string, stop <-chan struct{}) bool {
	for {
		log, err := os.ReadFile(filepath.Join(dir, surveyLog))
		if err == nil && bytes.Contains(log, []byte(" steps\n")) {
			return true
		}
		select {
		case <-stop:
			return false
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// happen is one fault, from beginning to end. After a restart the server waits for its clients to reclaim what they had;
// that they have to wait as well counts as recovery.
func (t *trouble) happen(f Fault) error {
	begin, end := t.sides(f)
	until := time.Now().Add(f.For)
	err := begin()
	if err == nil {
		time.Sleep(time.Until(until))
	}
	return errors.Join(err, end())
}

// sides are how a fault begins and how it ends.
func (t *trouble) sides(f Fault) (begin, end func() error) {
	run := func(command string) func() error { return func() error { return guestRun(command) } }
	n := t.p.UML.clients()
	switch f.Kind {
	case "cut":
		return run(fmt.Sprintf("ip link set v%d nomaster", n)), run(fmt.Sprintf("ip link set v%d master lan", n))
	case "lost-reply":
		return func() error { return t.loseReplies(f.For) }, func() error { return t.netem(t.lasting) }
	case "full":
		return func() error { return fill(f.For) }, func() error { return os.Remove(filler) }
	}
	return run("rpc.nfsd 0"), run(t.p.startNFS())
}

// smallShare leaves the share room for what a survey makes, and for little more: to fill it must not take a guest all
// its memory.
func smallShare() error {
	if err := unix.Mount("lab", guestShare, "tmpfs", unix.MS_REMOUNT, "size=32m,mode=0777"); err != nil {
		return fmt.Errorf("make the share small: %w", err)
	}
	return nil
}

// loseReplies begins to lose what the server sends, and a while later has the server close its connections, which it does
// when its address goes. Otherwise TCP would send the replies again until they arrive. What waits to be sent on a closed
// connection is dropped after one more try; so the clients, when they hear of the server again, connect and ask again.
func (t *trouble) loseReplies(d time.Duration) error {
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_orphan_retries", []byte("1"), 0); err != nil {
		return err
	}
	if err := t.netem(" loss 100%"); err != nil {
		return err
	}
	time.Sleep(d / 5)
	device := "lan"
	if t.p.UML.Hosts > 0 {
		device = "vec0"
	}
	return batch("ip", fmt.Sprintf("addr del %[1]s/24 dev %[2]s\naddr add %[1]s/24 dev %[2]s\n", guestServer, device))
}

// filler lies beside what the clients make, and takes all the space there is; what they free later they may have.
const filler = guestShare + "/claimbench-lab-filler"

func fill(within time.Duration) (err error) {
	until := time.Now().Add(within)
	f, err := os.Create(filler)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// Others may take some of what is left in the meantime, and then nothing is given; nor is it where a signal comes.
	for size := int64(0); time.Now().Before(until); {
		var st unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
			return err
		}
		if st.Bavail == 0 {
			return nil
		}
		more := int64(st.Bavail) * st.Bsize
		switch err := unix.Fallocate(int(f.Fd()), 0, size, more); {
		case err == nil:
			size += more
		case !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("fallocate %d blocks: %w", st.Bavail, err)
		}
	}
	return nil
}

// resent notes what NFS clients have sent more than once, by operation, and what the server has answered from its cache of
// replies (the first number after rc).
func (t *trouble) resent() {
	if t.p.UML.Server != "nfs" {
		return
	}
	const ask = `awk '$1 ~ /^[A-Z_]+:$/ && $3 > $2 && NF > 7 {printf "%s%d ", $1, $3-$2}' /proc/self/mountstats; grep ^rc /proc/net/rpc/nfsd`
	out, err := exec.Command("/bin/sh", "-c", ask).Output()
	t.note("sent again: " + strings.TrimSpace(string(out)))
	if err != nil {
		t.note(err.Error())
	}
}
