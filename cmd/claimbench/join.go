package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/fleet"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/survey"
	"github.com/claimbench/claimbench/probes"
)

func joinCommand() *cobra.Command {
	var j fleet.Joining
	var routes []string
	var tokenFile string
	var disposable bool
	cmd := &cobra.Command{
		Use:   "join --dir DIR URL",
		Short: "Take part, on this host, in a survey that claimbench serve runs",
		Long: `Keep contenders ready on this host, and have them do what claimbench serve asks, until it is done. Whatever it asks,
nothing outside DIR is touched. The whole line is printed by serve. A token that others must not see in the list of
processes can come from --token-file or the environment variable CLAIMBENCH_TOKEN.`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(j.Dirs) == 0 {
				return usage(errors.New("no --dir: name the directory under survey; nothing outside it is touched"))
			}
			var err error
			if j.Token, err = token(tokenFile); err != nil {
				return usage(err)
			}
			if j.URL, err = address(args[0]); err != nil {
				return usage(err)
			}
			j.Dirs = append(j.Dirs, routes...)
			j.Version, j.Ops = version, survey.Ops()
			if !disposable {
				j.Allowed = harmless
			}
			p := newProgress(cmd.ErrOrStderr())
			defer p.close()
			j.Log = p.note
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, unix.SIGTERM, unix.SIGHUP)
			defer stop()
			context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
			signal.Ignore(unix.SIGPIPE)  // a closed pipe at stderr must not end it before it has cleaned up
			return joined(fleet.Join(ctx, j))
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&j.Dirs, "dir", nil, "the directory under survey")
	fl.StringArrayVar(&routes, "route", nil, "another way to the same directory on this host")
	fl.StringVar(&j.Meeting, "meeting", fleet.DefaultMeeting, "the name that serve gave its meeting")
	fl.StringVar(&j.Name, "name", "", "of this host in the result (default its host name)")
	fl.DurationVar(&j.Wait, "wait", 2*time.Minute, "how long to wait for serve to appear")
	fl.StringVar(&tokenFile, "token-file", "", "file with the token, if it is not in the URL")
	fl.StringVar(&j.CA, "tls-ca", "", "certificates to trust beside the system's")
	fl.StringVar(&j.Creds, "nats-creds", "", "NATS credentials file")
	fl.BoolVar(&disposable, "disposable", false, "the filesystem may be filled up")
	return cmd
}

// harmless says that an operation is of no probe that harms the target.
func harmless(op string) bool {
	return !slices.ContainsFunc(probes.All, func(p probes.Probe) bool {
		return p.Disposable && slices.ContainsFunc(p.Ops, func(o race.Op) bool { return o.Name == op })
	})
}

// address is a URL, given as one or as host and port, or a list of such with commas between them.
func address(given string) (string, error) {
	list := strings.Split(given, ",")
	for i, one := range list {
		if one = strings.TrimSpace(one); !strings.Contains(one, "://") {
			one = "nats://" + one
		}
		if u, err := url.Parse(one); err != nil || u.Host == "" {
			return "", errors.New("the URL is no address; use the line that claimbench serve prints") // without it: the token may be in it
		}
		list[i] = one
	}
	return strings.Join(list, ","), nil
}

// joined tells what the user can put right from what the machine refuses.
func joined(err error) error {
	var p *fs.PathError
	var wrong *fleet.SettingError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return usage(err)
	case errors.As(err, &p) && errors.Is(err, fs.ErrNotExist):
		return usage(fmt.Errorf("%s: no such directory; make it first", p.Path))
	case errors.As(err, &p) && errors.Is(err, unix.ENOTDIR):
		return usage(fmt.Errorf("%s: not a directory; name the directory that the claims will be in", p.Path))
	}
	return cannotRun(err)
}
