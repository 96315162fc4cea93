package lab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is how long a guest may take until it has everything mounted.
const bootTime = 90 * time.Second

// prepareUML puts into the scratch directory what the guest needs of this program. A library of it reads /proc before
// main does, so that a script makes it first.
func (s *Stand) prepareUML() error {
	if err := copyFile("/proc/self/exe", filepath.Join(s.Dir, binaryName), 0o755); err != nil {
		return err
	}
	init := "#!/bin/sh\nmount -t proc lab /proc && exec " + filepath.Join(s.Dir, binaryName) + ` "$@"` + "\n"
	return os.WriteFile(filepath.Join(s.Dir, initName), []byte(init), 0o755)
}

func copyFile(from, to string, mode os.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// A guest is a kernel that runs.
type guest struct {
	dir   string // its scratch directory
	cmd   *exec.Cmd
	group int // its process group
	ended chan error
}

// boot starts a guest that carries out a plan. It is written down twice: by the mark, which stands before it, and by
// its process group, since the processes that a UML kernel makes for its own have lost their environment.
func (s *Stand) boot(p plan) (*guest, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(p.Dir, planName), data, 0o600); err != nil {
		return nil, err
	}
	kernel, err := filepath.EvalSymlinks(program("linux.uml"))
	if err != nil {
		return nil, err
	}
	args := []string{kernel,
		fmt.Sprintf("mem=%dM", cmp.Or(p.UML.MemMiB, 512)), "umid=lab", "uml_dir=" + filepath.Join(p.Dir, "uml"),
		"rootfstype=hostfs", "rootflags=/", "ro", "quiet", "con=null", "con0=" + console(p.Shell),
		"init=" + filepath.Join(s.Dir, initName), GuestVariable + "=" + p.Dir,
	}
	if p.UML.Hosts > 0 {
		args = s.onBridges(append(args, p.devices()...)...)
	}
	cmd := s.command(context.Background(), append(args, "lab", "guest"))
	if p.Shell {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr.Foreground = true
	} else {
		log, err := os.OpenFile(filepath.Join(p.Dir, consoleName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
	}
	cmd.SysProcAttr.Pgid = 0 // the kernel would leave the stand's group for a session of its own
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &guest{dir: p.Dir, cmd: cmd, group: cmd.Process.Pid, ended: make(chan error, 1)}
	go func() { g.ended <- cmd.Wait() }()
	return g, s.ledger.Note(Entry{Kind: kindGroup, PGID: g.group, Path: kernel, Mark: s.ledger.Mark})
}

func console(shell bool) string {
	if shell {
		return "fd:0,fd:1"
	}
	return "null,fd:1"
}

// surveyUML boots a guest that surveys itself, and waits until it has.
func (s *Stand) surveyUML(ctx context.Context, args []string, limit time.Duration) error {
	u := *s.Target.UML
	g, err := s.boot(plan{Target: s.Target.Name, UML: u, Dir: s.Dir, Survey: args})
	if g == nil {
		return err
	}
	defer g.kill()
	if err != nil {
		return err
	}
	if err := g.wait(ctx, stateSurveying, bootTime); err != nil {
		return err
	}
	return g.wait(ctx, stateDone, limit)
}

// wait waits until the guest has come as far as state.
func (g *guest) wait(ctx context.Context, state string, limit time.Duration) error {
	deadline := time.After(limit)
	for ended := false; ; {
		switch word, err := os.ReadFile(filepath.Join(g.dir, stateName)); {
		case err == nil && (string(word) == state || string(word) == stateDone):
			return nil
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return err
		}
		if why, err := os.ReadFile(filepath.Join(g.dir, failureName)); err == nil && bytes.HasSuffix(why, []byte("\n")) {
			return fmt.Errorf("in the guest: %s%s", bytes.TrimSpace(why), g.tail())
		}
		if ended {
			return fmt.Errorf("the guest ended before it was %s%s", state, g.tail())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-g.ended: // what it said last has not been read yet
			g.ended <- nil
			ended = true
		case <-deadline:
			return fmt.Errorf("the guest was not %s within %v%s", state, limit, g.tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

const tailLines = 15

// tail is the end of what the console says, for an error.
func (g *guest) tail() string {
	data, err := os.ReadFile(filepath.Join(g.dir, consoleName))
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return "; its console says nothing"
	}
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(data), "\r", "")), "\n")
	return "; its console ends in\n  | " + strings.Join(lines[max(0, len(lines)-tailLines):], "\n  | ")
}

// kill ends the guest's whole process group: the kernel's helpers would outlive the kernel.
func (g *guest) kill() {
	unix.Kill(-g.group, unix.SIGKILL) // ESRCH: all have ended
	<-g.ended
}
