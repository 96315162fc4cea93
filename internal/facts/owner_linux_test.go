package facts

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSelfIsNeverGone(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if gone, why := OwnerGone(self); gone || why != "it is running" {
		t.Errorf("this process: gone %v, %s", gone, why)
	}
	if self.PID != os.Getpid() || self.StartTicks == 0 || self.BootID == "" || self.Host == "" || self.PIDNamespace == "" {
		t.Errorf("incomplete: %+v", self)
	}
}

func TestOwnerSurvivesJSON(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(self)
	if err != nil {
		t.Fatal(err)
	}
	var back Owner
	if err := json.Unmarshal(b, &back); err != nil || back != self {
		t.Errorf("%s came back as %+v, %v", b, back, err)
	}
	for _, name := range []string{"host", "boot_id", "pid_namespace", "pid", "start_ticks"} {
		if !strings.Contains(string(b), `"`+name+`":`) {
			t.Errorf("%s is missing in %s", name, b)
		}
	}
}

// TestAChildIsGoneOnceItHasEnded follows one process through its life: running, a zombie, collected.
func TestAChildIsGoneOnceItHasEnded(t *testing.T) {
	var o Owner
	c := start(t, "owner", nil, nil, &o)
	if gone, why := OwnerGone(o); gone || why != "it is running" {
		t.Fatalf("a running child: gone %v, %s", gone, why)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the zombie to be seen as gone", func() bool { gone, _ := OwnerGone(o); return gone })
	if seen := look(o.PID); seen.absent || !seen.ended {
		t.Errorf("the child is not collected yet, and is seen as %+v", seen)
	}
	c.Wait()
	gone, why := OwnerGone(o)
	if !gone || why != "no process has its id any more" {
		t.Errorf("the collected child: gone %v, %s", gone, why)
	}
}

// TestAProcessWithoutItsLeaderRuns: the thread that leads the process has ended and is a zombie, another one runs.
func TestAProcessWithoutItsLeaderRuns(t *testing.T) {
	var o Owner
	start(t, "headless", nil, nil, &o)
	eventually(t, "the leading thread to end", func() bool {
		stat, err := readStat(o.PID)
		return err == nil && stat.State == "Z"
	})
	if gone, why := OwnerGone(o); gone || why != "it is running" {
		t.Errorf("a process with a running thread: gone %v, %s", gone, why)
	}
}

func TestAProcessOfAnotherPIDNamespaceIsNeverProvablyGone(t *testing.T) {
	needRoot(t)
	var o Owner
	c := start(t, "owner", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, nil, &o)
	if o.PID != 1 {
		t.Fatalf("the child calls itself %d, want 1", o.PID)
	}
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	if gone, why := OwnerGone(o); gone || !strings.Contains(why, "another pid namespace") {
		t.Errorf("gone %v: %s", gone, why)
	}
}

// TestAForeignProcIsNotAsked: the child is process 1 of its namespace, and under /proc, which belongs to ours,
// process 1 is another one that started at another time.
func TestAForeignProcIsNotAsked(t *testing.T) {
	needRoot(t)
	var got goneAnswer
	start(t, "own record", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, nil, &got)
	if got.Gone {
		t.Errorf("a process says of itself that it is gone: %s", got.Why)
	}
}

// TestAHiddenProcessIsNotGone: with hidepid=2 a process of another user does not appear under /proc.
func TestAHiddenProcessIsNotGone(t *testing.T) {
	ownMounts(t)
	var o Owner
	owner := start(t, "owner", nil, nil, &o)
	mount(t, "proc", "/proc", "proc", 0, "hidepid=2")
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var got goneAnswer
	start(t, "gone", nobody, o, &got)
	if got.Gone {
		t.Errorf("a hidden process is said to be gone: %s", got.Why)
	}
	if err := owner.end(); err != nil {
		t.Fatal(err)
	}
	start(t, "gone", nobody, o, &got)
	if !got.Gone {
		t.Errorf("a hidden process that has ended is not seen as gone: %s", got.Why)
	}
}

// TestAReusedIDIsNotItsFormerOwner runs in a pid namespace of its own, where the kernel can be told which id comes
// next (ns_last_pid, pid_namespaces(7)).
func TestAReusedIDIsNotItsFormerOwner(t *testing.T) {
	needRoot(t)
	if _, err := os.Stat("/proc/sys/kernel/ns_last_pid"); err != nil {
		t.Skip("a kernel without CONFIG_CHECKPOINT_RESTORE can't be told which process id comes next")
	}
	var got any
	start(t, "reuse", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}, nil, &got)
	want := map[string]any{"Gone": true, "Why": "its id has gone to a process that started at another time"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// reusedID runs in a child that is alone in a pid namespace.
//
//  1. A starts, is identified, and ends.
//  2. B starts under A's id.
//  3. Is A gone?
func reusedID() (goneAnswer, error) {
	if err := errorsOf(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
	); err != nil {
		return goneAnswer{}, err
	}
	var a, b Owner
	formerly, err := spawn("owner", nil, nil, &a)
	if err := errorsOf(err, formerly.end()); err != nil {
		return goneAnswer{}, err
	}
	for range 100 {
		time.Sleep(20 * time.Millisecond) // two clock ticks, the unit of start times
		last := fmt.Sprint(a.PID - 1)
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(last), 0); err != nil {
			return goneAnswer{}, err
		}
		now, err := spawn("owner", nil, nil, &b)
		if err != nil {
			return goneAnswer{}, err
		}
		if b.PID == a.PID {
			got := verdict(OwnerGone(a))
			return got, now.end()
		}
		if err := now.end(); err != nil {
			return goneAnswer{}, err
		}
	}
	return goneAnswer{}, fmt.Errorf("id %d never came back", a.PID)
}

func TestGoneIsProvedOrRefused(t *testing.T) {
	base := Owner{
		Host: "h", BootID: "boot", MachineID: "machine", PIDNamespace: InitialPIDNamespace,
		TimeNamespace: "time:[1]", PID: 42, StartTicks: 100,
	}
	with := func(change func(*Owner)) Owner { o := base; change(&o); return o }
	rebooted := func(o *Owner) { o.BootID = "earlier" }
	for _, tt := range []struct {
		name  string
		owner Owner
		self  Owner
		seen  sighting
		gone  bool
		why   string
	}{
		{"runs", base, base, sighting{ticks: 100}, false, "running"},
		{"id is free", base, base, sighting{absent: true}, true, "no process"},
		{"id reused", base, base, sighting{ticks: 101}, true, "another time"},
		{"id reused by a zombie", base, base, sighting{ticks: 101, ended: true}, true, "another time"},
		{"zombie", base, base, sighting{ticks: 100, ended: true}, true, "has ended"},
		{"start unreadable", base, base, sighting{}, false, "not known"},
		{"start not recorded", with(func(o *Owner) { o.StartTicks = 0 }), base, sighting{ticks: 100}, false, "not known"},
		{"other time namespace", with(func(o *Owner) { o.TimeNamespace = "time:[2]" }), base, sighting{ticks: 101}, false, "time namespaces"},
		{"other pid namespace", with(func(o *Owner) { o.PIDNamespace = "pid:[2]" }), base, sighting{absent: true}, false, "another pid namespace"},
		{"other host", with(func(o *Owner) { o.Host = "i" }), base, sighting{absent: true}, false, "host i"},
		{"empty record", Owner{}, base, sighting{absent: true}, false, "record"},
		{"no id in the record", with(func(o *Owner) { o.PID = 0 }), base, sighting{absent: true}, false, "record"},
		{"negative id", with(func(o *Owner) { o.PID = -1 }), base, sighting{absent: true}, false, "record"},
		{"own boot id unreadable", base, with(func(o *Owner) { o.BootID = "" }), sighting{absent: true}, false, "can't be read"},
		{"own namespace unreadable", base, with(func(o *Owner) { o.PIDNamespace = "" }), sighting{absent: true}, false, "can't be read"},
		{"booted since", with(rebooted), base, sighting{ticks: 100}, true, "booted since"},
		{"other machine of one name", with(func(o *Owner) { rebooted(o); o.MachineID = "clone" }), base, sighting{absent: true}, false, "another machine"},
		{"machine unknown", with(func(o *Owner) { rebooted(o); o.MachineID = "" }), with(func(o *Owner) { o.MachineID = "" }), sighting{absent: true}, false, "can't be shown"},
		{"was in a container", with(func(o *Owner) { rebooted(o); o.PIDNamespace = "pid:[2]" }), base, sighting{absent: true}, false, "container"},
		{"asked from a container", with(rebooted), with(func(o *Owner) { o.PIDNamespace = "pid:[2]" }), sighting{absent: true}, false, "container"},
	} {
		gone, why := provablyGone(tt.owner, tt.self, tt.seen)
		if gone != tt.gone || !strings.Contains(why, tt.why) {
			t.Errorf("%s: gone %v, %q; want %v, %q", tt.name, gone, why, tt.gone, tt.why)
		}
	}
}

func TestAMachineIsItsFirmwareAndItsDisk(t *testing.T) {
	const disk, otherDisk = "3d1219c7c4c5404aaa1f6d2a48adfda4", "0f1219c7c4c5404aaa1f6d2a48adfda4"
	const firmware, clone = "4c4c4544-0042-3510-8052-b9c04f395831", "4c4c4544-0042-3510-8052-b9c04f395832"
	id := hashMachine(disk, firmware)
	if len(id) != 64 || strings.Contains(id, disk) {
		t.Errorf("not a hash: %q", id)
	}
	if id != hashMachine(disk, strings.ToUpper(firmware)) {
		t.Error("the case of the firmware's id matters")
	}
	if id == hashMachine(disk, clone) || id == hashMachine(otherDisk, firmware) {
		t.Error("two machines have one id")
	}
	for _, unreal := range [][2]string{
		{"", firmware}, {disk, ""}, {"uninitialized", firmware}, {disk, "Not Settable"},
		{disk, "00000000-0000-0000-0000-000000000000"}, {disk, "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"},
		{disk, "03000200-0400-0500-0006-000700080009"}, {disk, firmware[1:]},
	} {
		if got := hashMachine(unreal[0], unreal[1]); got != "" {
			t.Errorf("%q tell a machine: %s", unreal, got)
		}
	}
}
