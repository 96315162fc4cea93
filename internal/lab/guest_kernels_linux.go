package lab

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// carryOutNode is what one of several kernels does: it serves the share, or mounts it and joins the survey.
func (p *plan) carryOutNode() error {
	if err := p.identify(); err != nil {
		return err
	}
	lines := "link set lo up\n"
	for i, net := range []string{"10.77.0", "10.78.0"} {
		lines += fmt.Sprintf("addr add %s.%d/24 dev vec%d\nlink set vec%d up\n", net, p.address(), i, i)
	}
	if err := batch("ip", lines); err != nil {
		return err
	}
	if p.Node == 0 {
		return p.serveNodes()
	}
	if err := p.nodeClient(); err != nil {
		return err
	}
	at, err := p.mountShare(1)
	if err != nil {
		return err
	}
	return p.join(at)
}

// address ends the node's addresses, as that of a namespace does in one kernel.
func (p *plan) address() int {
	if p.Node == 0 {
		return 1
	}
	return 10 + p.Node
}

// identify gives the machine its name, and the id that belongs to it: clones have both in common.
func (p *plan) identify() error {
	name := p.UML.hostName(p.Node)
	if err := unix.Sethostname([]byte(name)); err != nil {
		return err
	}
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:32]
	if err := os.WriteFile("/run/machine-id", []byte(id+"\n"), 0o444); err != nil {
		return err
	}
	err := unix.Mount("/run/machine-id", "/etc/machine-id", "", unix.MS_BIND, "")
	if errors.Is(err, unix.ENOENT) { // this machine has none
		return nil
	}
	return err
}

// serveNodes serves the share until the lab ends the machine.
func (p *plan) serveNodes() error {
	if p.UML.disk() {
		if err := keepOnDisk(guestShare, "/var/lib/nfs"); err != nil {
			return err
		}
	}
	if err := p.serve(); err != nil {
		return err
	}
	p.UML.Faults = slices.DeleteFunc(p.UML.Faults, Fault.outside) // those are the lab's to make
	t, err := p.misbehave()
	if err != nil {
		return err
	}
	failed := make(chan error)
	for _, f := range t.recurring {
		go func() { failed <- t.obey(f) }()
	}
	tell(stateName, stateSurveying)
	for {
		select {
		case err := <-failed:
			return err
		case <-time.After(time.Hour): // a program in which nothing is to happen any more is ended by its runtime
		}
	}
}

// keepOnDisk puts directories on the machine's disk.
func keepOnDisk(dirs ...string) error {
	const disk = "/media/disk"
	commands := []string{"mkdir " + disk + " && mount -t ext4 /dev/ubda " + disk}
	for i, dir := range dirs {
		commands = append(commands, fmt.Sprintf("mkdir -p -m 777 %s/%d && mount --bind %s/%d %s", disk, i, disk, i, dir))
	}
	return guestRun(commands...)
}

// nodeClient makes the kernel a client of the share, which another one may be about to serve.
func (p *plan) nodeClient() error {
	port, needs := ":445", []string{"cifs"}
	switch p.UML.Server {
	case "nfs":
		port, needs = ":2049", []string{"sunrpc", "nfs", "nfsv3", "nfsv4", "lockd"}
	case "9p":
		port, needs = ":564", []string{"9pnet_fd", "9p"}
	}
	if err := modules(needs...); err != nil {
		return err
	}
	if p.UML.Server == "nfs" && p.version3() {
		if err := guestRun(p.rpcServices() + "true"); err != nil {
			return err
		}
	}
	return until(bootTime, reaches(guestServer+port))
}

// join takes part in the survey, until it is over.
func (p *plan) join(at string) error {
	log, err := os.Create(filepath.Join(guestDir, joinLog))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(guestDir, binaryName), "join", "--dir", at, "--token-file", filepath.Join(guestDir, tokenName), meeting)
	cmd.Stdout, cmd.Stderr = log, log
	tell(stateName, stateSurveying)
	if err := cmd.Run(); err != nil {
		out, readErr := os.ReadFile(log.Name())
		return errors.Join(fmt.Errorf("join: %w%s", err, lastLine(out)), readErr)
	}
	return nil
}
