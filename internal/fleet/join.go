package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/facts"
	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// Joining says what a host brings along.
type Joining struct {
	URL     string   // of the NATS server, with the token in it or without; of several, with commas between them
	Token   string   // if it is not in the URL
	Meeting string   // its name at the server; "" is DefaultMeeting
	Dirs    []string // ways to the directory under survey; nothing outside them is touched
	Name    string   // of this host; "" is its host name
	Version string   // of the program
	Ops     []race.Op
	Allowed func(op string) bool // what this host does; nil is all
	Wait    time.Duration        // for the coordinator to appear
	CA      string               // file of certificates to trust beside the system's
	Creds   string               // file of NATS credentials
	Away    time.Duration        // how long the server may be out of reach before this host gives up; 0 is 10 s
	Log     func(string)

	pretend pretence // for tests
}

// A pretence makes one kernel look like two.
type pretence struct {
	bootID string
	ahead  int64 // of its clock, ns
}

// Join works for a coordinator until it is told to leave, the coordinator is gone, or the context ends. Then nothing of
// it is left: no contender, and no work directory if the coordinator, which removes it, is gone.
func Join(ctx context.Context, j Joining) (err error) {
	j.Away = cmp.Or(j.Away, 10*time.Second)
	j.Meeting = cmp.Or(j.Meeting, DefaultMeeting)
	if err := checkName(j.Meeting); err != nil {
		return &SettingError{err}
	}
	key := secret()
	m := &member{Joining: j, key: key, id: idOf(key), ops: opsOf(j.Ops, j.Allowed), desks: map[int]*desk{}, made: map[string]bool{}, over: make(chan error, 1)}
	m.strays.log = j.Log
	defer func() { err = errors.Join(err, m.close()) }()
	for _, dir := range j.Dirs {
		s, err := openSite(dir)
		if err != nil {
			return err
		}
		m.sites = append(m.sites, s)
	}
	h, err := m.hello()
	if err != nil {
		return err
	}
	until := time.Now().Add(j.Wait)
	if m.nc, err = m.connect(ctx, until); err != nil {
		return err
	}
	w, err := m.introduce(ctx, &h, until)
	if err != nil {
		return err
	}
	if err := m.serve(ctx, w); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go m.watch(ctx, w)
	m.Log(fmt.Sprintf("joined as host %d of %d, in %s", w.Host+1, w.Hosts, strings.Join(j.Dirs, " and ")))
	select {
	case err := <-m.over:
		m.orphaned = err != nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A member is a joined host.
type member struct {
	Joining
	key    string // by which the server knows this host
	id     string // by which all do
	ops    map[string]*race.Op
	nc     *nats.Conn
	sites  []*site
	again  atomic.Int64 // how often the connection was broken, and mended
	pinged atomic.Int64 // when last, by this host's clock
	over   chan error   // why it ends; nil when it was told to

	orphaned bool // it ended since the coordinator is gone
	keeper   *keeper

	mu    sync.Mutex
	desks map[int]*desk
	made  map[string]bool // work directories that are there, made or seen, by their nonces
	homes []string        // of all contenders, the ids of their hosts

	words  *heard
	strays strays
}

func opsOf(ops []race.Op, allowed func(string) bool) map[string]*race.Op {
	all := map[string]*race.Op{}
	for i := range ops {
		if allowed == nil || allowed(ops[i].Name) {
			all[ops[i].Name] = &ops[i]
		}
	}
	return all
}

// Digest identifies a table of operations: a host with another could do something else than it is asked.
func Digest(ops []race.Op) string {
	h := sha256.New()
	for i := range ops {
		fmt.Fprintf(h, "%s\n", ops[i].Name)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func (m *member) hello() (hello, error) {
	host, err := facts.ReadHost()
	if err != nil {
		return hello{}, err
	}
	h := hello{Protocol: Protocol, Version: m.Version, Name: m.Name, Dirs: len(m.Dirs), Host: host, Ops: Digest(m.Ops)}
	h.Named = h.Name != ""
	h.Name = cmp.Or(h.Name, host.Name)
	h.Host.BootID = cmp.Or(m.pretend.bootID, host.BootID)
	h.TimeNS, _ = os.Readlink("/proc/self/ns/time")
	for _, s := range m.sites {
		route, err := facts.ReadRoute(s.path)
		if err != nil {
			return h, err
		}
		h.Routes = append(h.Routes, route)
		h.Warnings = append(h.Warnings, facts.Warnings(&route, &host)...)
	}
	return h, nil
}

// connect tries again until somebody is there. Who is there and refuses is asked once.
func (m *member) connect(ctx context.Context, until time.Time) (*nats.Conn, error) {
	opts, err := m.options()
	if err != nil {
		return nil, bare(err)
	}
	for told := false; ; told = true {
		nc, err := opts.Connect()
		if err == nil || final(err) || time.Now().After(until) {
			return nc, bare(err)
		}
		if !told {
			m.Log(fmt.Sprintf("nobody to join yet, trying for %v: %v", m.Wait, err))
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func (m *member) options() (nats.Options, error) {
	o := nats.GetDefaultOptions()
	o.Servers = addresses(m.URL)
	opts := []nats.Option{
		nats.Name(m.key), nats.CustomInboxPrefix(inboxes + m.id), nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond),
		nats.PingInterval(10 * time.Second), nats.Timeout(5 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { m.Log("nats: " + err.Error()) }),
		nats.ReconnectHandler(func(*nats.Conn) { m.again.Add(1) }),
		nats.DisconnectErrHandler(m.missing),
	}
	if m.Token != "" { // serve's own server knows users, another may know tokens; a user in the URL comes before both
		opts = append(opts, nats.UserInfo(joinUser, m.Token), nats.Token(m.Token))
	}
	if m.CA != "" {
		opts = append(opts, nats.RootCAs(m.CA))
	}
	if m.Creds != "" {
		opts = append(opts, nats.UserCredentials(m.Creds))
	}
	for _, set := range opts {
		if err := set(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// final says of an error of connecting that it will be the same the next time: the server refuses, is not trusted, or
// what it was to be shown is not there.
func final(err error) bool {
	var cert *tls.CertificateVerificationError
	var file *fs.PathError
	var address *url.Error
	return refused(err) || errors.As(err, &cert) || errors.As(err, &file) || errors.As(err, &address) ||
		errors.Is(err, nats.ErrSecureConnWanted) || errors.Is(err, nats.ErrSecureConnRequired)
}

func refused(err error) bool {
	return slices.ContainsFunc([]error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired,
	}, func(known error) bool { return errors.Is(err, known) })
}

// bare is an error of NATS in words that say what to do.
func bare(err error) error {
	var cert *tls.CertificateVerificationError
	var address *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &address):
		return errNoAddress
	case refused(err):
		return fmt.Errorf("the server refuses the token: %w; use the join line that serve prints", err)
	case errors.As(err, &cert):
		return fmt.Errorf("the server's certificate: %w; is --tls-ca the right file, and the address one that it names?", err)
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("no server there: %w; start claimbench serve first, and look at address and firewall", err)
	default:
		return fmt.Errorf("the NATS server: %w", err)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// missing ends the host's part if the server does not come back.
func (m *member) missing(nc *nats.Conn, why error) {
	time.AfterFunc(m.Away, func() {
		if !nc.IsConnected() {
			m.end(fmt.Errorf("the coordinator is out of reach for %v: %w", m.Away, errors.Join(nats.ErrDisconnected, why)))
		}
	})
}

// end says why the host's part is over; the first reason counts.
func (m *member) end(why error) {
	select {
	case m.over <- why:
	default:
	}
}

// introduce asks until a coordinator answers.
func (m *member) introduce(ctx context.Context, h *hello, until time.Time) (welcome, error) {
	for {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		msg, err := m.nc.RequestWithContext(one, helloAt(m.Meeting, m.id), encode(h))
		cancel()
		if err == nil {
			var w welcome
			if err := decode(msg.Data, &w); err != nil {
				return w, fmt.Errorf("the coordinator's answer: %w", err)
			}
			if w.Refused != "" {
				return w, errors.New("the coordinator refuses this host: " + w.Refused)
			}
			if protocolMajor(w.Protocol) != protocolMajor(Protocol) {
				return w, fmt.Errorf("the coordinator speaks protocol %.20q, and this is %s: use one version on all hosts", w.Protocol, Protocol)
			}
			return w, nil
		}
		if ctx.Err() != nil {
			return welcome{}, ctx.Err()
		}
		if time.Now().After(until) {
			return welcome{}, fmt.Errorf("no coordinator answers: %w", err)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return welcome{}, err
		}
	}
}

func protocolMajor(v string) string {
	major, _, _ := strings.Cut(v, ".")
	return major
}

// close ends the contenders, and removes what a coordinator that is gone can no longer have removed. One that is there
// does so itself: this host may be told to stop while others still race.
func (m *member) close() error {
	if m.nc != nil {
		defer m.nc.Close()
	}
	m.strays.sum()
	m.mu.Lock()
	desks, made := m.desks, m.made
	m.desks, m.made = nil, nil // what is asked from now on is refused
	m.mu.Unlock()
	var err error
	for _, d := range desks {
		err = errors.Join(err, d.close())
	}
	m.release()
	if m.orphaned {
		for nonce := range made {
			err = errors.Join(err, m.abandon(nonce))
		}
	}
	for _, s := range m.sites {
		err = errors.Join(err, s.root.Close())
	}
	return err
}

// keep has this host hold something.
func (m *member) keep(s *site, dir, host string) ([]string, error) {
	k := newKeeper(s, dir, host)
	m.mu.Lock()
	free := m.desks != nil && m.keeper == nil
	if free {
		m.keeper = k
	}
	m.mu.Unlock()
	if !free {
		return nil, errors.New("this host leaves, or holds something already: refused")
	}
	return k.keep(), nil
}

// release lets go of what this host keeps.
func (m *member) release() {
	m.mu.Lock()
	k := m.keeper
	m.keeper = nil
	m.mu.Unlock()
	if k != nil {
		k.release()
	}
}

// abandon removes a work directory, whoever of the hosts comes first. The others may survey on, if it is only this host that
// has lost the coordinator.
func (m *member) abandon(nonce string) (err error) {
	if !m.sites[0].free(path.Join(dirPrefix+nonce, vigilDir)) {
		m.Log("other hosts work in the work directory: it is left to them")
		return nil
	}
	for range 5 {
		if err = m.sites[0].remove(nonce); err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESTALE) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("left behind: %w", err)
}

// machine tells kernels apart. It is "" where that is not known.
func machine(h *result.Host, timeNS string) string {
	if h.BootID == "" {
		return ""
	}
	return h.BootID + " " + timeNS
}
