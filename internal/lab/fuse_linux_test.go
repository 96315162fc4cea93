package lab

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestAPortIsListenedOnFromListenToClose(t *testing.T) {
	s := &Stand{group: os.Getpid()}
	ports, err := freePorts(maxServers)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range ports {
		if s.listens(port)() {
			t.Errorf("%s: listened on, though it was given back", port)
		}
	}
	if slices.Sort(ports); len(slices.Compact(ports)) != maxServers {
		t.Errorf("ports %s, not %d different ones", ports, maxServers)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:"+ports[0])
	if err != nil {
		t.Fatal(err)
	}
	if !s.listens(ports[0])() {
		t.Error("a port that is listened on is not seen")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if s.listens(ports[0])() {
		t.Error("a port that was closed is still seen")
	}
}

func TestWhatIsMissingIsInstalledByPackagesAndThenByCommands(t *testing.T) {
	target := Target{Needs: map[string]string{"no-such-a": "go install x@v1", "no-such-b": "b", "no-such-c": "b", "sh": "dash"}}
	err := target.lacksPrograms()
	if want := "no no-such-a, no-such-b, no-such-c: apt-get install b && go install x@v1"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	target.Needs = map[string]string{"no-such-a": "go install x@v1"}
	if err := target.lacksPrograms(); err == nil || strings.Contains(err.Error(), "apt-get") {
		t.Errorf("%v: names packages, though there is none", err)
	}
}

func TestANetworkOfOnesOwnIsEnteredByWhatIsStarted(t *testing.T) {
	s := &Stand{group: 7}
	if got := strings.Join(s.inNetwork([]string{"sh", "-c", "x"}), " "); got != "sh -c x" {
		t.Errorf("without a network of its own: %s", got)
	}
	s.Target.FUSE = &FUSE{Network: true}
	if got, want := strings.Join(s.inNetwork([]string{"sh", "-c", "x"}), " "), "nsenter --net=/proc/7/ns/net -- "+program("sh")+" -c x"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
