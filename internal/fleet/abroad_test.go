package fleet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/survey"
)

// races has the two hosts of a meeting race, and leave.
func races(t *testing.T, f *Fleet, hosts []*child, dir string) {
	t.Helper()
	file, err := surveyed(t, f, settings(t, "mkdir"))
	if err != nil || file.Incomplete != "" || len(file.Targets) != 1 || file.Targets[0].Findings[0].Verdict != result.Holds {
		t.Errorf("%v %+v", err, file)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for _, h := range hosts {
		if err := h.ends(t, 10*time.Second); err != nil {
			t.Errorf("%v\n%s", err, h.out)
		}
	}
	nothingLeft(t, dir)
}

func TestAServerThatKnowsTokensAloneIsJoined(t *testing.T) {
	s := abroad(t, server.Options{Authorization: "sesame"})
	f, hosts, dir := visiting(t, Meeting{URL: s.ClientURL(), Token: "sesame"})
	races(t, f, hosts, dir)
}

func TestAServerThatKnowsUsersAndSpeaksTLSIsJoined(t *testing.T) {
	cert, key := certificate(t, time.Now().Add(time.Hour))
	cfg, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key})
	if err != nil {
		t.Fatal(err)
	}
	s := abroad(t, server.Options{Username: "app", Password: "sesame", TLS: true, TLSConfig: cfg})
	url := "tls://app:sesame@" + s.Addr().String()
	f, hosts, dir := visiting(t, Meeting{URL: url, CA: cert})
	if want := "claimbench join --dir DIR --tls-ca FILE tls://app:PASSWORD@" + s.Addr().String(); f.JoinLine() != want {
		t.Errorf("%q instead of %q", f.JoinLine(), want)
	}
	races(t, f, hosts, dir)
	if _, err := (&Meeting{URL: url}).open((&safe{}).add); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("nobody vouches for it: %v", err)
	}
	if _, err := (&Meeting{URL: "tls://app:guess@" + s.Addr().String(), CA: cert}).open((&safe{}).add); err == nil || !strings.Contains(err.Error(), "refuses") {
		t.Errorf("a wrong password: %v", err)
	}
}

// An operator signs accounts, and an account its users: the file of credentials is all that a user has.
func TestAServerThatWantsCredentialsIsJoined(t *testing.T) {
	pair := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		k, err := make()
		if err != nil {
			t.Fatal(err)
		}
		public, err := k.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return k, public
	}
	operator, operatorKey := pair(nkeys.CreateOperator)
	account, accountKey := pair(nkeys.CreateAccount)
	user, userKey := pair(nkeys.CreateUser)
	accountJWT, err := jwt.NewAccountClaims(accountKey).Encode(operator)
	if err != nil {
		t.Fatal(err)
	}
	userJWT, err := jwt.NewUserClaims(userKey).Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	data, err := jwt.FormatUserConfig(userJWT, seed)
	creds := filepath.Join(t.TempDir(), "user.creds")
	if err = errors.Join(err, os.WriteFile(creds, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	accounts := &server.MemAccResolver{}
	if err := accounts.Store(accountKey, accountJWT); err != nil {
		t.Fatal(err)
	}
	s := abroad(t, server.Options{TrustedKeys: []string{operatorKey}, AccountResolver: accounts})
	f, hosts, dir := visiting(t, Meeting{URL: s.ClientURL(), Creds: creds})
	if !strings.Contains(f.JoinLine(), " --nats-creds FILE ") {
		t.Errorf("%q", f.JoinLine())
	}
	races(t, f, hosts, dir)
	if _, err := (&Meeting{URL: s.ClientURL()}).open((&safe{}).add); err == nil {
		t.Error("it lets anybody in")
	}
}

func TestTwoMeetingsAtOneServer(t *testing.T) {
	s := abroad(t, server.Options{})
	f, hosts, dir := visiting(t, Meeting{URL: s.ClientURL()})
	if _, err := (&Meeting{URL: s.ClientURL()}).open((&safe{}).add); err == nil || !strings.Contains(err.Error(), "--meeting") {
		t.Errorf("a second of one name: %v", err)
	}
	other, otherHosts, otherDir := visiting(t, Meeting{URL: s.ClientURL(), Name: "night"})
	if !strings.Contains(other.JoinLine(), " --meeting night ") {
		t.Errorf("%q", other.JoinLine())
	}
	t.Run("at once", func(t *testing.T) {
		t.Run("default", func(t *testing.T) {
			t.Parallel()
			races(t, f, hosts, dir)
		})
		t.Run("night", func(t *testing.T) {
			t.Parallel()
			races(t, other, otherHosts, otherDir)
		})
	})
	again, err := (&Meeting{URL: s.ClientURL()}).open((&safe{}).add)
	if err != nil {
		t.Fatalf("the name is free again: %v", err)
	}
	again.close()
}

// bothered listens, and cuts the first connections off.
func bothered(t *testing.T, times int32, then string) (addr string, seen *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	seen = &atomic.Int32{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if seen.Add(1) <= times || then == "" {
				c.Close()
				continue
			}
			go forward(c, then)
		}
	}()
	return l.Addr().String(), seen
}

func TestWhoJoinsTriesAgainUntilTheServerIsThere(t *testing.T) {
	f, _ := serving(t, 2)
	defer f.Close()
	server := f.point.server.Addr().String()
	addr, seen := bothered(t, 3, server)
	c := spawn(t, part{URL: strings.Replace(f.point.url, server, addr, 1), Dir: t.TempDir(), Name: "alpha"})
	for until := time.Now().Add(30 * time.Second); !strings.Contains(c.out.String(), "joined as host"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not joined after %d connections: %s", seen.Load(), c.out)
		}
	}
	if n := strings.Count(c.out.String(), "nobody to join yet"); n != 1 {
		t.Errorf("it said %d times that it waits:\n%s", n, c.out)
	}
}

func TestWhatIsTriedAgainAndWhatIsNot(t *testing.T) {
	f, _ := serving(t, 2)
	defer f.Close()
	server := f.point.server.Addr().String()
	once := func(j Joining) error {
		j.Dirs, j.Ops, j.Log = []string{t.TempDir()}, survey.Ops(), func(string) {}
		return Join(context.Background(), j)
	}
	addr, seen := bothered(t, 0, server)
	if err := once(Joining{URL: "nats://join:wrong@" + addr, Wait: 20 * time.Second}); err == nil || !strings.Contains(err.Error(), "refuses the token") || seen.Load() != 1 {
		t.Errorf("a wrong token, shown %d times: %v", seen.Load(), err)
	}
	addr, seen = bothered(t, 0, server)
	if err := once(Joining{URL: "tls://" + addr, Wait: 20 * time.Second}); err == nil || seen.Load() != 1 {
		t.Errorf("TLS with a server that has none, asked %d times: %v", seen.Load(), err)
	}
	if err := once(Joining{URL: "nats://" + addr, CA: "/nonexistent", Wait: 20 * time.Second}); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := once(Joining{URL: "nats://" + addr, Creds: "/nonexistent", Wait: 20 * time.Second}); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("a file that is not there: %v", err)
	}
	addr, seen = bothered(t, 1<<30, "")
	if err := once(Joining{URL: "nats://" + addr, Wait: time.Second}); err == nil || seen.Load() < 2 {
		t.Errorf("who cuts off was tried %d times: %v", seen.Load(), err)
	}
	if err := once(Joining{URL: "nats://claimbench.invalid:1"}); err == nil || final(err) {
		t.Errorf("a name that may come: %v", err)
	}
}

// A list of servers has those of one cluster, of which some may be down.
func TestOneServerOfAListIsEnough(t *testing.T) {
	s := abroad(t, server.Options{})
	f, hosts, dir := visiting(t, Meeting{URL: "nats://127.0.0.1:1, " + s.ClientURL()})
	races(t, f, hosts, dir)
}

func TestTheAddressThatOthersReach(t *testing.T) {
	for want, own := range map[string][]string{
		"127.0.0.1":   nil,
		"192.0.2.7":   {"127.0.0.1/8", "::1/128", "fe80::1/64", "2001:db8::7/64", "192.0.2.7/24", "172.17.0.1/16"},
		"2001:db8::7": {"127.0.0.1/8", "::1/128", "169.254.3.3/16", "fe80::1/64", "2001:db8::7/64", "2001:db8::8/64"},
	} {
		var addrs []net.Addr
		for _, s := range own {
			ip, n, err := net.ParseCIDR(s)
			if err != nil {
				t.Fatal(err)
			}
			addrs = append(addrs, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		if got := reachable(addrs); got.String() != want {
			t.Errorf("%s instead of %s of %v", got, want, own)
		}
	}
	p, err := (&Meeting{Listen: "0.0.0.0:0"}).open((&safe{}).add)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	host := p.line[strings.LastIndexByte(p.line, '@')+1:]
	if a, err := netip.ParseAddrPort(host); err != nil || a.Addr().IsUnspecified() {
		t.Errorf("nobody can paste %q: %v", p.line, err)
	}
}

// forward passes on what either side says, until one hangs up.
func forward(c net.Conn, to string) {
	defer c.Close()
	d, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer d.Close()
	go func() {
		defer c.Close()
		_, _ = io.Copy(c, d)
	}()
	_, _ = io.Copy(d, c)
}
