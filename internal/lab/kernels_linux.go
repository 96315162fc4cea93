package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Several kernels meet on two bridges in a network namespace of this machine: the share is on one, the survey on the
// other, so that what goes wrong with the share does not keep its users from saying so.
const (
	networkName = "network" // the file that the namespace is mounted at
	tokenName   = "token"   // of the survey, in the scratch directory of each guest
	meeting     = "10.78.0.254:4222"
)

// makeNetwork makes the namespace with all that is in it; it ends with its last process, once it is not mounted any more.
// A file's mount does not need a name that others could have.
func (s *Stand) makeNetwork(ctx context.Context) error {
	at := filepath.Join(s.Dir, networkName)
	if err := s.ledger.Note(Entry{Kind: kindMount, Path: at}); err != nil {
		return err
	}
	batch := "link set lo up\nlink add data type bridge\nlink add control type bridge\n" +
		"link set data up\nlink set control up\naddr add 10.78.0.254/24 dev control\n"
	for node := range s.Target.UML.Hosts + 1 {
		for device, bridge := range map[string]string{tap(node): "data", fmt.Sprintf("c%d", node): "control"} {
			batch += fmt.Sprintf("tuntap add dev %s mode tap\nlink set %s master %s up\n", device, device, bridge)
		}
	}
	commands := filepath.Join(s.Dir, "network.ip")
	for file, content := range map[string]string{at: "", commands: batch} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return s.run(ctx, []string{"unshare", "--net=" + at, program("ip"), "-batch", commands})
}

// tap is the device of a node on the network of the share.
func tap(node int) string { return fmt.Sprintf("d%d", node) }

// onBridges are a command's words, to be run in the namespace of the bridges.
func (s *Stand) onBridges(args ...string) []string {
	return append([]string{"nsenter", "--net=" + filepath.Join(s.Dir, networkName), "--"}, args...)
}

// devices are the kernel parameters of a node's network devices and of its disk. The devices have the same addresses when
// it boots again: its neighbours remember them.
func (p *plan) devices() []string {
	var all []string
	for i, device := range []string{tap(p.Node), fmt.Sprintf("c%d", p.Node)} {
		all = append(all, fmt.Sprintf("vec%d:transport=tap,ifname=%s,mac=02:77:00:00:0%d:%02x,depth=128,gro=1", i, device, i, p.Node))
	}
	if p.Node == 0 && p.UML.disk() {
		all = append(all, "ubd0="+filepath.Join(p.Dir, diskName))
	}
	return all
}

// nodeDir is what a node has for its scratch directory.
func (s *Stand) nodeDir(node int) string { return filepath.Join(s.Dir, s.Target.UML.nodeName(node)) }

// prepareNodes makes the scratch directories of all nodes, and the server's disk.
func (s *Stand) prepareNodes(ctx context.Context) error {
	token := rand.Text()
	for node := range s.Target.UML.Hosts + 1 {
		dir := s.nodeDir(node)
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			err = os.Link(filepath.Join(s.Dir, binaryName), filepath.Join(dir, binaryName))
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, tokenName), []byte(token), 0o600)
		}
		if err != nil {
			return err
		}
	}
	if !s.Target.UML.disk() {
		return nil
	}
	image := filepath.Join(s.nodeDir(0), diskName)
	return s.run(ctx, []string{"mkfs.ext4", "-q", image, "256M"})
}

// nodes are the kernels of one target while they run.
type nodes struct {
	s       *Stand
	guests  []*guest
	unwatch []func()
	ending  sync.Mutex // over what ends or boots one
}

// surveyKernels boots a server and its clients, and surveys from here what these see.
func (s *Stand) surveyKernels(ctx context.Context, limit time.Duration) error {
	if err := s.makeNetwork(ctx); err != nil {
		return err
	}
	if err := s.prepareNodes(ctx); err != nil {
		return err
	}
	n := &nodes{s: s}
	defer n.killAll()
	for node := range s.Target.UML.Hosts + 1 {
		// Kernels that boot at one instant count the ticks since then alike, and an NFS client's exclusive create is known
		// by that count and a thread id.
		if node > 1 && !s.Target.UML.Clones && !s.Target.UML.Together {
			sleep(ctx, time.Second)
		}
		if err := n.boot(node); err != nil {
			return err
		}
	}
	until := time.Now().Add(bootTime)
	for _, g := range n.guests {
		if err := g.wait(ctx, stateSurveying, time.Until(until)); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(g.dir), err)
		}
	}
	return n.survey(ctx, limit)
}

// boot boots one, perhaps once more.
func (n *nodes) boot(node int) error {
	g, err := n.s.boot(plan{Target: n.s.Target.Name, UML: *n.s.Target.UML, Dir: n.s.nodeDir(node), Node: node})
	if g == nil {
		return err
	}
	if node == len(n.guests) {
		n.guests, n.unwatch = append(n.guests, nil), append(n.unwatch, func() {})
	}
	n.guests[node] = g
	return err
}

// watch has the survey end when a node does of itself.
func (n *nodes) watch(ctx context.Context, node int, fail context.CancelCauseFunc) {
	g, done := n.guests[node], make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		if err := g.wait(ctx, stateDone, forEver); err != nil && ctx.Err() == nil {
			fail(fmt.Errorf("%s: %w", filepath.Base(g.dir), err))
		}
	}()
	n.unwatch[node] = func() { cancel(); <-done }
}

const forEver = time.Duration(math.MaxInt64)

// kill ends one that runs, as a power cut would. Its process group is another's afterwards.
func (n *nodes) kill(node int) {
	n.unwatch[node]()
	if g := n.guests[node]; g != nil {
		g.kill()
	}
	n.guests[node] = nil
}

func (n *nodes) killAll() {
	n.ending.Lock()
	defer n.ending.Unlock()
	for node := range n.guests {
		n.kill(node)
	}
}

// survey runs the survey that the guests join. That one of them fails ends it, unless it was meant to.
func (n *nodes) survey(ctx context.Context, limit time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for node := range n.guests {
		n.watch(ctx, node, fail)
	}
	over := n.misbehave(ctx, fail)
	args := []string{filepath.Join(n.s.Dir, binaryName), "serve", "--hosts", fmt.Sprint(n.s.Target.UML.Hosts), "--listen", meeting,
		"--token-file", filepath.Join(n.s.nodeDir(0), tokenName)}
	err := n.s.runSurvey(ctx, limit, n.s.onBridges(append(args, n.s.surveyArgs(n.s.Dir)...)...))
	fail(nil)
	return errors.Join(err, over())
}
