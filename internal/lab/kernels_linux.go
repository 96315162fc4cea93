package lab

import (
	"context"
	"crypto/rand"
	"fmt"
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

// inNetwork are a command's words, to be run in the namespace.
func (s *Stand) inNetwork(args ...string) []string {
	return append([]string{"nsenter", "--net=" + filepath.Join(s.Dir, networkName), "--"}, args...)
}

// devices are the kernel parameters of a node's two network devices. Their addresses stay the same when it boots again:
// its neighbours remember them.
func (p *plan) devices() []string {
	var all []string
	for i, device := range []string{tap(p.Node), fmt.Sprintf("c%d", p.Node)} {
		all = append(all, fmt.Sprintf("vec%d:transport=tap,ifname=%s,mac=02:77:00:00:0%d:%02x,depth=128,gro=1", i, device, i, p.Node))
	}
	return all
}

// nodeDir is what a node has for its scratch directory.
func (s *Stand) nodeDir(node int) string { return filepath.Join(s.Dir, s.Target.UML.nodeName(node)) }

// bootNode boots one of several kernels.
func (s *Stand) bootNode(node int) (*guest, error) {
	return s.boot(plan{Target: s.Target.Name, UML: *s.Target.UML, Dir: s.nodeDir(node), Node: node})
}

// prepareNodes makes the scratch directories of all nodes.
func (s *Stand) prepareNodes() error {
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
	return nil
}

// surveyKernels boots a server and its clients, and surveys from here what these see.
func (s *Stand) surveyKernels(ctx context.Context, limit time.Duration) error {
	if err := s.makeNetwork(ctx); err != nil {
		return err
	}
	if err := s.prepareNodes(); err != nil {
		return err
	}
	var guests []*guest
	defer func() {
		for _, g := range guests {
			g.kill()
		}
	}()
	for node := range s.Target.UML.Hosts + 1 {
		g, err := s.bootNode(node)
		if g != nil {
			guests = append(guests, g)
		}
		if err != nil {
			return err
		}
	}
	until := time.Now().Add(bootTime)
	for _, g := range guests {
		if err := g.wait(ctx, stateSurveying, time.Until(until)); err != nil {
			return err
		}
	}
	return s.serveKernels(ctx, guests, limit)
}

// serveKernels runs the survey that the guests join. That one of them fails ends it.
func (s *Stand) serveKernels(ctx context.Context, guests []*guest, limit time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	var watched sync.WaitGroup
	defer watched.Wait()
	defer fail(nil)
	for _, g := range guests {
		watched.Go(func() {
			if err := g.wait(ctx, stateDone, limit+time.Minute); err != nil {
				fail(err)
			}
		})
	}
	args := []string{filepath.Join(s.Dir, binaryName), "serve", "--hosts", fmt.Sprint(s.Target.UML.Hosts), "--listen", meeting,
		"--token-file", filepath.Join(s.nodeDir(0), tokenName)}
	return s.runSurvey(ctx, limit, s.inNetwork(append(args, surveyArgs(s.Dir)...)...))
}
