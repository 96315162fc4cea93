package configs_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/testenv"
)

// A composeFile has the keys that our compose files use, and no others: decoding is strict. What is left out on purpose
// is hostname and container_name: contenders that shared a name would be one NFS client to the server.
type composeFile struct {
	Name     string                    `yaml:"name"`
	Common   any                       `yaml:"x-claimbench"`
	Services map[string]composeService `yaml:"services"`
	Networks map[string]struct {
		Internal bool `yaml:"internal"`
		IPAM     struct {
			Config []struct {
				Subnet string `yaml:"subnet"`
			} `yaml:"config"`
		} `yaml:"ipam"`
	} `yaml:"networks"`
	Volumes map[string]struct {
		Driver string            `yaml:"driver"`
		Opts   map[string]string `yaml:"driver_opts"`
	} `yaml:"volumes"`
}

type composeService struct {
	Image string `yaml:"image"`
	Build struct {
		Context string `yaml:"context"`
		Target  string `yaml:"target"`
	} `yaml:"build"`
	Command     words             `yaml:"command"`
	Entrypoint  words             `yaml:"entrypoint"`
	User        string            `yaml:"user"`
	Privileged  bool              `yaml:"privileged"`
	CapDrop     []string          `yaml:"cap_drop"`
	CapAdd      []string          `yaml:"cap_add"`
	Scale       int               `yaml:"scale"`
	Profiles    []string          `yaml:"profiles"`
	Environment map[string]string `yaml:"environment"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Networks    networks        `yaml:"networks"`
	NetworkMode string          `yaml:"network_mode"`
	Volumes     []serviceVolume `yaml:"volumes"`
	Tmpfs       []string        `yaml:"tmpfs"`
	StopGrace   string          `yaml:"stop_grace_period"`
	Health      *struct {
		Test     []string `yaml:"test"`
		Interval string   `yaml:"interval"`
		Timeout  string   `yaml:"timeout"`
		Retries  int      `yaml:"retries"`
	} `yaml:"healthcheck"`
}

// words is a command: a list, or a line that is split at blanks.
type words []string

func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*w = strings.Fields(n.Value)
		return nil
	}
	return n.Decode((*[]string)(w))
}

// networks are names, or names with an address on each.
type networks map[string]struct {
	Address string `yaml:"ipv4_address"`
}

func (w *networks) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		type plain networks
		return n.Decode((*plain)(w))
	}
	var names []string
	err := n.Decode(&names)
	*w = networks{}
	for _, name := range names {
		(*w)[name] = struct {
			Address string `yaml:"ipv4_address"`
		}{}
	}
	return err
}

// A serviceVolume is SOURCE:TARGET[:ro], or a mapping.
type serviceVolume struct {
	Type   string `yaml:"type"`
	Source string `yaml:"source"`
	Target string `yaml:"target"`
	Volume struct {
		NoCopy bool `yaml:"nocopy"`
	} `yaml:"volume"`
}

func (v *serviceVolume) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		type plain serviceVolume
		return n.Decode((*plain)(v))
	}
	parts := strings.Split(n.Value, ":")
	if len(parts) < 2 {
		return errors.New(n.Value + ": no volume")
	}
	v.Type, v.Source, v.Target = "volume", parts[0], parts[1]
	if strings.HasPrefix(v.Source, ".") {
		v.Type = "bind"
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{(\w+):-([^{}]*)\}`)

// compose reads a file as compose would with these variables, each NAME=VALUE.
func compose(t *testing.T, path string, set ...string) composeFile {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := variable.ReplaceAllStringFunc(string(data), func(v string) string {
		m := variable.FindStringSubmatch(v)
		for _, s := range set {
			if name, value, _ := strings.Cut(s, "="); name == m[1] {
				return value
			}
		}
		return m[2]
	})
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	var f composeFile
	if err := d.Decode(&f); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Fatalf("%s: more than one document", path)
	}
	return f
}

var composeFiles = []string{"../compose.yaml", "../compose.local.yaml"}

func TestComposeFilesNameWhatThereIs(t *testing.T) {
	dockerfile, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range composeFiles {
		f := compose(t, path)
		used := map[string]bool{}
		for name, s := range f.Services {
			if s.Build.Context != "." || s.Image == "" {
				t.Errorf("%s: %s: image %q of context %q", path, name, s.Image, s.Build.Context)
			}
			if s.Build.Target != "" && !bytes.Contains(dockerfile, []byte(" AS "+s.Build.Target+"\n")) {
				t.Errorf("%s: %s: the Dockerfile has no stage %s", path, name, s.Build.Target)
			}
			for n := range s.Networks {
				if _, ok := f.Networks[n]; !ok {
					t.Errorf("%s: %s: no network %s", path, name, n)
				}
			}
			for _, v := range s.Volumes {
				used[v.Source] = true
				if _, ok := f.Volumes[v.Source]; !ok && v.Type == "volume" {
					t.Errorf("%s: %s: no volume %s", path, name, v.Source)
				}
			}
			for other, d := range s.DependsOn {
				if _, ok := f.Services[other]; !ok {
					t.Errorf("%s: %s: no service %s to depend on", path, name, other)
				}
				if d.Condition == "service_healthy" && f.Services[other].Health == nil {
					t.Errorf("%s: %s waits for the health of %s, which nobody checks", path, name, other)
				}
			}
		}
		for name := range f.Volumes {
			if !used[name] && name != "shared" {
				t.Errorf("%s: nobody uses the volume %s", path, name)
			}
		}
	}
}

func TestOnlyWhatMountsIsPrivileged(t *testing.T) {
	for _, path := range composeFiles {
		for name, s := range compose(t, path).Services {
			mounts := path == "../compose.yaml" && (name == "nfs" || name == "contender")
			if s.Privileged != mounts {
				t.Errorf("%s: %s: privileged %v", path, name, s.Privileged)
			}
			if !mounts && !slices.Equal(s.CapDrop, []string{"ALL"}) {
				t.Errorf("%s: %s keeps capabilities", path, name)
			}
		}
	}
}

func TestTheTokenIsInNoCommandLineAndOnNoDisk(t *testing.T) {
	for _, path := range composeFiles {
		f := compose(t, path)
		if v := f.Volumes["meeting"]; v.Opts["type"] != "tmpfs" || v.Opts["o"] != "mode=0700" {
			t.Errorf("%s: the token is in %v", path, v.Opts)
		}
		for name, s := range f.Services {
			if line := strings.Join(s.Command, " "); strings.Contains(line, "token") || strings.Contains(line, "TOKEN") {
				t.Errorf("%s: %s: %s", path, name, line)
			}
		}
		for name, n := range f.Networks {
			if !n.Internal {
				t.Errorf("%s: the network %s can be reached from outside", path, name)
			}
		}
	}
}

func TestTheSharedVolumeIsTheExport(t *testing.T) {
	f := compose(t, "../compose.yaml", "CLAIMS=shared", "NFS_VERSION=4.0", "NFS_OPTIONS=noac")
	at := f.Services["nfs"].Networks["lan"].Address
	shared := f.Volumes["shared"].Opts
	if shared["type"] != "nfs" || shared["device"] != ":/" || shared["o"] != "addr="+at+",vers=4.0,noac" {
		t.Errorf("%v, and the server is at %s", shared, at)
	}
	subnet, err := netip.ParsePrefix(f.Networks["lan"].IPAM.Config[0].Subnet)
	if err != nil || !subnet.Contains(netip.MustParseAddr(at)) {
		t.Errorf("%s is not in %v, %v", at, subnet, err)
	}
	c := f.Services["contender"]
	if !slices.ContainsFunc(c.Volumes, func(v serviceVolume) bool { return v.Source == "shared" && v.Target == "/volume" }) || c.Environment["CLAIMS"] != "shared" {
		t.Errorf("contenders have %+v, %v", c.Volumes, c.Environment)
	}
}

func TestEveryVariableOfComposeHasADefaultAndIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/containers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range composeFiles {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if rest := variable.ReplaceAll(data, nil); bytes.Contains(rest, []byte("$")) {
			t.Errorf("%s: a variable without a default", path)
		}
		for _, m := range variable.FindAllSubmatch(data, -1) {
			if !bytes.Contains(doc, append(append([]byte("`"), m[1]...), '`')) {
				t.Errorf("docs/containers.md does not mention %s", m[1])
			}
		}
	}
}

func TestContainersDoWhatTheScriptKnows(t *testing.T) {
	needBash(t)
	for _, script := range []string{"container.sh", "compose-lab.sh", "slurm.sbatch"} {
		if out, err := exec.Command("bash", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", script, err, out)
		}
	}
	script, err := os.ReadFile("container.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range composeFiles {
		for name, s := range compose(t, path).Services {
			if s.Build.Target != "nfs" || s.Entrypoint != nil {
				continue
			}
			if len(s.Command) == 0 || !bytes.Contains(script, []byte("\n"+s.Command[0]+"() {\n")) {
				t.Errorf("%s: %s: container.sh has no %v", path, name, s.Command)
			}
		}
	}
}

func TestTheSettingsForNetworksAreValid(t *testing.T) {
	for _, path := range []string{"network.yaml", "compose-lab.yaml"} {
		if _, err := config.Load(path); err != nil {
			t.Error(err)
		}
	}
}

func needBash(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		testenv.Lacks(t, "bash is not installed")
	}
}
