package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimbench/claimbench/internal/fleet"
	"github.com/claimbench/claimbench/internal/survey"
)

// fleetFlags are those of serve, which come before the name of what is to be run.
type fleetFlags struct {
	fleet.Meeting
	hosts     int
	wait      time.Duration
	tokenFile string
}

func serveCommand() *cobra.Command {
	var f fleetFlags
	cmd := &cobra.Command{
		Use:   "serve --hosts N {survey | probe NAME | bench WORKLOAD}",
		Short: "Survey a directory from many hosts at once",
		Long: `Wait for N hosts that each run claimbench join, then have contenders on all of them race in the directory that
they share, and write one result. What to type on each host is printed. Hosts meet over NATS: a server is embedded,
or one that is there already is named with --nats.

The token in the printed line lets whoever has it take part, and see what is measured. The environment variable
CLAIMBENCH_TOKEN gives one of your own. Off loopback use --tls-cert and --tls-key on networks that others share.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usage(seeHelp(cmd, fmt.Errorf("serve what? survey, probe or bench")))
		},
	}
	fl := cmd.PersistentFlags()
	fl.IntVar(&f.hosts, "hosts", 2, "how many hosts to wait for")
	fl.DurationVar(&f.wait, "wait", 2*time.Minute, "how long; with two at least the survey then goes on without the others, and says so")
	fl.StringVar(&f.Listen, "listen", "127.0.0.1:0", "address of the embedded server; port 0 is a free one")
	fl.StringVar(&f.tokenFile, "token-file", "", "file with the token that hosts must show (default: CLAIMBENCH_TOKEN, or a random one)")
	fl.BoolVar(&f.Open, "no-token", false, "let anybody join: on loopback, or with TLS")
	fl.StringVar(&f.Cert, "tls-cert", "", "certificate of the embedded server, a PEM file")
	fl.StringVar(&f.Key, "tls-key", "", "its key")
	fl.StringVar(&f.Name, "meeting", fleet.DefaultMeeting, "its name, which hosts must give too: where several meet at one --nats server")
	fl.StringVar(&f.URL, "nats", "", "URL of a NATS server that is there already, instead of the embedded one")
	fl.StringVar(&f.CA, "tls-ca", "", "certificates to trust beside the system's, for --nats")
	fl.StringVar(&f.Creds, "nats-creds", "", "NATS credentials file, for --nats")
	cmd.AddCommand(f.survey(), f.probe(), f.bench())
	return cmd
}

func (f *fleetFlags) survey() *cobra.Command {
	s := surveyFlags{fleet: f}
	cmd := &cobra.Command{
		Use: "survey", Short: "Say which claim protocol may be used in the directory, and why", Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd, nil, nil) },
	}
	s.add(cmd)
	s.addWorkloads(cmd)
	return cmd
}

func (f *fleetFlags) probe() *cobra.Command {
	s := surveyFlags{fleet: f}
	cmd := &cobra.Command{
		Use: "probe NAME[,NAME]", Short: "Test single promises, with all their evidence", Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, nil, strings.Split(args[0], ",")) },
	}
	s.add(cmd)
	return cmd
}

func (f *fleetFlags) bench() *cobra.Command {
	s := surveyFlags{fleet: f}
	cmd := &cobra.Command{
		Use: "bench WORKLOAD[,WORKLOAD]", Short: "Run claim protocols under contention", Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("budget") {
				s.budget = benchBudget
			}
			s.workloads = strings.Split(args[0], ",")
			return s.run(cmd, nil, nil)
		},
	}
	s.add(cmd)
	s.addBench(cmd)
	return cmd
}

// gather waits for the hosts.
func (f *fleetFlags) gather(ctx context.Context, cmd *cobra.Command, p *progress) (met *fleet.Fleet, missing string, err error) {
	if f.Token, err = token(f.tokenFile); err != nil {
		return nil, "", usage(err)
	}
	met, err = fleet.Serve(fleet.Serving{Meeting: f.Meeting, Hosts: f.hosts, Wait: f.wait, Version: version, Ops: survey.Ops(), Log: p.note})
	var wrong *fleet.SettingError
	switch {
	case errors.As(err, &wrong):
		return nil, "", usage(err)
	case err != nil:
		return nil, "", cannotRun(err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "on each of %d hosts, where DIR is the directory that they share:\n  %s\n", f.hosts, met.JoinLine())
	if missing, err = met.Gather(ctx); err != nil {
		met.Close()
		return nil, "", cannotRun(err)
	}
	if missing != "" {
		p.note(missing)
	}
	return met, missing, nil
}

// token is from a file, or else from the environment; "" draws one.
func token(file string) (string, error) {
	if file == "" {
		return os.Getenv("CLAIMBENCH_TOKEN"), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	t := strings.TrimSpace(string(data))
	if t == "" {
		return "", fmt.Errorf("token file %s: it is empty", file)
	}
	return t, nil
}
