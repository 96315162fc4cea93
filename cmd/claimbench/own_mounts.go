package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// ownMounts is in the environment of a process that has a mount namespace of its own.
const ownMounts = "CLAIMBENCH_OWN_MOUNTS"

// inOwnMounts runs this program with the arguments in a mount namespace of its own, which takes whatever was mounted with it, however
// it ends. ran is false where this process must do it itself: it is that one already, it may not mount anything, or it
// may not have a namespace.
func inOwnMounts(cmd *cobra.Command, args []string) (ran bool, err error) {
	if os.Geteuid() != 0 || os.Getenv(ownMounts) != "" {
		return false, nil
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(signals)
	again := againAs(cmd, args)
	runtime.LockOSThread() // Pdeathsig is about the thread that started the child (go.dev/issue/27505)
	defer runtime.UnlockOSThread()
	if err := again.Start(); err != nil {
		return false, nil
	}
	ended := make(chan error, 1)
	go func() { ended <- again.Wait() }()
	for {
		select {
		case s := <-signals:
			// It has ended, if this fails.
			_ = again.Process.Signal(s)
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.Exited() {
				return true, &statusError{status: exit.ExitCode()}
			}
			if err != nil {
				return true, cannotRun(err)
			}
			return true, nil
		}
	}
}

// againAs is this program as another process, in a process group of its own: Ctrl-C reaches this one alone, which hands
// it on once.
func againAs(cmd *cobra.Command, args []string) *exec.Cmd {
	again := exec.Command("/proc/self/exe", args...)
	again.Env = append(os.Environ(), ownMounts+"=1")
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
	again.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Setpgid: true, Pdeathsig: unix.SIGKILL}
	return again
}
