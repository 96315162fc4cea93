package survey

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestACallThatDoesNotComeBackIsLeftBehind(t *testing.T) {
	forever := make(chan struct{})
	defer close(forever)
	err := within(10*time.Millisecond, "mkdir x", func() error { <-forever; return nil })
	if err == nil || !strings.Contains(err.Error(), "mkdir x: no answer within 10ms") {
		t.Errorf("got %v", err)
	}
	want := errors.New("no")
	if err := within(time.Minute, "mkdir x", func() error { return want }); err != want {
		t.Errorf("got %v", err)
	}
}
