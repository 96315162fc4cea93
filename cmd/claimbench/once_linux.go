package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// child is COMMAND, and all that it has started.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when COMMAND has ended and been waited for
}

// startChild makes this process the one that orphans below it fall to, so that stop finds them, and has the kernel
// kill COMMAND when this process dies.
//
// The kernel sends that signal already when the thread ends that started the child: PR_SET_PDEATHSIG in prctl(2),
// golang.org/issue/27505. So the thread is kept until the child has ended. The flag is set between fork and exec,
// after which the child looks whether its parent is still there: it is no race that the parent can win by dying.
func startChild(cmd *exec.Cmd) (*child, error) {
	// Linux has it since 3.4. Without it, orphans are out of reach, as under any other parent.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c := &child{cmd, make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // ProcessState has it all
			close(c.ended)
		}
	}()
	return c, <-started
}

func (c *child) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// status is COMMAND's as a shell would give it, and whether a signal ended it.
func (c *child) status() (int, bool) {
	if c.cmd.ProcessState == nil { // it could not be waited for
		return statusCannotRun, false
	}
	state := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if state.Signaled() {
		return 128 + int(state.Signal()), true
	}
	return state.ExitStatus(), false
}

// stop ends all processes below this one: with SIGTERM, and after the grace with SIGKILL. The error names those that
// cannot be killed, as they wait for a dead server or belong to another user.
func (c *child) stop(grace time.Duration) error {
	const killed = 5 * time.Second
	c.signal(unix.SIGTERM)
	c.signal(unix.SIGCONT) // one that is stopped would not hear of it
	if c.goneWithin(grace, func() {}) || c.goneWithin(killed, func() { c.signal(unix.SIGKILL) }) {
		return nil
	}
	return fmt.Errorf("processes that cannot be killed are left: %d", descendants())
}

func (c *child) signal(sig syscall.Signal) {
	_ = c.cmd.Process.Signal(sig) // also where there is no /proc to find it in
	for _, pid := range descendants() {
		_ = unix.Kill(pid, sig) // gone meanwhile, or another user's: goneWithin sees which
	}
}

func (c *child) goneWithin(d time.Duration, meanwhile func()) bool {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		meanwhile()
		c.reap()
		if c.hasEnded() && len(descendants()) == 0 {
			return true
		}
		if time.Since(began) > d {
			return false
		}
	}
}

// reap waits for orphans that have ended. COMMAND itself is waited for elsewhere.
func (c *child) reap() {
	for _, pid := range childrenOf()[os.Getpid()] {
		if pid != c.cmd.Process.Pid {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // nothing to learn from either
		}
	}
}

func descendants() []int {
	children := childrenOf()
	below := children[os.Getpid()]
	for i := 0; i < len(below); i++ {
		below = append(below, children[below[i]]...)
	}
	return below
}

// childrenOf is the process table by parent; without /proc it is empty.
func childrenOf() map[int][]int {
	children := map[int][]int{}
	procs, _ := procfs.AllProcs()
	for _, p := range procs {
		if stat, err := p.Stat(); err == nil { // else it has ended
			children[stat.PPID] = append(children[stat.PPID], p.PID)
		}
	}
	return children
}

// relay passes signals on to COMMAND. Before there is one, a signal that would end it ends the attempt.
type relay struct {
	signals chan os.Signal
	cancel  context.CancelCauseFunc

	mu    sync.Mutex
	child *child
}

func newRelay() *relay { return &relay{signals: make(chan os.Signal, 64)} }

// listen also takes SIGPIPE, which then has no effect here, and which COMMAND inherits as it was: to ignore it
// would be inherited. A signal that is ignored, as under nohup(1), stays so.
func (r *relay) listen(cancel context.CancelCauseFunc) {
	r.cancel = cancel
	for _, sig := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGCONT, unix.SIGTSTP, unix.SIGCHLD, unix.SIGPIPE} {
		if !signal.Ignored(sig) {
			signal.Notify(r.signals, sig)
		}
	}
	go func() {
		for sig := range r.signals {
			r.handle(sig.(syscall.Signal))
		}
	}()
}

// start starts COMMAND, unless a signal came first.
func (r *relay) start(ctx context.Context, cmd *exec.Cmd) (*child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c, err := startChild(cmd)
	if err != nil {
		return nil, notExecutable(cmd.Args[0], err)
	}
	r.child = c
	return c, nil
}

func (r *relay) handle(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case sig == unix.SIGPIPE:
	case sig == unix.SIGCHLD:
		if r.child != nil {
			r.child.reap()
		}
	case r.child != nil:
		r.pass(sig)
	case sig != unix.SIGCONT && sig != unix.SIGTSTP:
		r.cancel(&statusError{128 + int(sig), fmt.Errorf("%v before COMMAND was started", sig)})
	}
	if sig == unix.SIGTSTP {
		// What SIGTSTP would have done: SIGTTIN has the same default action, and is not caught.
		_ = unix.Kill(os.Getpid(), unix.SIGTTIN)
	}
}

func (r *relay) pass(sig syscall.Signal) {
	if fromKeyboard(sig) {
		return
	}
	if err := r.child.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintf(os.Stderr, "claimbench: %v could not be passed on: %v\n", sig, err)
	}
}

// fromKeyboard takes a signal for a key press if the terminal would send it to this process group, which COMMAND is
// in, too. A program that gets it twice, once from the terminal and once from here, would take that for impatience.
func fromKeyboard(sig syscall.Signal) bool {
	if sig != unix.SIGINT && sig != unix.SIGQUIT && sig != unix.SIGTSTP {
		return false
	}
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(tty)
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
