// Claimbench tells whether work that is claimed through files in a directory is done exactly once.
package main

import (
	"context"
	"io"
	"os"

	"github.com/claimbench/claimbench/internal/calibrate"
	"github.com/claimbench/claimbench/internal/race"
)

func main() {
	race.Contend(calibrate.Ops())
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return exitStatus(stderr, root.ExecuteContext(ctx))
}
