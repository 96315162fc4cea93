package fleet

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/internal/survey"
	"github.com/claimbench/claimbench/internal/testenv"
)

func TestServeRefusesToBeOpenToTheNetwork(t *testing.T) {
	for _, c := range []struct {
		name string
		m    Meeting
		says string
	}{
		{"no token off loopback", Meeting{Listen: "0.0.0.0:0", Open: true}, "neither a token nor TLS"},
		{"every address is not loopback", Meeting{Listen: ":0", Open: true}, "neither a token nor TLS"},
		{"a name is not known to be loopback", Meeting{Listen: "example.test:0", Open: true}, "neither a token nor TLS"},
		{"no token on loopback", Meeting{Listen: "127.0.0.1:0", Open: true}, ""},
		{"IPv6 loopback", Meeting{Listen: "[::1]:0", Open: true}, ""},
		{"token off loopback", Meeting{Listen: "0.0.0.0:0"}, ""},
		{"TLS off loopback", Meeting{Listen: "0.0.0.0:0", Open: true, Cert: "c", Key: "k"}, ""},
		{"half a certificate", Meeting{Listen: "127.0.0.1:0", Cert: "c"}, "needs its key"},
		{"no port", Meeting{Listen: "127.0.0.1"}, "address to listen on"},
		{"a port that is none", Meeting{Listen: "127.0.0.1:99999"}, "port"},
	} {
		c.m.Name = DefaultMeeting
		err := c.m.check()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestHostsThatMayNotJoin(t *testing.T) {
	f := &Fleet{Serving: Serving{Hosts: 3, Ops: survey.Ops(), Version: "1"}}
	good := hello{Protocol: Protocol, Name: "alpha", Dirs: 1, Routes: make([]result.Route, 1), Ops: Digest(survey.Ops())}
	taken := good
	taken.Name = "beta"
	f.hosts = []*host{newHost(0, "a", taken)}
	for _, c := range []struct {
		name   string
		change func(*hello)
		says   string
	}{
		{"good", func(*hello) {}, ""},
		{"a newer minor version", func(h *hello) { h.Protocol = "1.9" }, ""},
		{"another major version", func(h *hello) { h.Protocol = "2.0" }, "protocol"},
		{"no version", func(h *hello) { h.Protocol = "" }, "protocol"},
		{"another build", func(h *hello) { h.Ops = "x" }, "other operations"},
		{"a name with a path in it", func(h *hello) { h.Name = "../etc" }, "name"},
		{"a name with a line end", func(h *hello) { h.Name = "a\nb" }, "name"},
		{"no name", func(h *hello) { h.Name = "" }, "name"},
		{"a chosen name that is taken", func(h *hello) { h.Name, h.Named = "beta", true }, "of that name"},
		{"a host name that is taken", func(h *hello) { h.Name = "beta" }, ""},
		{"no directory", func(h *hello) { h.Routes = nil }, "no directory"},
	} {
		h := good
		c.change(&h)
		if got := f.refuses(&h); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	f.hosts = append(f.hosts, newHost(1, "b", taken), newHost(2, "c", taken))
	if got := f.refuses(&good); !strings.Contains(got, "all 3 hosts") {
		t.Errorf("one too many: %q", got)
	}
	if got := unique("beta", f.hosts[:1]); got != "beta-2" {
		t.Errorf("a second beta is called %s", got)
	}
}

func TestWhoeverLacksTheTokenIsTurnedAway(t *testing.T) {
	f, log := serving(t, 2)
	defer f.Close()
	addr := f.point.server.Addr().String()
	for _, url := range []string{"nats://" + addr, "nats://join:wrong@" + addr, "nats://coordinator:guess@" + addr} {
		c := spawn(t, part{URL: url, Dir: t.TempDir()})
		if err := c.ends(t, 10*time.Second); err == nil || !strings.Contains(c.out.String(), "refuses the token") {
			t.Errorf("%s: %v: %s", url, err, c.out)
		}
	}
	scan(t, addr)
	if n := strings.Count(log.String(), "\n"); n > 3 {
		t.Errorf("%d lines for a port scan:\n%s", n, log)
	}
}

// scan connects and says what nobody understands, or nothing.
func scan(t *testing.T, addr string) {
	for _, say := range []string{"", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "CONNECT {}\r\nPUB claimbench.hello 2\r\nhi\r\n", strings.Repeat("A", 1<<16)} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = c.Write([]byte(say)) // it may be cut off
		_, _ = bufio.NewReader(c).ReadString('\n')
		c.Close()
	}
}

// intruder has the token, and uses it for something else.
func intruder(t *testing.T, f *Fleet) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(f.point.url, nats.ErrorHandler(quiet), nats.Name(intruderKey), nats.CustomInboxPrefix(inboxes+intruderID))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

const intruderKey = "intruder"

var intruderID = idOf(intruderKey)

func TestGarbageIsIgnored(t *testing.T) {
	f, log := serving(t, 2)
	defer f.Close()
	nc := intruder(t, f)
	for i := range 10000 {
		garbage := make([]byte, i%200)
		rand.Read(garbage)
		for _, at := range []string{helloAt(f.Name, intruderID), prefix + f.session + arrivals + intruderID, prefix + f.session + announced + intruderID} {
			if err := nc.Publish(at, garbage); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.FlushTimeout(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	spawn(t, part{URL: f.point.url, Dir: dir, Name: "alpha"})
	spawn(t, part{URL: f.point.url, Dir: dir, Name: "beta"})
	if missing, err := f.Gather(t.Context()); err != nil || missing != "" {
		t.Fatalf("%s %v", missing, err)
	}
	if n := strings.Count(log.String(), "none of ours"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log)
	}
}

func TestAHostMayNotGiveOrders(t *testing.T) {
	f, _, _ := together(t, part{Name: "alpha"}, part{Name: "beta"})
	defer f.Close()
	nc := intruder(t, f)
	if msg, err := nc.Request(errandAt(f.session, f.hosts[0].id), encode(errand{Do: doLeave}), 500*time.Millisecond); err == nil {
		t.Errorf("it was answered: %s", msg.Data)
	}
	if f.hosts[0].lost() != nil {
		t.Error("a host left when another told it to")
	}
}

// All hosts show the same token; one must not hear what another is told, nor answer for it or announce for it.
func TestAHostHearsAndSaysOnlyItsOwn(t *testing.T) {
	f, _, _ := together(t, part{Name: "alpha"}, part{Name: "beta"})
	defer f.Close()
	denied := make(chan string, 100)
	nc := intruder(t, f)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err.Error() })
	other := f.hosts[0].id
	refused := []string{
		">", prefix + ">", errandAt(f.session, other), errandAt(f.session, "*"), pingAt(f.session, other), contenderAt(f.session, other, 0),
		inboxes + ">", inboxes + other + ".>", helloAt(f.Name, "*"),
	}
	for _, at := range refused {
		if _, err := nc.SubscribeSync(at); err != nil {
			t.Fatal(err)
		}
	}
	// Its own words come back to it; that they ask for an answer at another's errands does not let it publish there.
	own, errands := prefix+f.session+announced+intruderID, errandAt(f.session, other)
	heard, err := nc.SubscribeSync(own)
	if err == nil {
		err = nc.PublishRequest(own, errands, encode(news{}))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := heard.NextMsg(20 * time.Second); err != nil {
		t.Fatalf("a host does not hear what it announces: %v", err)
	}
	if err := nc.Publish(errands, encode(errand{Do: doLeave})); err != nil {
		t.Fatal(err)
	}
	says := []string{
		helloAt(f.Name, other), prefix + f.session + announced + other, prefix + f.session + arrivals + other, prefix + f.session + written,
		prefix + f.session + starts, inboxes + other + ".x", pingAt(f.session, other), answerAt(f.session, other),
	}
	for _, at := range says {
		if err := nc.Publish(at, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.FlushTimeout(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	says = append(says, errands)
	for range len(refused) + len(says) {
		select {
		case err := <-denied:
			all.WriteString(err + "\n")
		case <-time.After(10 * time.Second):
		}
	}
	for what, subjects := range map[string][]string{"Subscription": refused, "Publish": says} {
		for _, at := range subjects {
			if !strings.Contains(all.String(), what+` to "`+at+`"`) {
				t.Errorf("%s to %s is allowed", what, at)
			}
		}
	}
	if err := f.hosts[0].lost(); err != nil {
		t.Error(err)
	}
	if msg, err := nc.Request(prefix+f.session+alive, nil, 10*time.Second); err != nil {
		t.Errorf("a host may not ask whether the coordinator lives: %v %v", msg, err)
	}
}

func TestNothingOutsideTheDirectoryIsTouched(t *testing.T) {
	f, _, dir := together(t, part{Name: "alpha"}, part{Name: "beta"})
	defer f.Close()
	outside := t.TempDir()
	precious := filepath.Join(outside, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	planted := strings.Repeat("0123456789abcdef", 2)
	if err := os.Symlink(outside, filepath.Join(dir, dirPrefix+planted)); err != nil {
		t.Fatal(err)
	}
	ctx, h := t.Context(), f.hosts[0]
	for _, e := range []errand{
		{Do: doMake, Nonce: "../../x"}, {Do: doMake, Nonce: ""}, {Do: doMake, Nonce: planted},
		{Do: doSub, Nonce: planted, Sub: "x"}, {Do: doSub, Nonce: planted, Sub: "../x"}, {Do: doSub, Nonce: planted, Sub: ""},
		{Do: doClear, Nonce: planted, Sub: "precious"}, {Do: doClear, Nonce: planted, Sub: "."}, {Do: doClear, Nonce: "..", Sub: filepath.Base(outside)},
		{Do: doRemove, Nonce: planted}, {Do: doRemove, Nonce: ""}, {Do: doRemove, Nonce: "../" + filepath.Base(outside)},
		{Do: doKeep, Nonce: planted, Sub: "x", Name: "alpha"}, {Do: doAsk, Nonce: planted, Sub: "x", Name: "alpha", What: "flock"},
		{Do: doSee, Nonce: planted, Way: 7}, {Do: "rm -rf /"}, {Do: doStart, Contenders: []int{-1}, Route: []int{9}, HangAfter: 1},
	} {
		if a, err := f.errand(ctx, h, &e); err == nil && !(e.Do == doSee && !a.Seen) {
			t.Errorf("%+v: it was done", e)
		}
	}
	s, err := openSite(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.root.Close()
	for i, err := range []error{s.make(planted), s.sub(planted, "x"), s.clear(planted, "precious"), s.remove(planted)} {
		if err == nil {
			t.Errorf("%d: it was done, by a host that thinks it has seen the directory", i)
		}
	}
	for _, e := range []errand{{Nonce: planted, Sub: "x", Name: "../precious"}, {Nonce: planted, Sub: "..", Name: "alpha"}, {Nonce: planted, Name: "alpha"}} {
		if _, err := keptIn(&e); err == nil {
			t.Errorf("%+v: something is kept there", e)
		}
	}
	for _, protocol := range keptClaims { // as if another had made it
		if err := os.Symlink(outside, filepath.Join(dir, protocol)); err != nil {
			t.Fatal(err)
		}
	}
	for _, kept := range []string{dirPrefix + planted, "."} {
		k := newKeeper(s, kept, "precious")
		held := k.keep()
		k.release()
		if kept != "." && len(held) > 0 || len(held) > len(keptLocks) {
			t.Errorf("beyond a symlink: %v", held)
		}
		if _, _, err := s.ask(kept, "precious", "generations"); err == nil {
			t.Errorf("a claim beyond a symlink was asked for")
		}
	}
	d, err := f.Start(ctx, race.Config{Ops: survey.Ops(), Contenders: 2, HangAfter: 5 * time.Second, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []order{
		{Do: toEnter, Nonce: planted}, {Do: toEnter, Nonce: planted, Sub: "x"}, {Do: toEnter, Nonce: "../.."}, {Do: toEnter, Sub: "x"},
		{Do: toDo, Op: "no-such"}, {Do: toHeat}, {Do: toHeat, Heat: &race.Heat{Op: "mkdir", Rounds: 1 << 30, N: 1}},
		{Do: toHeat, Heat: &race.Heat{Op: "mkdir", Rounds: 1, N: 1, Phase: 77}}, {Do: "dance"},
	} {
		if _, err := d.(*field).order(ctx, 0, o); err == nil {
			t.Errorf("%+v: it was done", o)
		}
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside: %v", entries)
	}
	if h.lost() != nil {
		t.Errorf("the host did not survive that: %v", h.lost())
	}
}

// certificate makes one for 127.0.0.1 that was good until a moment.
func certificate(t *testing.T, until time.Time) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: until.Add(-24 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secretKey, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	err = errors.Join(
		os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secretKey}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestACertificateIsLookedAt(t *testing.T) {
	log := &safe{}
	cert, key := certificate(t, time.Now().Add(-time.Hour))
	m := Meeting{Listen: "127.0.0.1:0", Cert: cert, Key: key}
	if _, err := m.open(log.add); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired one: %v", err)
	}
	if _, err := (&Meeting{Listen: "127.0.0.1:0", Cert: "/nonexistent", Key: key}).open(log.add); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("one that is not there: %v", err)
	}
	cert, key = certificate(t, time.Now().Add(time.Hour))
	p, err := (&Meeting{Listen: "127.0.0.1:0", Cert: cert, Key: key}).open(log.add)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	j := Joining{URL: p.url, Dirs: []string{t.TempDir()}, Ops: survey.Ops(), Wait: 0, Log: log.add}
	if err := Join(context.Background(), j); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("nobody vouches for it: %v", err)
	}
	j.CA = cert
	if err := Join(context.Background(), j); err == nil || !strings.Contains(err.Error(), "no coordinator answers") {
		t.Errorf("trusted, and nobody answers: %v", err)
	}
}

// A host may tell what its contenders write, and that they have arrived. It may not write where the coordinator does, nor
// stand in for another host's contender that is still under way.
func TestAHostMayNotSpeakForOthers(t *testing.T) {
	f, log := serving(t, 2)
	defer f.Close()
	nc, seen := intruder(t, f), make(chan struct{}, 100)
	if _, err := f.point.nc.Subscribe(prefix+f.session+anyWords, func(*nats.Msg) { seen <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	starts, err := f.point.nc.SubscribeSync(prefix + f.session + starts)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.point.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish(prefix+f.session+written, encode(news{Number: 1})); err != nil {
		t.Fatal(err)
	}
	f.starter.begin(5, 1, []string{intruderID, "b"}, 0)
	for _, who := range []int{0, 0, 1, 7, -1, 64, 0} {
		if err := nc.Publish(prefix+f.session+arrivals+intruderID, encode(arrival{Who: who, First: 5})); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if msg, err := starts.NextMsg(300 * time.Millisecond); err == nil {
		t.Errorf("a start, and one contender has not arrived: %s", msg.Data)
	}
	if len(seen) > 0 {
		t.Errorf("a host wrote words where the coordinator does:\n%s", log)
	}
	if s := log.String(); !strings.Contains(s, intruderID) || strings.Contains(s, intruderKey) {
		t.Errorf("a host is told of by its key, or not at all:\n%s", s)
	}
	f.starter.hear(&nats.Msg{Subject: prefix + f.session + arrivals + "b", Data: encode(arrival{Who: 1, First: 5})})
	if _, err := starts.NextMsg(5 * time.Second); err != nil {
		t.Errorf("no start, and all have arrived: %v", err)
	}
}

func TestWhatAHostAnnouncesNeitherCountsNorGivesOrders(t *testing.T) {
	log := &safe{}
	m := &member{Joining: Joining{Log: log.add}, words: newHeard(), desks: map[int]*desk{}, homes: []string{4: "b", 3: "a"}, strays: strays{log: log.add}}
	line, err := race.Start(race.Config{Ops: survey.Ops(), Contenders: 1, First: 3, HangAfter: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(3, t.TempDir(), line, nil)
	t.Cleanup(func() { d.close() })
	m.desks[3] = d
	word := func(who int, w uint64) []byte {
		words, none := make([]uint64, race.Words), make([]uint64, race.Words)
		words[9] = w
		return changes(nil, who, words, none)
	}
	m.hear(&nats.Msg{Subject: prefix + "s" + announced + "b", Data: encode(news{Number: 1, Words: word(3, 66)})})
	if got := line.Words(3)[9]; got != 0 || m.words.last != 0 {
		t.Errorf("another host wrote %d into the words of a contender here, and %d news count", got, m.words.last)
	}
	m.hear(&nats.Msg{Subject: prefix + "s" + announced + "b", Data: encode(news{Words: word(4, 77)})})
	m.hear(&nats.Msg{Subject: prefix + "s" + announced + "c", Data: encode(news{Words: word(4, 55)})})
	m.hear(&nats.Msg{Subject: prefix + "s" + announced + "b", Data: encode(news{Words: word(5, 44)})})
	m.hear(&nats.Msg{Subject: prefix + "s" + written, Data: encode(news{Number: 1, Words: word(3, 88)})})
	m.hear(&nats.Msg{Subject: prefix + "s" + written, Data: encode(news{Number: 3, Words: word(3, 99)})})
	if a, b, none := line.Words(4)[9], line.Words(3)[9], line.Words(5)[9]; a != 77 || b != 99 || none != 0 {
		t.Errorf("words %d, %d and %d", a, b, none)
	}
	if n := strings.Count(log.String(), "which is another's"); n != 1 || m.strays.n != 3 {
		t.Errorf("%d objections, %d of them told:\n%s", m.strays.n, n, log)
	}
	if m.words.wait(3, 10*time.Millisecond) || !m.words.wait(1, 0) {
		t.Errorf("news 2 never came, and %d count", m.words.last)
	}
}

func TestAWorkDirectoryThatCannotBeSignedIsTakenBack(t *testing.T) {
	dir := testenv.Tmpfs(t, "nr_blocks=1")
	if err := os.WriteFile(filepath.Join(dir, "full"), []byte("disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openSite(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.root.Close()
	if err := s.make(strings.Repeat("0123456789abcdef", 2)); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("a manifest on a full disk: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// Whoever cannot find out whether others hold anything does not take the directory for abandoned.
func TestAFullDiskDoesNotMakeADirectoryFree(t *testing.T) {
	dir := testenv.Tmpfs(t, "nr_inodes=60")
	s, err := openSite(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.root.Close()
	k := newKeeper(s, ".", "beta")
	defer k.release()
	if held := k.keep(); len(held) != len(keptLocks)+len(keptClaims) {
		t.Fatalf("%v", held)
	}
	for i := range 60 {
		_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600) // until none is left
	}
	if s.free(".") {
		t.Error("it is taken for free while another holds claims")
	}
}

func TestWithoutAHostNothingIsStarted(t *testing.T) {
	h := newHost(0, "a", hello{Name: "alpha"})
	h.losing("it was killed")
	f, _ := serving(t, 2)
	defer f.Close()
	f.hosts, f.field = []*host{h}, &field{f: f}
	for _, err := range []error{f.field.start(t.Context()), f.Regroup(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "alpha is lost") {
			t.Errorf("%v", err)
		}
	}
}

func TestNothingIsDoneInTheWorkDirectoryOfAnotherSurvey(t *testing.T) {
	s, err := openSite(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	nonce := strings.Repeat("0123456789abcdef", 2)
	if err := errors.Join(s.make(nonce), s.sub(nonce, "theirs")); err != nil {
		t.Fatal(err)
	}
	m := &member{desks: map[int]*desk{}, made: map[string]bool{}, sites: []*site{s}, orphaned: true}
	for _, e := range []errand{{Do: doMake}, {Do: doSub, Sub: "x"}, {Do: doClear, Sub: "theirs"}, {Do: doRemove}, {Do: doKeep, Sub: "theirs", Name: "x"}, {Do: doAsk, Sub: "theirs", Name: "x", What: "generations"}} {
		e.Nonce = nonce
		if err := m.run(t.Context(), welcome{}, &e, &answer{}); err == nil {
			t.Errorf("%s: it was done", e.Do)
		}
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Join(s.path, dirPrefix+nonce)); len(entries) != 2 {
		t.Errorf("of another's there is: %v %v", entries, err)
	}
}

func TestAPathMayBeAnyBytes(t *testing.T) {
	var h hello
	if err := decode(encode(hello{Routes: []result.Route{{Path: "/srv/\xff"}}}), &h); err != nil || len(h.Routes) != 1 {
		t.Errorf("%v %+v", err, h.Routes)
	}
}

func TestWhoAsksAgainAndAgainDoesNotFillTheScreen(t *testing.T) {
	log := &safe{}
	f := &Fleet{Serving: Serving{Hosts: 2, Ops: survey.Ops(), Log: log.add}}
	for range 10000 {
		f.meet(&nats.Msg{Data: encode(hello{Protocol: "2.0", Name: "alpha"})})
	}
	if n := strings.Count(log.String(), "\n"); n < 1 || n > 30 {
		t.Errorf("%d lines", n)
	}
}

// Ctrl-C may come while the coordinator has a host start its contenders, or make the work directory.
func TestALeavingHostStartsNothing(t *testing.T) {
	s, err := openSite(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Joining: Joining{Ops: survey.Ops()}, desks: map[int]*desk{}, made: map[string]bool{}, sites: []*site{s}}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	nonce := strings.Repeat("0123456789abcdef", 2)
	m.mine(nonce, true)
	start := errand{Do: doStart, Contenders: []int{0}, Route: []int{0}, HangAfter: int64(time.Second)}
	if err := m.start(t.Context(), welcome{}, &start, &answer{}); !errors.Is(err, errLeaving) {
		t.Errorf("start: %v", err)
	}
	for _, e := range []errand{start, {Do: doMake, Nonce: nonce}, {Do: doSee, Nonce: nonce}} {
		if err := m.run(t.Context(), welcome{}, &e, &answer{}); !errors.Is(err, errLeaving) {
			t.Errorf("%s: %v", e.Do, err)
		}
	}
	if entries, _ := os.ReadDir(s.path); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestATokenThatWasGivenIsNotShown(t *testing.T) {
	for _, c := range []struct {
		m    Meeting
		says string
	}{
		{Meeting{Token: "sesame"}, "claimbench join --dir DIR --token-file FILE nats://127.0.0.1:"},
		{Meeting{}, "claimbench join --dir DIR nats://join:"},
		{Meeting{Open: true}, "claimbench join --dir DIR nats://127.0.0.1:"},
	} {
		c.m.Listen = "127.0.0.1:0"
		p, err := c.m.open((&safe{}).add)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(p.line, c.says) || strings.Contains(p.line, "sesame") {
			t.Errorf("%q", p.line)
		}
		p.close()
	}
	f, err := Serve(Serving{Meeting: Meeting{Listen: "127.0.0.1:0", Token: "sesame"}, Hosts: 2, Ops: survey.Ops(), Log: (&safe{}).add})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	url := "nats://" + f.point.server.Addr().String()
	c := spawn(t, part{URL: url, Token: "sesame", Dir: t.TempDir(), Name: "alpha"})
	for until := time.Now().Add(30 * time.Second); !strings.Contains(c.out.String(), "joined as host"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not joined with the token beside the URL: %s", c.out)
		}
	}
}

func TestNoSecretOfAListOfServersIsShown(t *testing.T) {
	for list, want := range map[string]string{
		"nats://a:1": "nats://a:1",
		"nats://app:sesame@a:1, tls://sesame@b:2": "nats://app:PASSWORD@a:1,tls://TOKEN@b:2",
		"sesame@a:1,b":              "nats://TOKEN@a:1,nats://b",
		"nats://b,nats://sesame@:x": "nats://b,URL",
	} {
		if got := withoutSecret(list); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
	j := Joining{URL: "nats://app:sesame@127.0.0.1:1,nats://app:sesame@:x", Dirs: []string{t.TempDir()}, Ops: survey.Ops(), Log: func(string) {}}
	if err := Join(t.Context(), j); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("an address that is none: %v", err)
	}
}

func TestAHostThatAnswersNoOrderIsLost(t *testing.T) {
	f, _ := serving(t, 2)
	defer f.Close()
	f.mostWait = 200 * time.Millisecond
	if _, err := f.point.nc.Subscribe("deaf", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	h := newHost(0, "a", hello{Name: "alpha"})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var lost *LostError
	if _, err := f.ask(ctx, h, "deaf", &order{Do: toPend}); !errors.As(err, &lost) || h.lost() == nil {
		t.Errorf("%v", err)
	}
	cancel()
	other := newHost(1, "b", hello{Name: "beta"})
	if _, err := f.ask(ctx, other, "deaf", &order{Do: toPend}); err == nil || other.lost() != nil {
		t.Errorf("nobody waits any more: %v, %v", err, other.lost())
	}
}

func TestAConnectionThatBreaksBeforeTheFirstPingLosesNothing(t *testing.T) {
	f, _ := serving(t, 2)
	defer f.Close()
	h := newHost(0, "a", hello{Name: "alpha"})
	h.kernel = &kernel{}
	var again atomic.Int64
	again.Store(3)
	if _, err := f.point.nc.Subscribe(pingAt(f.session, h.id), func(msg *nats.Msg) {
		_ = msg.Respond(encode(pong{At: race.Now(), Again: again.Load()}))
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(f.ping(h), h.lost()); err != nil {
			t.Fatal(err)
		}
	}
	again.Add(1)
	if err := f.ping(h); err != nil || h.lost() == nil {
		t.Errorf("a connection that broke after it: %v", err)
	}
}

func TestWhatAHostSaysSteersNoTerminal(t *testing.T) {
	const evil = "a\x1b[2J\rb\nc"
	f := &Fleet{Serving: Serving{Hosts: 2, Ops: survey.Ops(), Log: (&safe{}).add}, full: make(chan struct{})}
	f.meet(&nats.Msg{Data: encode(hello{
		Protocol: Protocol, Name: "alpha", Dirs: 1, Routes: []result.Route{{Path: "/" + evil}}, Warnings: []string{evil}, Ops: Digest(f.Ops),
	})})
	_, _, warnings := f.Look()
	all := append(f.Target(), warnings...)
	for _, e := range []failure{{Text: evil}, {Text: evil, Errno: 5}, {Died: evil, Op: evil}, {Hung: 1, Op: evil, State: evil}, {Path: evil, Call: evil, Errno: 5}} {
		all = append(all, e.error("alpha").Error())
	}
	if len(all) != 7 {
		t.Errorf("%q", all)
	}
	for _, s := range all {
		if strings.ContainsAny(s, "\x1b\r\n") {
			t.Errorf("%q", s)
		}
	}
}
