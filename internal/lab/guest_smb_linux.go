package lab

import (
	"net"
	"os"
	"time"
)

const smbConfig = `[global]
server role = standalone server
map to guest = bad user
guest account = root
log file = /var/log/samba/log
lock directory = /run/samba
state directory = /run/samba
cache directory = /run/samba
private directory = /run/samba
pid directory = /run/samba
ncalrpc dir = /run/samba/ncalrpc
disable spoolss = yes
load printers = no
[share]
path = ` + guestShare + `
read only = no
guest ok = yes
`

// serveSMB starts Samba, and waits until it listens.
func (p *plan) serveSMB() error {
	if err := modules("cifs"); err != nil {
		return err
	}
	config := smbConfig
	if p.UML.Share != "" {
		config += p.UML.Share + "\n"
	}
	if err := os.WriteFile("/run/smb.conf", []byte(config), 0o644); err != nil {
		return err
	}
	if err := guestRun("mkdir -p /run/samba /var/log/samba /var/lib/samba /var/cache/samba", "smbd --daemon --configfile=/run/smb.conf"); err != nil {
		return err
	}
	return until(20*time.Second, reaches(guestServer+":445"))
}

func reaches(address string) func() error {
	return func() error {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// serve9P starts diod.
func (p *plan) serve9P() error {
	if err := modules("9pnet_fd", "9p"); err != nil {
		return err
	}
	if err := guestRun("diod -n -l 0.0.0.0:564 -e " + guestShare + " -L /var/log/diod"); err != nil {
		return err
	}
	return until(20*time.Second, reaches(guestServer+":564"))
}
