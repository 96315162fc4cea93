package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Where things are in a guest.
const (
	guestDir    = "/mnt/lab"   // the scratch directory of the host
	guestShare  = "/mnt/share" // what is served
	guestServer = "10.77.0.1"
)

// Guest is init of a UML guest: it makes what the plan says, runs the survey, and switches the machine off. Nothing
// else may call it.
func Guest() {
	err := guestMain(os.Getenv(GuestVariable))
	if err != nil {
		line := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
		fmt.Println("claimbench lab guest:", line)
		kernelLog()
		tell(failureName, line+"\n")
	} else {
		tell(stateName, stateDone)
	}
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// kernelLog puts what the guest's kernel said last on the console: mount(8) refers to it.
func kernelLog() {
	if out, err := exec.Command("/bin/sh", "-c", "dmesg | tail -n 8; tail -n 5 /var/log/diod 2>/dev/null").Output(); err == nil {
		fmt.Printf("%s", out)
	}
}

// tell writes a file of the scratch directory. A guest that cannot has nobody to tell it to; the host's deadline ends it.
func tell(name, content string) {
	if err := os.WriteFile(filepath.Join(guestDir, name), []byte(content), 0o644); err != nil {
		fmt.Println("claimbench lab guest:", err)
	}
}

func guestMain(dir string) error {
	if os.Getpid() != 1 || dir == "" {
		return errors.New("lab guest is for the lab's own machines")
	}
	os.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
	os.Setenv("HOME", "/tmp")
	if err := guestMounts(dir); err != nil {
		return err
	}
	tell(stateName, stateUp)
	data, err := os.ReadFile(filepath.Join(guestDir, planName))
	if err != nil {
		return err
	}
	var p plan
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	return p.carryOut()
}

// guestMounts makes a machine out of a kernel: its own /proc, /sys and /dev, memory where programs write, and the
// scratch directory, which is the only place of the host that it may write to.
func guestMounts(dir string) error {
	mounts := [][3]string{{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"devtmpfs", "/dev", ""}}
	for _, at := range []string{"/run", "/tmp", "/mnt", "/media", "/var/log", "/var/lib", "/var/cache", "/dev/shm"} {
		mounts = append(mounts, [3]string{"tmpfs", at, ""})
	}
	mounts = append(mounts, [3]string{"tmpfs", "/var/lib/nfs", ""}, [3]string{"hostfs", guestDir, dir}, [3]string{"tmpfs", guestShare, "mode=0777"}, [3]string{"devpts", "/dev/pts", ""})
	for _, m := range mounts {
		if _, err := os.Stat(m[1]); err != nil {
			if err := os.MkdirAll(m[1], 0o755); err != nil {
				return err
			}
		}
		err := unix.Mount("lab", m[1], m[0], 0, m[2])
		if err != nil && !errors.Is(err, unix.EBUSY) { // /proc and /dev are mounted already
			return fmt.Errorf("mount %s at %s: %w", m[0], m[1], err)
		}
	}
	if err := guestHosts(); err != nil {
		return err
	}
	return guestModules()
}

// guestModules lets the guest's kernel find its modules, which Debian keeps outside of /lib/modules: by a modprobe of
// its own, which the kernel calls as well.
func guestModules() error {
	const modprobe = "/run/modprobe"
	if err := os.WriteFile(modprobe, []byte("#!/bin/sh\nexec modprobe -d /media \"$@\"\n"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/kernel/modprobe", []byte(modprobe), 0); err != nil {
		return err
	}
	if err := os.MkdirAll("/media/lib/modules", 0o755); err != nil {
		return err
	}
	return unix.Mount("/usr/lib/uml/modules", "/media/lib/modules", "", unix.MS_BIND, "")
}

func (p *plan) carryOut() error {
	if p.UML.Hosts > 0 {
		return p.carryOutNode()
	}
	if err := unix.Sethostname([]byte("lab")); err != nil {
		return err
	}
	if err := p.network(); err != nil {
		return err
	}
	if err := p.serve(); err != nil {
		return err
	}
	var routes []string
	for n := 1; n <= p.UML.Mounts; n++ {
		at, err := p.mountShare(n)
		if err != nil {
			return err
		}
		routes = append(routes, at)
	}
	if p.Shell {
		return p.shell(routes)
	}
	return p.survey(routes)
}

func (p *plan) serve() error {
	return map[string]func() error{"nfs": p.serveNFS, "smb": p.serveSMB, "9p": p.serve9P}[p.UML.Server]()
}

func modules(names ...string) error {
	return guestRun("/run/modprobe -a " + strings.Join(names, " "))
}

var booted = time.Now()

// guestRun runs commands through the shell, one after the other, and says so on the console.
func guestRun(commands ...string) error {
	for _, c := range commands {
		said(c)
		out, err := exec.Command("/bin/sh", "-c", c).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w%s", c, err, lastLine(out))
		}
	}
	return nil
}

// said says on the console what is done next, and when.
func said(what string) { fmt.Printf("[%6.2f s] %s\n", time.Since(booted).Seconds(), what) }

// client is the number of the namespace that mount n is made from.
func (p *plan) client(n int) int { return min(n, p.UML.clients()) }

// mountShare mounts the share for the n-th time, from its client's namespace, but where every process sees it.
func (p *plan) mountShare(n int) (string, error) {
	at := fmt.Sprintf("/mnt/at%d", n)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	fstype, source, options := p.shareMount()
	if p.UML.Options != "" {
		options = append(options, p.UML.Options)
	}
	command := fmt.Sprintf("mount -t %s -o %s %s %s", fstype, strings.Join(options, ","), source, at)
	if p.UML.Hosts == 0 {
		command = fmt.Sprintf("nsenter --net=/run/netns/n%d %s", p.client(n), command)
	}
	if err := guestRun(command); err != nil {
		return "", err
	}
	if p.UML.Overlay == "" {
		return at, nil
	}
	return overlayOver(at, n)
}

// overlayOver mounts an overlay whose lower layer is the share.
func overlayOver(share string, n int) (string, error) {
	at, memory := fmt.Sprintf("/mnt/over%d", n), fmt.Sprintf("/mnt/memory%d", n)
	if err := modules("overlay"); err != nil {
		return "", err
	}
	return at, guestRun(
		"mkdir -p "+at+" "+memory,
		"mount -t tmpfs lab "+memory,
		"mkdir "+memory+"/upper "+memory+"/work",
		fmt.Sprintf("mount -t overlay -o lowerdir=%s,upperdir=%s/upper,workdir=%s/work lab %s", share, memory, memory, at),
	)
}

// shareMount is how a client mounts the share.
func (p *plan) shareMount() (fstype, source string, options []string) {
	switch p.UML.Server {
	case "smb":
		return "cifs", "//" + guestServer + "/share", []string{"guest", "vers=3.1.1"}
	case "9p":
		return "9p", guestServer, []string{"trans=tcp", "port=564", "version=9p2000.L", "uname=root", "access=user", "aname=" + guestShare}
	}
	if p.version3() {
		return "nfs", guestServer + ":" + guestShare, nil
	}
	return "nfs", guestServer + ":/", nil
}

// survey runs claimbench as its user would, from the first client's network namespace: ip gives it that namespace's
// /sys, where the client's identifier is.
func (p *plan) survey(routes []string) error {
	args := append([]string{"netns", "exec", "n1", filepath.Join(guestDir, binaryName)}, p.Survey...)
	args = append(args, routes[0])
	for _, r := range routes[1:] {
		args = append(args, "--route", routes[0]+"="+r)
	}
	log, err := os.Create(filepath.Join(guestDir, surveyLog))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("ip", args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = guestDir
	t, err := p.misbehave()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	tell(stateName, stateSurveying)
	stop := make(chan struct{})
	defer close(stop)
	t.recur(stop)
	ended := cmd.Wait()
	if len(p.UML.Faults) > 0 {
		t.resent()
	}
	if err := t.tellTimes(); err != nil {
		return err
	}
	return surveyed(ended, filepath.Join(guestDir, surveyLog), filepath.Join(guestDir, resultName))
}

// shell leaves a person in the first mount.
func (p *plan) shell(routes []string) error {
	fmt.Printf("mounted: %s; the share is %s; exit ends the machine\n", strings.Join(routes, " "), guestShare)
	cmd := exec.Command("ip", "netns", "exec", "n1", "setsid", "-c", "/bin/bash")
	cmd.Dir = routes[0]
	cmd.Env = append(os.Environ(), "PS1=lab:\\w# ", "TERM=vt100")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// until repeats a check until it says nil, but not for ever.
func until(limit time.Duration, check func() error) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil || time.Since(began) > limit {
			return err
		}
	}
}
