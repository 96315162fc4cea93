package bench

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver

	"github.com/claimbench/claimbench/engine"
)

var peersWork = Workload{
	Name:       "peers",
	Shows:      "8 contenders get 200 keys done: the protocols beside what people use instead",
	Contenders: 8,
	run:        func(b *bencher) error { return b.peers(b.trials(10)) },
}

// peers are what people use instead. None of them has a TTL: a lock file that a death leaves behind stays.
var peers = []entrant{
	{
		name:     "sqlite", // INSERT OR IGNORE of the key, UPDATE when done
		settings: "journal_mode=WAL, synchronous=NORMAL, busy_timeout=10000", open: openSQLite,
	},
	{
		name:     "sqlite-nosync", // the same, never synced
		settings: "journal_mode=WAL, synchronous=OFF, busy_timeout=10000", open: openSQLiteNoSync,
	},
	{
		name:     "gofrs-flock", // flock by gofrs/flock, then a look whether the key is done
		settings: "TryLock, done file by exclusive create", open: func(dir string, _ engine.Env) (engine.Protocol, error) { return flockPeer{dir}, nil },
	},
	{
		name:     "dot-lock", // a private file linked to the lock's name, then a look whether the key is done
		settings: "link(2), done file by exclusive create", open: func(dir string, e engine.Env) (engine.Protocol, error) { return dotLock{dir, e.Nonce}, nil },
	},
}

func (b *bencher) peers(trials int) error {
	const contenders, keys = 8, 200
	if len(b.Protocols) == 0 {
		b.Protocols = append(b.Protocols, scaled...)
		for _, p := range peers {
			b.Protocols = append(b.Protocols, p.name)
		}
	}
	orders := map[string]*order{}
	for _, protocol := range b.Protocols {
		o, err := b.used(protocol)
		if err != nil {
			return err
		}
		orders[protocol] = o
	}
	for _, protocol := range b.shuffled(b.Protocols, trials) {
		if b.over() {
			break
		}
		o := orders[protocol]
		o.Keys = keys
		r := b.row("peers", protocol, "", contenders, keys)
		judged, err := b.trial(r, contenders, *o)
		if err != nil {
			return err
		}
		if judged {
			r.rate(b.attempts(*o, upTo(contenders)...))
		}
		o.First += keys
	}
	return nil
}

// used is a directory in which many keys were done already: what a protocol makes once, like fan-out directories and
// tables, is not what a claim costs.
func (b *bencher) used(protocol string) (*order, error) {
	o := b.order(protocol, b.newDir(), 0)
	o.TTL, o.Linger, o.Poll, o.Patience = int64(time.Minute), 0, int64(100*time.Microsecond), int64(10*time.Second)
	err := b.fill(&o, 4*chunk)
	return &o, err
}

type sqlitePeer struct{ db *sql.DB }

func openSQLite(dir string, _ engine.Env) (engine.Protocol, error) { return sqliteIn(dir, "NORMAL") }

func openSQLiteNoSync(dir string, _ engine.Env) (engine.Protocol, error) {
	return sqliteIn(dir, "OFF")
}

func sqliteIn(dir, synchronous string) (engine.Protocol, error) {
	name := "file:" + filepath.Join(dir, "claims.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(" + synchronous + ")"
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := createTable(db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return sqlitePeer{db}, nil
}

// createTable tries again: a switch to WAL that meets another is refused at once, whatever the busy timeout.
func createTable(db *sql.DB) error {
	var err error
	for range 500 {
		if _, err = db.Exec("CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, done INTEGER NOT NULL) WITHOUT ROWID"); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func (p sqlitePeer) Close() error { return p.db.Close() }

func (p sqlitePeer) Try(sig engine.Signature) (engine.Outcome, error) {
	r, err := p.db.Exec("INSERT OR IGNORE INTO claims VALUES (?, 0)", string(sig))
	if err != nil {
		return engine.Outcome{}, err
	}
	if n, err := r.RowsAffected(); err != nil || n == 1 {
		return engine.Outcome{State: engine.Won, Lease: endless{done: func() error {
			_, err := p.db.Exec("UPDATE claims SET done = 1 WHERE key = ?", string(sig))
			return err
		}}}, err
	}
	done := false
	if err := p.db.QueryRow("SELECT done FROM claims WHERE key = ?", string(sig)).Scan(&done); err != nil {
		return engine.Outcome{}, err
	}
	if done {
		return engine.Outcome{State: engine.Done}, nil
	}
	return engine.Outcome{State: engine.Held}, nil
}

type flockPeer struct{ dir string }

func (p flockPeer) Try(sig engine.Signature) (engine.Outcome, error) {
	l := flock.New(filepath.Join(p.dir, string(sig)+".lock"))
	locked, err := l.TryLock()
	if err != nil || !locked {
		return engine.Outcome{State: engine.Held}, err
	}
	done := filepath.Join(p.dir, string(sig)+".done")
	if _, err := os.Lstat(done); !errors.Is(err, unix.ENOENT) {
		return engine.Outcome{State: engine.Done}, errors.Join(err, l.Unlock())
	}
	return engine.Outcome{State: engine.Won, Lease: endless{done: func() error { return errors.Join(createEmpty(done), l.Unlock()) }}}, nil
}

func createEmpty(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return f.Close()
}

type dotLock struct {
	dir   string
	nonce engine.Nonce
}

func (p dotLock) Try(sig engine.Signature) (engine.Outcome, error) {
	nonce, err := p.nonce()
	if err != nil {
		return engine.Outcome{}, err
	}
	base := filepath.Join(p.dir, string(sig))
	private, lock, done := base+"."+hex.EncodeToString(nonce), base+".lock", base+".done"
	if err := createEmpty(private); err != nil {
		return engine.Outcome{}, err
	}
	err = os.Link(private, lock)
	if gone := os.Remove(private); gone != nil {
		return engine.Outcome{}, errors.Join(err, gone)
	}
	if errors.Is(err, unix.EEXIST) {
		return p.lookDone(done, engine.Outcome{State: engine.Held})
	}
	if err != nil {
		return engine.Outcome{}, fmt.Errorf("link: %w", err)
	}
	out, err := p.lookDone(done, engine.Outcome{State: engine.Won, Lease: endless{done: func() error { return errors.Join(createEmpty(done), os.Remove(lock)) }}})
	if out.State == engine.Done {
		err = errors.Join(err, os.Remove(lock))
	}
	return out, err
}

func (p dotLock) lookDone(done string, otherwise engine.Outcome) (engine.Outcome, error) {
	_, err := os.Lstat(done)
	if errors.Is(err, unix.ENOENT) {
		return otherwise, nil
	}
	return engine.Outcome{State: engine.Done}, err
}

// endless is a lease without a TTL.
type endless struct{ done func() error }

func (endless) Expires() time.Duration { return engine.Never }
func (endless) Renew() error           { return nil }
func (endless) Drop() error            { return nil }
func (l endless) Done([]byte) error    { return l.done() }
