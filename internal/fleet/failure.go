package fleet

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// A failure is an error on its way from a host to the coordinator, which tells hung from died, and errnos apart.
type failure struct {
	Text      string     `json:"text"`
	Errno     unix.Errno `json:"errno,omitzero"`
	Path      string     `json:"path,omitzero"`
	Call      string     `json:"call,omitzero"`
	Contender int        `json:"contender,omitzero"`
	Op        string     `json:"op,omitzero"`
	Died      string     `json:"died,omitzero"`
	Hung      int64      `json:"hung_ns,omitzero"`
	State     string     `json:"state,omitzero"`
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	var hung *race.HungError
	var died *race.DiedError
	var path *os.PathError
	switch {
	case errors.As(err, &hung):
		f.Contender, f.Op, f.Hung, f.State = hung.Contender, hung.Op, max(1, int64(hung.After)), hung.State
	case errors.As(err, &died):
		f.Contender, f.Op, f.Died = died.Contender, died.Op, died.Cause
	case errors.As(err, &path):
		f.Path, f.Call = path.Path, path.Op
	}
	errors.As(err, &f.Errno)
	return f
}

// error is the error again, of the type that it had.
func (f *failure) error(host string) error {
	switch {
	case f == nil:
		return nil
	case f.Hung != 0:
		return &race.HungError{Contender: f.Contender, Op: plain(f.Op), After: time.Duration(f.Hung), State: plain(f.State)}
	case f.Died != "":
		return &race.DiedError{Contender: f.Contender, Op: plain(f.Op), Cause: plain(f.Died)}
	case f.Path != "" && f.Errno != 0:
		return &os.PathError{Op: plain(f.Call), Path: host + ":" + plain(f.Path), Err: f.Errno}
	case f.Errno != 0:
		return fmt.Errorf("%s: %.200s: %w", host, plain(f.Text), f.Errno)
	default:
		return fmt.Errorf("%s: %.300s", host, plain(f.Text))
	}
}

// A SettingError is about what was asked for, not about what the machine refuses.
type SettingError struct{ Err error }

func (e *SettingError) Error() string { return e.Err.Error() }
func (e *SettingError) Unwrap() error { return e.Err }

// A LostError says that a host can no longer be asked.
type LostError struct {
	Host string
	Why  string
}

func (e *LostError) Error() string { return "host " + e.Host + " is lost: " + e.Why }
