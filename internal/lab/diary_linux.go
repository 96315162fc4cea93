package lab

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// A diary is what has gone wrong on purpose, and when: in the file faultLog, for people, and in faultTimes, by the clock
// that the trials of the survey have.
type diary struct {
	dir   string
	began time.Time

	mu       sync.Mutex
	happened []result.Fault
	failed   error // the first fault that could not be made, or not be ended
}

// fail notes that a fault could not be made, or not be ended. Nothing that was measured with it is what it says.
func (d *diary) fail(err error) {
	d.note(err.Error())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = cmp.Or(d.failed, err)
}

// begins notes that a fault begins, and returns a function that notes its end.
func (d *diary) begins(f Fault) (over func()) {
	d.note("begins: " + f.String())
	d.mu.Lock()
	defer d.mu.Unlock()
	i := len(d.happened)
	d.happened = append(d.happened, result.Fault{Fault: f.String(), Begin: race.Now()})
	return func() {
		d.mu.Lock()
		d.happened[i].End = race.Now()
		d.mu.Unlock()
		d.note("is over: " + f.String())
	}
}

// tellTimes writes down when each fault was, for the trials to be marked, unless one failed.
func (d *diary) tellTimes() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	data, err := json.Marshal(d.happened)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, faultTimes), data, 0o644)
}

// note adds a line to the log of faults.
func (d *diary) note(what string) {
	f, err := os.OpenFile(filepath.Join(d.dir, faultLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "%8.2f s %s\n", time.Since(d.began).Seconds(), what)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "claimbench lab:", err)
	}
}
