package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// readyTime is how long a program may take until it has mounted, or listens: some derive keys for seconds.
const readyTime = 90 * time.Second

// makeFUSE starts the programs of a FUSE target.
func (s *Stand) makeFUSE(ctx context.Context, f *FUSE) error {
	ports, err := freePorts(maxServers)
	if err != nil {
		return err
	}
	words := func(n int) *strings.Replacer {
		pairs := []string{"{dir}", s.Dir, "{disk}", s.disk, "{at}", s.at(n), "{n}", strconv.Itoa(n)}
		for i, port := range ports {
			pairs = append(pairs, fmt.Sprintf("{port%d}", i+1), port)
		}
		return strings.NewReplacer(pairs...)
	}
	for _, d := range f.Dirs {
		if err := os.MkdirAll(filepath.Join(s.disk, d), 0o755); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Files)) {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(words(1).Replace(f.Files[name])), 0o600); err != nil {
			return err
		}
	}
	for _, args := range f.Prepare {
		if err := s.run(ctx, s.inNetwork(replaceAll(args, words(1))), f.environment()...); err != nil {
			return err
		}
	}
	for i, args := range f.Servers {
		if err := s.start(replaceAll(args, words(1)), f.environment(), s.listens(ports[i])); err != nil {
			return err
		}
	}
	for n := 1; n <= f.Mounts; n++ {
		if err := s.mountFUSE(replaceAll(f.Mount, words(n)), f.environment(), s.at(n)); err != nil {
			return err
		}
	}
	if len(f.Settle) > 0 {
		return s.run(ctx, s.inNetwork(replaceAll(f.Settle, words(1))), f.environment()...)
	}
	return ctx.Err()
}

func (s *Stand) at(n int) string { return filepath.Join(s.Dir, fmt.Sprintf("at%d", n)) }

func replaceAll(args []string, words *strings.Replacer) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = words.Replace(a)
	}
	return out
}

// inNetwork is a command that runs in the network namespace of the target, if it has one of its own. That is gone with
// its last process.
func (s *Stand) inNetwork(args []string) []string {
	if !s.Target.ownNetwork() {
		return args
	}
	return append([]string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", s.group), "--", program(args[0])}, args[1:]...)
}

func (f *FUSE) environment() []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		env = append(env, name+"="+f.Env[name])
	}
	return env
}

func (s *Stand) mountFUSE(args, env []string, at string) error {
	if err := s.ledger.Note(Entry{Kind: kindMount, Path: at}); err != nil {
		return err
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := s.start(args, env, func() bool { is, err := mounted(at); return err == nil && is }); err != nil {
		return err
	}
	s.Routes = append(s.Routes, at)
	return nil
}

// start starts a program that stays, and waits until it is ready. It ends with the stand.
func (s *Stand) start(args, env []string, ready func() bool) error {
	log, err := os.CreateTemp(s.Dir, filepath.Base(args[0])+"-*.log")
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command(context.Background(), s.inNetwork(args))
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return whenReady(cmd, log.Name(), ready)
}

func whenReady(cmd *exec.Cmd, log string, ready func() bool) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for began := time.Now(); !ready(); {
		select {
		case err := <-ended:
			out, readErr := os.ReadFile(log)
			if err == nil {
				err = errors.New("it ended at once")
			}
			return errors.Join(fmt.Errorf("%s: %w%s", cmd.Args[0], err, lastLine(out)), readErr)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Since(began) > readyTime {
			out, _ := os.ReadFile(log)
			return fmt.Errorf("%s: not ready within %v%s", cmd.Args[0], readyTime, lastLine(out))
		}
	}
	return nil
}

// listens says whether a port is listened on in the network of the stand's programs, which may not be this process's.
func (s *Stand) listens(port string) func() bool {
	return func() bool {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", s.group))
		table6, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp6", s.group)) // there is none without IPv6
		number, atoiErr := strconv.Atoi(port)
		table = append(table, table6...)
		return errors.Join(err, atoiErr) == nil && slices.ContainsFunc(strings.Split(string(table), "\n"), func(line string) bool {
			f := strings.Fields(line) // sl local_address rem_address st, proc_pid_net(5); 0A is LISTEN
			return len(f) > 3 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", number)) && f[3] == "0A"
		})
	}
}

// freePorts gives ports of which no two are the same.
func freePorts(count int) (ports []string, err error) {
	for range count {
		l, listenErr := net.Listen("tcp", "127.0.0.1:0")
		if listenErr != nil {
			return nil, listenErr
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		_, port, splitErr := net.SplitHostPort(l.Addr().String())
		if splitErr != nil {
			return nil, splitErr
		}
		ports = append(ports, port)
	}
	return ports, nil
}
