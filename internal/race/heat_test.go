package race

import (
	"context"
	"errors"
	"testing"
)

func TestAHeatThatIsGivenUpClosesWhatItHadOpen(t *testing.T) {
	l := newLine(t, 1, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := l.Heat(ctx, Heat{Op: "closes", N: 1, First: 1, Rounds: 3}, func(i int) {
		if i == 0 {
			l.Go(0, Now())
		} else {
			cancel() // nobody says when the second round starts
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if n := l.Words(0)[7]; n != 1 {
		t.Errorf("closed %d times", n)
	}
}
