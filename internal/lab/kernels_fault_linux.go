package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// misbehave lets those faults happen that come and go, until ctx is done. What is returned waits for the last one to be
// over.
func (n *nodes) misbehave(ctx context.Context, fail context.CancelCauseFunc) (over func() error) {
	var all sync.WaitGroup
	d := &diary{dir: n.s.Dir, began: time.Now()}
	for _, f := range n.s.Target.UML.Faults {
		if !f.outside() && !f.within() {
			d.begins(f) // the server has it, all the time
			continue
		}
		all.Go(func() {
			for n.pause(ctx, f) {
				end := d.begins(f)
				if err := n.happen(ctx, f, fail); err != nil {
					if ctx.Err() == nil {
						fail(fmt.Errorf("fault %q: %w", f, err))
					}
					return
				}
				if f.Every == 0 {
					return // and lasts
				}
				end()
			}
		})
	}
	return func() error { all.Wait(); return d.tellTimes() }
}

// pause waits until the survey has its directory and a fault is due, and reports whether it still is.
func (n *nodes) pause(ctx context.Context, f Fault) bool {
	due := f.Every - f.For
	if f.Kind == "death" {
		due = f.For
	}
	return waitForSteps(n.s.Dir, ctx.Done()) && sleep(ctx, due)
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// happen is one fault from its beginning to its end. A link is cut at the bridge: a kernel whose device is taken down
// under it keeps a processor busy.
func (n *nodes) happen(ctx context.Context, f Fault, fail context.CancelCauseFunc) error {
	last := n.s.Target.UML.Hosts
	switch {
	case f.within():
		return n.order(ctx, f)
	case f.Kind == "death":
		n.ending.Lock()
		defer n.ending.Unlock()
		n.kill(last)
		return nil
	case f.Kind == "reboot":
		return n.reboot(ctx, f, fail)
	}
	if err := n.s.run(ctx, n.s.onBridges("ip", "link", "set", tap(last), "nomaster")); err != nil {
		return err
	}
	sleep(ctx, f.For)
	return n.s.run(context.WithoutCancel(ctx), n.s.onBridges("ip", "link", "set", tap(last), "master", "data"))
}

// order has the server make a fault happen that is within it, and waits until it is over. A server that cannot says so in
// its file of failures, which ends the survey.
func (n *nodes) order(ctx context.Context, f Fault) error {
	order := filepath.Join(n.s.nodeDir(0), f.order())
	if err := os.WriteFile(order, nil, 0o644); err != nil {
		return err
	}
	for sleep(ctx, 20*time.Millisecond) {
		if _, err := os.Stat(order); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	return ctx.Err()
}

// reboot cuts the server's power, and boots it again from its disk.
func (n *nodes) reboot(ctx context.Context, f Fault, fail context.CancelCauseFunc) error {
	n.ending.Lock()
	defer n.ending.Unlock()
	n.kill(0)
	if err := os.Remove(filepath.Join(n.s.nodeDir(0), stateName)); err != nil {
		return err
	}
	if !sleep(ctx, f.For) {
		return ctx.Err()
	}
	if err := n.boot(0); err != nil {
		return err
	}
	if err := n.guests[0].wait(ctx, stateSurveying, bootTime); err != nil {
		return err
	}
	n.watch(ctx, 0, fail)
	return nil
}
