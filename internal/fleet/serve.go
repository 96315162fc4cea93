package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/claimbench/claimbench/internal/facts"
	"github.com/claimbench/claimbench/internal/race"
)

// Serving says whom to wait for.
type Serving struct {
	Meeting
	Hosts   int
	Wait    time.Duration // for all of them; those that are there by then take part, if they are two at least
	Version string
	Ops     []race.Op
	Log     func(string)
}

// A Fleet is the hosts that have joined, seen from the coordinator.
type Fleet struct {
	Serving
	point   *meetingPoint
	session string
	self    string // the coordinator's own kernel
	strays  strays

	mu       sync.Mutex // over the hosts until all are there, and over what pings find
	hosts    []*host
	full     chan struct{} // has one whenever as many as wanted have joined
	gathered bool          // nobody comes or goes any more
	closing  bool
	refused  int // hosts
	kernels  map[string]*kernel

	mostWait, askFor time.Duration

	field   *field
	ground  *ground
	starter starter
	unwatch func() // ends the vigil, if there is one
}

// Serve opens the meeting point. The join line is for a person, or for whatever starts the hosts.
func Serve(s Serving) (*Fleet, error) {
	if s.Hosts < 2 || s.Hosts > race.MaxContenders {
		return nil, &SettingError{fmt.Errorf("%d hosts: must be 2 to %d", s.Hosts, race.MaxContenders)}
	}
	self, err := facts.ReadHost()
	if err != nil {
		return nil, err
	}
	timeNS, _ := os.Readlink("/proc/self/ns/time")
	f := &Fleet{Serving: s, session: secret()[:16], self: machine(&self, timeNS), full: make(chan struct{}, 1), kernels: map[string]*kernel{}, mostWait: mostWait, askFor: askFor}
	f.strays.log = s.Log
	if f.point, err = f.Meeting.open(s.Log); err != nil {
		return nil, err
	}
	f.starter.f = f
	here := func(msg *nats.Msg) { _ = msg.Respond(nil) } // who does not hear it asks again
	for _, s := range []struct {
		at string
		do nats.MsgHandler
	}{
		{prefix + f.Name + taken, here}, {prefix + f.session + alive, here},
		{helloAt(f.Name, "*"), f.meet}, {prefix + f.session + arrivals + "*", f.starter.hear},
	} {
		if err == nil {
			_, err = f.point.nc.Subscribe(s.at, s.do)
		}
	}
	if err != nil {
		f.point.close()
		return nil, err
	}
	return f, nil
}

// JoinLine is what to type on each host.
func (f *Fleet) JoinLine() string { return f.point.line }

// meet answers one hello.
func (f *Fleet) meet(msg *nats.Msg) {
	var h hello
	if err := decode(msg.Data, &h); err != nil {
		f.strays.add("hello", err)
		if msg.Reply != "" {
			_ = msg.Respond(encode(welcome{Protocol: Protocol, Refused: "this is no hello of protocol " + Protocol}))
		}
		return
	}
	id := idIn(msg.Subject)
	if f.inTheWay(&h, id) {
		f.forgetGone(context.Background())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := welcome{Protocol: Protocol, Session: f.session, Hosts: f.Hosts, Host: place(f.hosts)}
	if again := slices.IndexFunc(f.hosts, func(o *host) bool { return o.id == id }); again >= 0 {
		w.Host = f.hosts[again].index // its first hello was answered, and the answer lost
		_ = msg.Respond(encode(w))
		return
	}
	if w.Refused = f.refuses(&h); w.Refused != "" {
		if f.refused++; f.refused <= toldRefusals {
			f.Log(fmt.Sprintf("refused host %.40q: %s", h.Name, w.Refused))
		}
		_ = msg.Respond(encode(w))
		return
	}
	h.plain()
	h.Name = unique(h.Name, f.hosts)
	f.hosts = append(f.hosts, newHost(w.Host, id, h))
	f.Log(fmt.Sprintf("host %d of %d: %s%s", len(f.hosts), f.Hosts, h.Name, f.companions(&h)))
	_ = msg.Respond(encode(w))
	if len(f.hosts) == f.Hosts {
		select {
		case f.full <- struct{}{}:
		default:
		}
	}
}

// inTheWay reports whether a host would get no place, or not its name, for those that are here.
func (f *Fleet) inTheWay(h *hello, id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gathered || slices.ContainsFunc(f.hosts, func(o *host) bool { return o.id == id }) {
		return false
	}
	return len(f.hosts) >= f.Hosts || slices.ContainsFunc(f.hosts, func(o *host) bool { return o.name() == h.Name })
}

// forgetGone has the hosts that have ended before the survey begins not count.
func (f *Fleet) forgetGone(ctx context.Context) {
	f.mu.Lock()
	hosts := slices.Clone(f.hosts)
	f.mu.Unlock()
	_ = f.each(hosts, func(h *host) error {
		if !f.gone(ctx, h) {
			return nil
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if i := slices.Index(f.hosts, h); i >= 0 && !f.gathered {
			f.hosts = slices.Delete(f.hosts, i, i+1)
			f.Log("host " + h.name() + " is gone again")
		}
		return nil
	})
}

// place is the first number that none of the hosts has.
func place(hosts []*host) int {
	for n := 0; ; n++ {
		if !slices.ContainsFunc(hosts, func(o *host) bool { return o.index == n }) {
			return n
		}
	}
}

// toldRefusals is how many refused hosts are told of: who asks again and again must not fill the screen.
const toldRefusals = 20

// refuses says why a host may not join, or "".
func (f *Fleet) refuses(h *hello) string {
	taken := slices.ContainsFunc(f.hosts, func(o *host) bool { return o.hello.Name == h.Name })
	switch {
	case protocolMajor(h.Protocol) != protocolMajor(Protocol):
		return fmt.Sprintf("it speaks protocol %.20q, and this is %s: use one version of claimbench on all hosts", h.Protocol, Protocol)
	case h.Ops != Digest(f.Ops):
		return fmt.Sprintf("it is version %.40q, which has other operations than %s: use one version of claimbench on all hosts", h.Version, f.Version)
	case !nameForm.MatchString(h.Name):
		return "its name is none: letters, digits, dots and dashes make one"
	case len(h.Routes) == 0 || h.Dirs != len(h.Routes):
		return "it brings no directory"
	case len(f.hosts) >= f.Hosts:
		return fmt.Sprintf("all %d hosts are here", f.Hosts)
	case taken && h.Named:
		return "a host of that name is here already"
	}
	return ""
}

// companions says that a host is on a kernel that is here already.
func (f *Fleet) companions(h *hello) string {
	var names []string
	for _, o := range f.hosts[:len(f.hosts)-1] {
		if m := machine(&h.Host, h.TimeNS); m != "" && m == o.machine() {
			names = append(names, o.name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (the same kernel as %s: no further host)", strings.Join(names[:min(len(names), 3)], ", "))
}

// unique gives a second host of a name that nobody chose another.
func unique(name string, hosts []*host) string {
	for n, try := 2, name; ; n++ {
		if !slices.ContainsFunc(hosts, func(o *host) bool { return o.name() == try }) {
			return try
		}
		try = fmt.Sprintf("%s-%d", name, n)
	}
}

// living are the hosts that are not lost.
func (f *Fleet) living() []*host {
	return slices.DeleteFunc(slices.Clone(f.hosts), func(h *host) bool { return h.lost() != nil })
}

// begin counts the hosts. If they are all, or it is late, nobody comes or goes any more, and their order is not that in
// which they came.
func (f *Fleet) begin(late bool) (here int, begun bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	here = len(f.hosts)
	if f.gathered = late || here == f.Hosts; f.gathered {
		f.Hosts = max(here, 1) // whoever comes now is refused
		slices.SortFunc(f.hosts, func(a, b *host) int { return strings.Compare(a.name(), b.name()) })
	}
	return here, f.gathered
}

// Gather waits for the hosts. With fewer than wanted it goes on if they are two at least, and says so in missing.
func (f *Fleet) Gather(ctx context.Context) (missing string, err error) {
	over := time.After(f.Wait)
	here, wanted, late := 0, f.Hosts, false
	for begun := false; !begun; {
		select {
		case <-f.full:
		case <-ctx.Done():
			return "", ctx.Err()
		case <-over:
			late = true
		}
		f.forgetGone(ctx)
		here, begun = f.begin(late)
	}
	switch {
	case here < 2:
		return "", fmt.Errorf("%d of the hosts joined within %v: nothing to survey", here, f.Wait)
	case here < wanted:
		missing = fmt.Sprintf("only %d hosts joined within %v", here, f.Wait)
	}
	if err := f.listenTo(ctx); err != nil {
		return missing, err
	}
	return missing, nil
}

// Close has the hosts leave, and closes the meeting point.
func (f *Fleet) Close() error {
	f.mu.Lock()
	f.closing = true
	hosts := slices.Clone(f.hosts) // one more may come yet
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = f.each(hosts, func(h *host) error {
		_, err := f.errand(ctx, h, &errand{Do: doLeave})
		return err // who is lost need not leave
	})
	if f.unwatch != nil {
		f.unwatch()
	}
	var err error
	if f.field != nil {
		err = f.field.Close()
	}
	f.point.close()
	f.strays.sum()
	return err
}

// each does something with all hosts at once, and joins the errors.
func (f *Fleet) each(hosts []*host, do func(*host) error) error {
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() { errs[i] = do(h) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// strays counts messages that are none of ours: the first is told at once, and their number in the end.
type strays struct {
	log func(string)
	mu  sync.Mutex
	n   int
}

func (s *strays) add(where string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.n == 1 {
		s.log(fmt.Sprintf("ignored a message that is none of ours, at %s: %.120s", where, strings.ReplaceAll(err.Error(), "\n", " ")))
	}
}

func (s *strays) sum() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n > 1 {
		s.log(fmt.Sprintf("ignored %d messages that are none of ours", s.n))
	}
}
