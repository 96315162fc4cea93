package fleet

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
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
	Listen string // address of the embedded server; a port of 0 is a free one
	Token  string // that hosts must show; "" draws one
	Open   bool   // no token at all
	Cert   string // files of a TLS certificate and its key
	Key    string
	URL    string // of a NATS server that is there already; nothing is embedded then
	CA     string // file of certificates to trust beside the system's, for URL
	Creds  string // file of NATS credentials, for URL
}

const joinUser = "join"

// check refuses what would let anybody in.
func (m *Meeting) check() error {
	if (m.Cert == "") != (m.Key == "") {
		return errors.New("a TLS certificate needs its key, and the other way round")
	}
	if m.URL != "" {
		return nil
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

// A meetingPoint is a server, ours or another, and our connection to it.
type meetingPoint struct {
	server *server.Server
	nc     *nats.Conn
	url    string // for the hosts
	line   string // for a person, who is shown no token but one that was drawn here
}

func joinLine(given bool, url string) string {
	if given {
		return "claimbench join --dir DIR --token-file FILE " + url
	}
	return "claimbench join --dir DIR " + url
}

func (m *Meeting) open(log func(string)) (*meetingPoint, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if m.URL != "" {
		return m.visit()
	}
	given := m.Token != "" && !m.Open
	if m.Token == "" && !m.Open {
		m.Token = secret()
	}
	ours := secret()
	opts := m.options(ours)
	if m.Cert != "" {
		if err := checkCertificate(m.Cert, m.Key, time.Now()); err != nil {
			return nil, err
		}
		cfg, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: m.Cert, KeyFile: m.Key})
		if err != nil {
			return nil, err
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
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo("coordinator", ours), nats.Name("claimbench serve"), nats.ErrorHandler(quiet))
	if err != nil {
		s.Shutdown()
		return nil, err
	}
	p := &meetingPoint{server: s, nc: nc, url: m.address(s, !m.Open)}
	p.line = joinLine(given, m.address(s, !m.Open && !given))
	return p, nil
}

func quiet(*nats.Conn, *nats.Subscription, error) {}

// options: a host may introduce itself, answer, and announce words; orders are the coordinator's alone.
func (m *Meeting) options(ours string) *server.Options {
	host, port, _ := net.SplitHostPort(m.Listen)
	p, _ := strconv.Atoi(port)
	if p == 0 {
		p = server.RANDOM_PORT
	}
	hosts := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{helloAt, prefix + "*" + announced, prefix + "*" + arrivals, prefix + "*" + alive}},
		Subscribe: &server.SubjectPermission{Allow: []string{prefix + ">", "_INBOX.>"}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: time.Hour},
	}
	opts := &server.Options{
		Host: host, Port: p, NoLog: false, NoSigs: true, MaxPayload: mostBytes, MaxConn: 1024, AuthTimeout: 10, TLSTimeout: 10,
		MaxControlLine: 4096, NoSystemAccount: true, PingInterval: 10 * time.Second, MaxPingsOut: 3, WriteDeadline: 10 * time.Second,
		Users: []*server.User{{Username: "coordinator", Password: ours}},
	}
	if m.Open {
		opts.NoAuthUser = joinUser
		opts.Users = append(opts.Users, &server.User{Username: joinUser, Password: secret(), Permissions: hosts})
		return opts
	}
	opts.Users = append(opts.Users, &server.User{Username: joinUser, Password: m.Token, Permissions: hosts})
	return opts
}

func (m *Meeting) address(s *server.Server, withToken bool) string {
	u := url.URL{Scheme: "nats", Host: s.Addr().String()}
	if m.Cert != "" {
		u.Scheme = "tls"
	}
	if withToken {
		u.User = url.UserPassword(joinUser, m.Token)
	}
	return u.String()
}

// visit uses a server that is there already.
//
// Orders and answers are lost with a connection, so that a broken one is not mended: it ends the survey.
func (m *Meeting) visit() (*meetingPoint, error) {
	opts := []nats.Option{nats.Name("claimbench serve"), nats.ErrorHandler(quiet), nats.NoReconnect()}
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
	var bad *url.Error
	switch {
	case errors.As(err, &bad):
		return nil, errors.New("the address of the NATS server is none: nats://HOST:PORT is one") // without it: a secret may be in it
	case err != nil:
		return nil, bare(err)
	}
	return &meetingPoint{nc: nc, url: m.URL, line: joinLine(m.Token != "", m.URL)}, nil
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
