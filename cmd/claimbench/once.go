package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/engine"
	"github.com/claimbench/claimbench/internal/survey"
)

// The exit statuses of once, beside COMMAND's own, statusUsage and statusCannotRun.
const (
	statusNotRecorded   = 74 // EX_IOERR of sysexits.h
	statusHeld          = 75 // EX_TEMPFAIL: try again later
	statusDone          = 79 // the first that sysexits.h leaves free
	statusLost          = 80
	statusNotExecutable = 126 // as in shells, and the next
	statusNotFound      = 127
)

const (
	// minTTL keeps the part of the TTL that an owner gives up early well above the granularity of file times.
	minTTL = time.Second
	maxKey = 16 << 20
	// maxEnv is what execve(2) takes as one string of the environment, MAX_ARG_STRLEN.
	maxEnv = 128 << 10
)

type onceFlags struct {
	dir, key, keyFile      string
	ttl                    time.Duration
	wait                   waitFlag
	heartbeat, verbose     bool
	heldStatus, doneStatus uint8
}

func onceCommand() *cobra.Command {
	var f onceFlags
	cmd := &cobra.Command{
		Use:   "once --dir DIR --key KEY --ttl DURATION [flags] -- COMMAND [ARG ...]",
		Short: "Run a command exactly once per key, with the safe protocol",
		Long: `Run COMMAND unless it was done for KEY already, or is being done. All that share the work name the same DIR, which
must exist, and the same TTL. They may be on several hosts, if "claimbench survey DIR" says that exclusive create
holds between them.

COMMAND's exit status is passed on, 128+N if signal N ended it. With 0 the key is done for ever. With any other
the claim is given back, and who comes next runs it. If this program or its host dies, others may take over after
the TTL. COMMAND finds in its environment
  CLAIMBENCH_GENERATION  how often the key was claimed. A process that was stopped for longer than the TTL can
                         wake up beside its successor: what COMMAND writes to should refuse a lower generation
                         than it has seen
  CLAIMBENCH_KEY         the key, unless it is too long for an environment or contains a NUL

Without --heartbeat=false the claim is renewed while COMMAND runs, however long that takes. With it, COMMAND has
nine tenths of the TTL. When the lease is lost, all processes below this one get SIGTERM, and SIGKILL a
twentieth of the TTL later: before others may take over. What a signal that ended COMMAND has left running is
stopped likewise before the claim is given back. If this program is killed by SIGKILL, COMMAND is killed with it,
but not what COMMAND has started: let a shell "exec" what takes long. Programs that change the user, as sudo does,
are not killed either.

INT, TERM, HUP, QUIT, USR1, USR2, TSTP and CONT are passed on to COMMAND. In the foreground of a terminal INT, QUIT
and TSTP are not: there they come from the keyboard, which sends them to COMMAND as well.

Exit status, beside COMMAND's:
   2  usage; the key is empty; DIR is missing or used with another TTL
   4  cannot run: DIR is read-only, full or not writable, or an error leaves open who holds the key
  74  COMMAND succeeded, but that could not be recorded
  75  another holds the key (-E sets it)
  79  the key is done (--done-exit-code sets it)
  80  the lease was lost; COMMAND was stopped, and nothing is recorded
 126  COMMAND cannot be executed
 127  COMMAND was not found
COMMAND may end with any of these itself. The difference: a status of this program comes with a line on stderr that
begins with "claimbench: ". With -E 0 or --done-exit-code 0 there is no such line without -v.`,
		Example: `  claimbench once --dir /shared/claims --key "report $(date +%F)" --ttl 10m -- make-report`,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.add(cmd)
	return cmd
}

func (f *onceFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SetInterspersed(false) // what follows COMMAND is its own, with "--" or without
	fl.StringVar(&f.dir, "dir", "", "`directory` of the claims")
	fl.StringVar(&f.key, "key", "", "the `name` of the work: any bytes")
	fl.StringVar(&f.keyFile, "key-file", "", "`file` whose bytes are the key, a newline at its end included, of at most 16 MiB")
	fl.DurationVar(&f.ttl, "ttl", 0, "how long after its last renewal a claim may be taken over; at least 1s, with a unit")
	fl.BoolVar(&f.heartbeat, "heartbeat", true, "renew the claim while COMMAND runs")
	fl.Var(&f.wait, "wait", "wait while another holds the key, at most so long (--wait=30s)")
	fl.Lookup("wait").NoOptDefVal = forever
	fl.Uint8VarP(&f.heldStatus, "conflict-exit-code", "E", statusHeld, "exit `status` if another holds the key")
	fl.Uint8Var(&f.doneStatus, "done-exit-code", statusDone, "exit `status` if the key is done")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say on stderr what happens")
	cobra.CheckErr(cmd.MarkFlagDirname("dir"))
}

// waitFlag is a duration, or for ever if there is none: --wait, --wait=30s.
type waitFlag time.Duration

const forever = "forever"

func (w *waitFlag) Type() string { return "duration" }

func (w *waitFlag) String() string {
	switch *w {
	case 0:
		return "" // what --help takes for no default
	case math.MaxInt64:
		return forever
	}
	return time.Duration(*w).String()
}

func (w *waitFlag) Set(s string) error {
	if s == forever {
		*w = math.MaxInt64
		return nil
	}
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = errors.New("it must not be negative")
	}
	*w = waitFlag(d)
	return err
}

func (f *onceFlags) run(cmd *cobra.Command, command []string) error {
	if err := f.check(cmd, command); err != nil {
		return usage(err)
	}
	key, err := f.readKey()
	if err != nil {
		return usage(err)
	}
	program, err := lookUp(command)
	if err != nil {
		return err
	}
	program.Stdin, program.Stdout, program.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	// Nothing closes the guard: the process is about to end, and on a filesystem that hangs a close would, too.
	// Sync, because what is done has to stay so through a power failure, and one write to the disk costs little beside a
	// process. Programs that share DIR by means of the package engine need it, too.
	guard, err := engine.New(f.dir, engine.Options{TTL: f.ttl, Sync: true})
	if err != nil {
		return f.explain(err)
	}
	o := &once{f, guard, key, program, newRelay(), cmd.ErrOrStderr()}
	return o.run(cmd.Context())
}

func (f *onceFlags) check(cmd *cobra.Command, command []string) error {
	fl := cmd.Flags()
	for _, name := range []string{"dir", "ttl"} {
		if !fl.Changed(name) {
			return seeHelp(cmd, fmt.Errorf("--%s is missing", name))
		}
	}
	switch {
	case fl.Changed("key") == fl.Changed("key-file"):
		return seeHelp(cmd, errors.New("the key must be given by either --key or --key-file"))
	case f.dir == "":
		return errors.New("--dir is empty; is a variable not set?")
	case f.ttl < minTTL:
		return fmt.Errorf("--ttl %v: must be at least %v", f.ttl, minTTL)
	case len(command) == 0:
		return seeHelp(cmd, errors.New("COMMAND is missing"))
	}
	if _, err := time.ParseDuration(command[0]); err == nil && f.wait == math.MaxInt64 {
		return fmt.Errorf("%s is taken for COMMAND; write --wait=%s", command[0], command[0])
	}
	return nil
}

func (f *onceFlags) readKey() (string, error) {
	if f.keyFile == "" {
		if f.key == "" {
			return "", errors.New("--key is empty; is a variable not set?")
		}
		return f.key, nil
	}
	file, err := os.Open(f.keyFile)
	if err != nil {
		return "", fmt.Errorf("--key-file: %w", err)
	}
	defer file.Close()
	key, err := io.ReadAll(io.LimitReader(file, maxKey+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("--key-file: %w", err)
	case len(key) == 0:
		return "", fmt.Errorf("--key-file %s: is empty", f.keyFile)
	case len(key) > maxKey:
		return "", fmt.Errorf("--key-file %s: is longer than 16 MiB; use a digest of it as the key", f.keyFile)
	}
	return string(key), nil
}

// lookUp finds COMMAND before anything is claimed: a host that does not have it must not hold up those that do.
func lookUp(command []string) (*exec.Cmd, error) {
	path, err := exec.LookPath(command[0])
	switch {
	case errors.Is(err, exec.ErrDot): // PATH has the working directory in it, which flock(1) and shells accept, too
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil, &statusError{statusNotFound, fmt.Errorf("%s: command not found", command[0])}
	case err != nil:
		return nil, notExecutable(command[0], err)
	}
	return &exec.Cmd{Path: path, Args: command}, nil
}

func notExecutable(name string, err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		err = errno
	}
	switch errno {
	case unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE:
		return cannotRun(fmt.Errorf("start %s: %w", name, err))
	case unix.ENOENT:
		err = errors.New("the interpreter that it names is not there")
	}
	return &statusError{statusNotExecutable, fmt.Errorf("%s: cannot be executed: %w", name, err)}
}

// explain says what to do about a directory that no key can be claimed in.
func (f *onceFlags) explain(err error) error {
	var params *engine.ParamsError
	var contract *engine.ContractError
	switch {
	case errors.As(err, &params) && params.Field == "TTL":
		return usage(fmt.Errorf("--ttl %s: %s is in use with %s; all that share it need the same", params.Ours, f.dir, params.Theirs))
	case errors.As(err, &params):
		return usage(fmt.Errorf("%s: in use by programs with %s %s, and once has %s; name another directory", f.dir, params.Field, params.Theirs, params.Ours))
	case errors.As(err, &contract) && contract.Field == "TTL":
		return usage(fmt.Errorf("--ttl must be %s", contract.Rule))
	case errors.As(err, &contract) && contract.Err != nil:
		err = contract.Err
	}
	info, statErr := os.Lstat(f.dir)
	if statErr == nil && info.Mode()&os.ModeSymlink != 0 {
		return usage(fmt.Errorf("%s: a symlink; name the directory that it leads to", f.dir))
	}
	return explain(&survey.TargetError{Path: f.dir, Entered: statErr == nil && info.IsDir(), Err: oneLine(err)})
}
