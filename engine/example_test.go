package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/claimbench/claimbench/engine"
)

func claimDir() string {
	dir, err := os.MkdirTemp("", "claims-")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

func Example() {
	dir := claimDir()
	defer os.RemoveAll(dir)
	guard, err := engine.New(dir, engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	// However many programs on however many hosts call this, one of them
	// makes the report.
	for range 3 {
		outcome, err := guard.Do(context.Background(), engine.Key{"report", "2024-06"},
			func(_ context.Context, token engine.Token) error {
				fmt.Println("making the report, generation", token.Generation)
				token.Record([]byte("report-2024-06.pdf"))
				return nil
			})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v: %s\n", outcome.State, outcome.Record)
	}
	// Output:
	// making the report, generation 1
	// won: report-2024-06.pdf
	// done: report-2024-06.pdf
	// done: report-2024-06.pdf
}

func ExampleGuard_Claim() {
	dir := claimDir()
	defer os.RemoveAll(dir)
	guard, err := engine.New(dir, engine.Options{TTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	ctx := context.Background()
	key := engine.Key{"tile", "12/2196/1430"}
	mine, err := guard.Claim(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	theirs, err := guard.Claim(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mine.State, "and", theirs.State)

	if err := mine.Lease.Done([]byte("rendered")); err != nil {
		log.Fatal(err)
	}
	theirs, err = guard.Claim(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v: %s\n", theirs.State, theirs.Record)
	// Output:
	// won and held
	// done: rendered
}

func ExampleGuard_Do_failure() {
	dir := claimDir()
	defer os.RemoveAll(dir)
	guard, err := engine.New(dir, engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	work := func(_ context.Context, token engine.Token) error {
		if token.Generation == 1 {
			return errors.New("no network")
		}
		return nil
	}
	for range 2 {
		outcome, err := guard.Do(context.Background(), engine.Key{"upload"}, work)
		fmt.Println("generation", outcome.Generation, "error", err)
	}
	// Output:
	// generation 1 error no network
	// generation 2 error <nil>
}

func ExampleNew_contract() {
	_, err := engine.New("/no/such/directory", engine.Options{})
	var contract *engine.ContractError
	if errors.As(err, &contract) {
		fmt.Println(contract.Field, "must be", contract.Rule)
	}
	_, err = engine.New(os.TempDir(), engine.Options{TTL: time.Second, Deadline: time.Minute})
	fmt.Println(err)
	// Output:
	// dir must be a directory that exists
	// Deadline must be at most TTL, which 1m0s exceeds: TTL is 1s
}

func ExampleReclaim() {
	dir := claimDir()
	defer os.RemoveAll(dir)
	options := engine.Options{Protocol: "quarantine", TTL: 40 * time.Millisecond}
	guard, err := engine.New(dir, options)
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	out, err := guard.Claim(context.Background(), engine.Key{"k"})
	if err != nil {
		log.Fatal(err)
	}
	if err := out.Lease.Drop(); err != nil {
		log.Fatal(err)
	}

	left, err := engine.Quarantines(dir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("in quarantine:", len(left), "may go:", left[0].Why == "")
	time.Sleep(200 * time.Millisecond)
	reclaimed, err := engine.Reclaim(dir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("removed:", len(reclaimed.Removed), "kept:", reclaimed.Kept)
	// Output:
	// in quarantine: 1 may go: false
	// removed: 1 kept: 0
}
