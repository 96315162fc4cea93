package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// A Stand is a target that is made, or being made: its scratch directory, its ledger, and the ways that lead to it.
type Stand struct {
	Target Target
	Dir    string   // the scratch directory
	Routes []string // of the directory to survey
	ledger *Ledger
	disk   string // what is below the layer
	group  int    // the process group of everything that is started
}

// Where says where the lab works.
type Where struct {
	Scratch string // directory for scratch directories and images
	Ledgers string // LedgerDir, but for tests
}

// Make makes a target. After an error there is nothing left to take down.
func Make(ctx context.Context, t Target, w Where) (*Stand, error) {
	// Mounts and loop devices are known by what the kernel calls them, which has no symlinks.
	scratch, err := filepath.EvalSymlinks(w.Scratch)
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w; name another one with --scratch", err)
	}
	l, err := NewLedger(w.Ledgers, t.Name)
	if err != nil {
		return nil, err
	}
	s := &Stand{Target: t, Dir: filepath.Join(scratch, "claimbench-lab-"+l.Mark), ledger: l}
	s.disk = filepath.Join(s.Dir, "disk")
	if err := s.make(ctx); err != nil {
		return nil, errors.Join(err, s.TakeDown())
	}
	return s, nil
}

// TakeDown removes everything that was made. What it cannot remove stays in the ledger.
func (s *Stand) TakeDown() error { return s.ledger.Undo() }

func (s *Stand) make(ctx context.Context) error {
	if err := s.ledger.Note(Entry{Kind: kindDir, Path: s.Dir}); err != nil {
		return err
	}
	if err := s.ledger.Note(Entry{Kind: kindProcesses, Mark: s.ledger.Mark}); err != nil {
		return err
	}
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(s.disk, 0o755); err != nil {
		return err
	}
	if err := s.hold(); err != nil {
		return err
	}
	if s.Target.Disk != nil {
		if err := s.makeDisk(ctx, s.Target.Disk); err != nil {
			return err
		}
	}
	switch t := s.Target; {
	case t.Overlay != nil:
		return s.makeOverlay(t.Overlay)
	case t.Bind:
		return s.makeBind()
	case t.FUSE != nil:
		return s.makeFUSE(ctx, t.FUSE)
	case t.UML != nil:
		return s.prepareUML()
	}
	s.Routes = []string{s.disk}
	return nil
}

// mount mounts at a directory of the stand's own, which it makes.
func (s *Stand) mount(at, source, fstype string, flags uintptr, options string) error {
	if err := s.ledger.Note(Entry{Kind: kindMount, Path: at}); err != nil {
		return err
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, at, fstype, flags, options); err != nil {
		return fmt.Errorf("mount %s at %s: %w", fstype, at, err)
	}
	return nil
}

// hold starts a process that does nothing but lead the stand's process group. It keeps its mark, which other programs
// may lose: sshd writes its title over its environment. By the leader Undo finds them all.
func (s *Stand) hold() error {
	cmd := s.command(context.Background(), []string{"sleep", "infinity"})
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait()
	s.group = cmd.Process.Pid
	return nil
}

// command is a program of the stand's own, in the stand's process group, so that a Ctrl-C that is meant for the lab does
// not end it before its turn.
func (s *Stand) command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Path = program(args[0])
	cmd.Err = nil
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), MarkVariable+"="+s.ledger.Mark)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pgid: s.group}
	cmd.WaitDelay = time.Second
	return cmd
}

// run runs a command to its end, which must come soon; an error has the last line that it wrote.
func (s *Stand) run(ctx context.Context, args []string, env ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := s.command(ctx, args)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w%s", args[0], err, lastLine(out))
	}
	return nil
}

const commandTime = 60 * time.Second

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + last
	}
	return ""
}

func mounted(at string) (bool, error) {
	return mountinfo.Mounted(at)
}
