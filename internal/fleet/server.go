package fleet

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Meeting says where hosts and coordinator meet.
type Meeting struct {
	Name   string // of this meeting at its server; "" is DefaultMeeting
	Listen string // address of the embedded server; a port of 0 is a free one
	Token  string // that hosts must show; "" draws one
	Open   bool   // no token at all
	Cert   string // files of a TLS certificate and its key
	Key    string
	URL    string // of a NATS server that is there already, or of several, with commas; nothing is embedded then
	CA     string // file of certificates to trust beside the system's, for URL
	Creds  string // file of NATS credentials, for URL
}

// DefaultMeeting is the name that both sides give a meeting to which nobody gave one.
const DefaultMeeting = "default"

const (
	joinUser = "join"
	inboxes  = "_INBOX." // and the host's id: where its answers go
)

// check refuses what would let anybody in.
func (m *Meeting) check() error {
	if err := checkName(m.Name); err != nil {
		return err
	}
	if (m.Cert == "") != (m.Key == "") {
		return errors.New("a TLS certificate needs its key, and the other way round")
	}
	if m.URL != "" {
		return checkAddresses(m.URL)
	}
	host, port, err := net.SplitHostPort(m.Listen)
	if err != nil {
		return fmt.Errorf("address to listen on: %w", err)
	}
	if p, err := strconv.Atoi(port); err != nil || p < 0 || p > 65535 {
		return fmt.Errorf("address to listen on: port %q", port)
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	if m.Open && m.Cert == "" && !local {
		return fmt.Errorf("%s is not loopback, and there is neither a token nor TLS: anybody there could join; leave the token on, or give a certificate", m.Listen)
	}
	return nil
}

// checkName keeps a meeting's name from being more than one part of a subject.
func checkName(meeting string) error {
	if !subForm.MatchString(meeting) {
		return fmt.Errorf("meeting %q: small letters, digits and dashes make a name", meeting)
	}
	return nil
}

// A meetingPoint is a server, ours or another, and our connection to it.
type meetingPoint struct {
	server *server.Server
	nc     *nats.Conn
	url    string // for the hosts
	line   string // for a person, who is shown no token but one that was drawn here
}

func (m *Meeting) joinLine(given bool, url string) string {
	line := "claimbench join --dir DIR "
	if m.Name != DefaultMeeting {
		line += "--meeting " + m.Name + " "
	}
	if given {
		line += "--token-file FILE "
	}
	if m.CA != "" {
		line += "--tls-ca FILE "
	}
	if m.Creds != "" {
		line += "--nats-creds FILE "
	}
	return line + url
}

func (m *Meeting) open(log func(string)) (*meetingPoint, error) {
	m.Name = cmp.Or(m.Name, DefaultMeeting)
	if err := m.check(); err != nil {
		return nil, &SettingError{err}
	}
	if m.URL != "" {
		return m.visit(log)
	}
	given := m.Token != "" && !m.Open
	if m.Token == "" && !m.Open {
		m.Token = secret()
	}
	ours := secret()
	opts := m.options(ours)
	if m.Cert != "" {
		if err := checkCertificate(m.Cert, m.Key, time.Now()); err != nil {
			return nil, &SettingError{err}
		}
		cfg, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: m.Cert, KeyFile: m.Key})
		if err != nil {
			return nil, &SettingError{err}
		}
		opts.TLS, opts.TLSConfig = true, cfg
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, err
	}
	s.SetLogger(newServerLog(log), false, false)
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, fmt.Errorf("listen on %s: not possible; is the address taken?", m.Listen)
	}
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo("coordinator", ours), nats.Name("claimbench serve"), nats.ErrorHandler(quiet), nats.SyncQueueLen(fewAnswers))
	if err != nil {
		s.Shutdown()
		return nil, err
	}
	p := &meetingPoint{server: s, nc: nc, url: m.address(s, !m.Open)}
	p.line = m.joinLine(given, m.address(s, !m.Open && !given))
	return p, nil
}

// fewAnswers is more than one question has. The default is room for many thousands, which is made for every question.
const fewAnswers = 8

func quiet(*nats.Conn, *nats.Subscription, error) {}

func (m *Meeting) options(ours string) *server.Options {
	host, port, _ := net.SplitHostPort(m.Listen)
	p, _ := strconv.Atoi(port)
	if p == 0 {
		p = server.RANDOM_PORT
	}
	return &server.Options{
		Host: host, Port: p, NoSigs: true, MaxPayload: mostBytes, MaxConn: 1024, AuthTimeout: 10, TLSTimeout: 10,
		MaxControlLine: 4096, NoSystemAccount: true, PingInterval: 10 * time.Second, MaxPingsOut: 3, WriteDeadline: 10 * time.Second,
		CustomClientAuthentication: &doorkeeper{ours: ours, token: m.Token, open: m.Open, meeting: m.Name},
	}
}

// A doorkeeper lets in the coordinator, and hosts that show the token. All show one token; what tells them apart is a key
// that each draws for itself, and sends as the name of its connection.
type doorkeeper struct {
	ours, token string
	open        bool
	meeting     string
}

func (d *doorkeeper) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	switch {
	case o.Username == "coordinator":
		return equal(o.Password, d.ours)
	case d.open || o.Username == joinUser && equal(o.Password, d.token):
		o.Name = idOf(o.Name) // from here on: the server's log has it
		c.RegisterUser(&server.User{Permissions: hostMay(d.meeting, o.Name)})
		return true
	}
	return false
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// hostMay introduce itself, answer what it was asked, and announce words: under its own id. Orders are the coordinator's
// alone, and each is heard by nobody but the host that it is for. It may not answer wherever a message asks for it (the
// server's Response): a host hears the words that it announces, and could let them ask for an answer at another's orders.
func hostMay(meeting, id string) *server.Permissions {
	const session = prefix + "*"
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			helloAt(meeting, id), session + announced + id, session + arrivals + id, session + answers + id + ".*", session + alive,
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{
			session + orders + id + ".>", session + anyWords, session + starts, inboxes + id + ".>",
		}},
	}
}

func (m *Meeting) address(s *server.Server, withToken bool) string {
	u := url.URL{Scheme: "nats", Host: s.Addr().String()}
	if a, err := netip.ParseAddrPort(u.Host); err == nil && a.Addr().IsUnspecified() {
		own, _ := net.InterfaceAddrs() // without them loopback is told
		u.Host = netip.AddrPortFrom(reachable(own), a.Port()).String()
	}
	if m.Cert != "" {
		u.Scheme = "tls"
	}
	if withToken {
		u.User = url.UserPassword(joinUser, m.Token)
	}
	return u.String()
}

// reachable is the address, of a machine's own, by which others most likely reach it.
func reachable(own []net.Addr) netip.Addr {
	best := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for _, o := range own {
		p, err := netip.ParsePrefix(o.String())
		switch a := p.Addr(); {
		case err != nil || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast():
		case a.Is4():
			return a
		case best.IsLoopback():
			best = a
		}
	}
	return best
}

// visit uses a server that is there already.
//
// Orders and answers are lost with a connection, so that a broken one is not mended: it ends the survey.
func (m *Meeting) visit(log func(string)) (*meetingPoint, error) {
	tell := func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			log("the NATS server does not let this be a meeting: " + err.Error())
		}
	}
	opts := []nats.Option{nats.Name("claimbench serve"), nats.ErrorHandler(tell), nats.SyncQueueLen(fewAnswers), nats.NoReconnect()}
	if m.CA != "" {
		opts = append(opts, nats.RootCAs(m.CA))
	}
	if m.Creds != "" {
		opts = append(opts, nats.UserCredentials(m.Creds))
	}
	if m.Token != "" {
		opts = append(opts, nats.Token(m.Token))
	}
	nc, err := nats.Connect(m.URL, opts...)
	if err != nil {
		return nil, bare(err)
	}
	if _, err := nc.Request(prefix+m.Name+taken, nil, 2*time.Second); err == nil {
		nc.Close()
		return nil, fmt.Errorf("another claimbench serve has meeting %q at that server: give this one a name by --meeting, and its hosts too", m.Name)
	}
	return &meetingPoint{nc: nc, url: m.URL, line: m.joinLine(m.Token != "", withoutSecret(m.URL))}, nil
}

// checkAddresses shows none of them: a secret may be in it.
func checkAddresses(list string) error {
	for _, a := range addresses(list) {
		if u, err := url.Parse(a); err != nil || u.Host == "" {
			return errNoAddress
		}
	}
	return nil
}

var errNoAddress = errors.New("the address of the NATS server is none: nats://HOST:PORT is one")

// addresses are those of a list. What has no scheme is NATS's, as to NATS itself.
func addresses(list string) []string {
	var all []string
	for a := range strings.SplitSeq(list, ",") {
		if a = strings.TrimSpace(a); a != "" && !strings.Contains(a, "://") {
			a = "nats://" + a
		}
		if a != "" {
			all = append(all, a)
		}
	}
	return all
}

// withoutSecret has words in the place of passwords and tokens, which a log would keep.
func withoutSecret(list string) string {
	all := addresses(list)
	for i, a := range all {
		u, err := url.Parse(a)
		if err != nil {
			all[i] = "URL"
			continue
		}
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), "PASSWORD")
		} else if u.User != nil {
			u.User = url.User("TOKEN")
		}
		all[i] = u.String()
	}
	return strings.Join(all, ",")
}

func (p *meetingPoint) close() {
	p.nc.Close()
	if p.server != nil {
		p.server.Shutdown()
		p.server.WaitForShutdown()
	}
}

func secret() string {
	var b [24]byte
	rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(b[:])
}

// checkCertificate says at the start what every host would say later.
func checkCertificate(cert, key string, now time.Time) error {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("TLS certificate: %w", errors.Join(err, existence(cert), existence(key)))
	}
	if leaf := pair.Leaf; leaf != nil && now.After(leaf.NotAfter) {
		return fmt.Errorf("TLS certificate %s: it expired on %s", cert, leaf.NotAfter.Format(time.DateOnly))
	}
	return nil
}

func existence(path string) error {
	_, err := os.Stat(path)
	return err
}
