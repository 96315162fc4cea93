package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// guestHosts names the machines: servers look their clients up by address, and there is no name server to ask.
func guestHosts() error {
	hosts := "127.0.0.1 localhost\n" + guestServer + " lab server\n"
	for n := 1; n <= mostHosts; n++ {
		hosts += fmt.Sprintf("10.77.0.%d client-%d\n", 10+n, n)
	}
	if err := os.WriteFile("/run/hosts", []byte(hosts), 0o644); err != nil {
		return err
	}
	return unix.Mount("/run/hosts", "/etc/hosts", "", unix.MS_BIND, "")
}

// network makes a namespace for each client, all on one bridge with the server. Starting a program takes a guest a
// tenth of a second, so that ip gets all it has to do at once.
func (p *plan) network() error {
	if err := modules("bridge", "veth"); err != nil {
		return err
	}
	lines := "link set lo up\nlink add lan type bridge\naddr add " + guestServer + "/24 dev lan\nlink set lan up\n"
	for n := 1; n <= p.UML.clients(); n++ {
		lines += fmt.Sprintf("netns add n%d\nlink add v%d type veth peer name eth0 netns n%d\nlink set v%d master lan up\n", n, n, n, n)
	}
	if err := batch("ip", lines); err != nil {
		return err
	}
	for n := 1; n <= p.UML.clients(); n++ {
		lines := fmt.Sprintf("link set lo up\naddr add 10.77.0.%d/24 dev eth0\nlink set eth0 up\n", 10+n)
		if err := batch("ip", lines, "-n", fmt.Sprintf("n%d", n)); err != nil {
			return err
		}
	}
	return nil
}

// batch gives ip or tc many commands at once, a line each.
func batch(program, lines string, args ...string) error {
	said(program + " " + strings.Join(strings.Split(strings.TrimSpace(lines), "\n"), "; "))
	cmd := exec.Command(program, append(args, "-batch", "-")...)
	cmd.Stdin = strings.NewReader(lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w%s", program, err, lastLine(out))
	}
	return nil
}
