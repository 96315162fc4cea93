package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// misbehave makes the lasting faults of a plan come true and returns a function that carries on with the recurring
// ones until stop is closed. What happened when is in the file faultLog.
func (p *plan) misbehave() (recur func(stop <-chan struct{}), err error) {
	var recurring []Fault
	netem := ""
	for _, text := range p.UML.Faults {
		f, err := parseFault(text)
		if err != nil {
			return nil, err
		}
		switch f.Kind {
		case "latency":
			netem += " delay " + f.For.String()
		case "loss":
			netem += fmt.Sprintf(" loss %d%%", f.Percent)
		default:
			recurring = append(recurring, f)
		}
	}
	if netem != "" {
		if err := p.netem(netem); err != nil {
			return nil, err
		}
	}
	return func(stop <-chan struct{}) { p.recur(recurring, stop) }, nil
}

// netem delays or loses what the server sends to its clients.
func (p *plan) netem(how string) error {
	if err := modules("sch_netem"); err != nil {
		return err
	}
	if p.UML.Hosts > 0 {
		return guestRun("tc qdisc add dev vec0 root netem" + how)
	}
	for n := 1; n <= p.UML.clients(); n++ {
		if err := guestRun(fmt.Sprintf("tc qdisc add dev v%d root netem%s", n, how)); err != nil {
			return err
		}
	}
	return nil
}

// recur lets the recurring faults happen, each at its own pace.
func (p *plan) recur(faults []Fault, stop <-chan struct{}) {
	for _, f := range faults {
		go func() {
			for tick := time.NewTicker(f.Every); ; {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				p.note("begins: " + f.String())
				if err := p.happen(f); err != nil {
					p.note(err.Error())
				}
				p.note("is over: " + f.String())
			}
		}()
	}
}

// happen is one restart or one cut, from beginning to end. After a restart the server waits for its clients to reclaim
// what they had; that they have to wait as well is part of the fault.
func (p *plan) happen(f Fault) error {
	down, up := "rpc.nfsd 0", p.startNFS()
	if f.Kind == "cut" {
		n := p.UML.clients()
		down, up = fmt.Sprintf("ip link set v%d nomaster", n), fmt.Sprintf("ip link set v%d master lan", n)
	}
	if err := guestRun(down); err != nil {
		return err
	}
	time.Sleep(f.For)
	return guestRun(up)
}

// note adds a line to the log of faults, with the time since boot.
func (p *plan) note(what string) {
	f, err := os.OpenFile(filepath.Join(guestDir, faultLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "%8.2f s %s\n", time.Since(booted).Seconds(), what)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Println("claimbench lab guest:", err)
	}
}
